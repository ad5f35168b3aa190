#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "models/cost.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/linear.h"

/// One product of a layer along a line of N tiles whose inputs travel, on an otherwise idle machine with unlimited SRAM
/// bandwidth: c are the cycles of a rank's products with the rows of one rank, m is the latency of a message of those
/// rows over one hop.
namespace wafersim::test {
namespace {

using workloads::Deps;
using workloads::Product;
using workloads::StepEmitter;
using workloads::Weight;

/// `rows` tokens for each of N tiles.
struct Line {
  int tiles = 8;
  std::uint64_t rows = 16;
  std::uint64_t hidden = 24;
  std::uint64_t columns = 10;  ///< of the MLP on a tile
  std::int64_t arrays = 1;     ///< how fast products are

  models::HardwareModel machine() const {
    models::HardwareModel hardware = plain_hardware(512, Rational(4), 2, 3);
    hardware.arrays = Rational(arrays);
    hardware.vector_flops_per_cycle = Rational(1'000'000);  // an addition of a block takes one cycle
    return hardware;
  }
  workloads::LoweringFixture fixture() const {
    workloads::LoweringFixture setup;
    setup.model.hidden = static_cast<std::int64_t>(hidden);
    setup.model.heads = setup.model.kv_heads = tiles;
    setup.model.ffn = static_cast<std::int64_t>(columns) * tiles;
    setup.model.linear_bias = false;
    setup.model.sequence = static_cast<std::int64_t>(rows) * tiles;
    setup.training.microbatch = 1;
    setup.plan.tatp = tiles;
    setup.plan.stream.operand = workloads::StreamOperand::inputs;
    return setup;
  }
  Cycle gemm(std::uint64_t m, std::uint64_t n, std::uint64_t k) const {
    return models::ComputeCost(machine()).gemm({1, m, n, k});
  }
  Cycle hop(Bytes element) const { return models::message_latency(machine(), rows * hidden * element, 1); }
};

using Emit = std::function<void(StepEmitter&)>;

workloads::Trace trace_of(const Line& line, const Emit& emit) {
  const workloads::LoweringFixture setup = line.fixture();
  const topology::Mesh mesh({{1, line.tiles}, {}, {}});
  const models::HardwareModel hardware = line.machine();
  const workloads::LoweringInput input{setup.model, setup.training, setup.plan, setup.placement, hardware, mesh};
  const workloads::ParameterLayout layout(setup.model, setup.training, setup.plan);
  workloads::Trace trace;
  trace.statics.emplace_back();
  for (int rank = 0; rank < line.tiles; ++rank) {
    const topology::Shape shape{1, line.tiles};
    const workloads::RankContext context{
        .input = input,
        .layout = layout,
        .shard = make_shard(setup.model, setup.training, setup.plan, {0, rank, 0}),
        .tp = {},
        .tatp = {workloads::Axis::tatp, line.tiles, rank, shape, topology::row_major(shape), 0},
        .sp = {}};
    StepEmitter step(trace, "product", context);
    emit(step);
    workloads::Program program;
    program.steps.emplace_back().step_template = step.finish();
    trace.programs.push_back(std::move(program));
    workloads::TileBinding binding;
    binding.tile = static_cast<TileId>(rank);
    binding.program = static_cast<std::uint32_t>(rank);
    binding.first_peer = static_cast<std::uint32_t>(trace.peers.size());
    binding.peer_count = static_cast<std::uint32_t>(line.tiles);
    for (int i = 0; i < line.tiles; ++i) trace.peers.push_back(static_cast<TileId>((rank + i) % line.tiles));
    trace.tiles.push_back(binding);
  }
  return trace;
}

struct Ran {
  Cycle cycles = 0;
  Bytes stream_buffers = 0;  ///< of the fullest tile
};

Ran run(const Line& line, const Emit& emit) {
  const std::vector<std::uint64_t> numbers = isolated_numbers([&] {
    const topology::Mesh mesh({{1, line.tiles}, {}, {}});
    const sim::Measurements result = run_trace(mesh, line.machine(), trace_of(line, emit));
    Bytes peak = 0;
    for (const sim::TileMeasurement& tile : result.tiles) {
      peak = std::max(peak, tile.peak_by_class[static_cast<std::size_t>(workloads::MemoryClass::stream_buffers)]);
    }
    return std::vector<std::uint64_t>{result.cycles, peak};
  });
  return {numbers[0], numbers[1]};
}

Product product(Weight weight, workloads::Views input, const char* output) {
  return {.weight = weight,
          .input = std::move(input),
          .input_traffic = {},
          .output = output,
          .output_traffic = {}};
}

/// Y = X W of the first product.
void first_product(StepEmitter& step) { linear(step, product(Weight::mlp_up, step.local("x"), "y"), {}); }
void first_weight_gradient(StepEmitter& step) {
  linear_weight_gradient(step, product(Weight::mlp_up, step.local("x"), "y.gradient"), {});
}
/// Both gradients of the second product from one visit.
void second_gradients(StepEmitter& step) {
  const workloads::Range own = step.shard().ffn;
  linear_gradients_of_inputs(step, product(Weight::mlp_down, step.inner(1, "a.gradient", own), "z.gradient"),
                             step.inner(1, "a", own), {}, {});
}
void second_product(StepEmitter& step) {
  linear(step, product(Weight::mlp_down, step.inner(1, "a", step.shard().ffn), "z"), {});
}
void first_input_gradient(StepEmitter& step) {
  linear_input_gradient(step, product(Weight::mlp_up, step.local("x.gradient"), "y.gradient"), {});
}

Cycle closed_form(const Line& line, Cycle c, Cycle m) {
  const auto n = static_cast<Cycle>(line.tiles);
  return std::max(n * c, (n - 1) * m + c);
}

constexpr std::array<std::int64_t, 6> kSpeeds = {1, 5, 13, 20, 60, 1000};

TEST(StreamInputs, RowsOnTheirWayOutTakeTheLongerOfComputationAndStream) {
  bool computation = false, stream = false;
  for (const int tiles : {2, 3, 5, 8, 16}) {
    for (const std::int64_t arrays : kSpeeds) {
      const Line line{.tiles = tiles, .arrays = arrays};
      const Cycle m = line.hop(2), c = line.gemm(line.rows, line.columns, line.hidden);
      const Cycle gradient = line.gemm(line.hidden, line.columns, line.rows);
      const Cycle both = line.gemm(line.rows, line.columns, line.hidden) + line.gemm(line.columns, line.hidden, line.rows);
      computation = computation || c > m;
      stream = stream || both < m;
      EXPECT_EQ(run(line, first_product).cycles, closed_form(line, c, m)) << tiles << " tiles, c " << c << ", m " << m;
      EXPECT_EQ(run(line, first_weight_gradient).cycles, closed_form(line, gradient, m)) << tiles << ", " << arrays;
      EXPECT_EQ(run(line, second_gradients).cycles, closed_form(line, both, m)) << tiles << ", " << arrays;
    }
  }
  EXPECT_TRUE(computation && stream) << "both sides of the balance";
}

/// The sums of a round wait for one addition, or for two where parts come from both sides.
TEST(StreamInputs, PartsOnTheirWayInTakeAsLongAndTheirAdditions) {
  for (const int tiles : {2, 3, 5, 8, 16}) {
    for (const std::int64_t arrays : kSpeeds) {
      const Line line{.tiles = tiles, .arrays = arrays};
      const Cycle m = line.hop(workloads::kPartialBytes), c = line.gemm(line.rows, line.columns, line.hidden);
      for (const Emit& emit : {Emit(second_product), Emit(first_input_gradient)}) {
        const Cycle cycles = run(line, emit).cycles, least = closed_form(line, c, m);
        EXPECT_GE(cycles, least) << tiles << " tiles, c " << c << ", m " << m;
        EXPECT_LE(cycles, least + 2 * static_cast<Cycle>(tiles)) << tiles << " tiles, c " << c << ", m " << m;
      }
    }
  }
}

/// Outward those that wait, ceil(N/2) - 1 at most, and two ahead from each side. Inward the same backwards: as many parts
/// of sums that are not due, three that wait to be sent, and two landing from each side.
TEST(StreamInputs, BuffersHoldAFewBlocks) {
  for (const int tiles : {8, 16, 24}) {
    for (const std::int64_t arrays : kSpeeds) {
      const Line line{.tiles = tiles, .arrays = arrays};
      const Bytes block = line.rows * line.hidden * 2, part = line.rows * line.hidden * workloads::kPartialBytes;
      const auto waiting = static_cast<Bytes>((tiles + 1) / 2 - 1);
      for (const Emit& emit : {Emit(first_product), Emit(second_gradients), Emit(first_weight_gradient)}) {
        EXPECT_LE(run(line, emit).stream_buffers, (waiting + 4) * block) << tiles << ", " << arrays;
      }
      for (const Emit& emit : {Emit(second_product), Emit(first_input_gradient)}) {
        EXPECT_LE(run(line, emit).stream_buffers, (waiting + 7) * part) << tiles << ", " << arrays;
      }
    }
  }
}

}  // namespace
}  // namespace wafersim::test
