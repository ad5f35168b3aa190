#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "base/random.h"
#include "tests/sim/dump.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/workloads/lowering_fixture.h"

/// What must hold whatever the plan and the machine: results do not depend on the order of visits, the memory
/// bound is one, every byte of the trace is sent, over as many links as its route has, and every cycle has
/// one cause.
namespace wafersim::test {
namespace {

using workloads::LoweringFixture;

/// A plan and the machine that it runs on.
struct Scenario {
  std::string name;
  LoweringFixture fixture;
  models::RouterSpec router;
  models::NetworkSpec network;
};

Bandwidth per_cycle(std::int64_t bytes) { return {Rational(bytes), true}; }

Scenario scenario(const std::string& name, int dp, int tp, int pp) {
  Scenario out;
  out.name = name;
  out.fixture.set_degrees(dp, tp, pp);
  out.fixture.training.global_batch = 8;
  out.fixture.training.microbatch = 1;
  out.fixture.wafer.mesh.shape = {4, 4};
  out.network.packet_bytes = {1024};
  return out;
}

std::vector<Scenario> scenarios() {
  std::vector<Scenario> list;
  list.push_back(scenario("data parallel", 4, 1, 1));
  list.push_back(scenario("data parallel, zero 1, on a line", 4, 1, 1));
  list.back().fixture.plan.zero = 1;
  list.back().fixture.plan.collectives = workloads::Collective::line;
  list.push_back(scenario("tensor parallel", 1, 4, 1));
  list.push_back(scenario("tensor and sequence parallel, narrow SRAM", 1, 4, 1));
  list.back().fixture.plan.sp = workloads::SequenceParallel::megatron;
  list.back().fixture.wafer.sram.bandwidth = per_cycle(48);
  list.push_back(scenario("gpipe", 1, 1, 4));
  list.back().fixture.plan.schedule = workloads::PipelineSchedule::gpipe;
  list.back().network.packet_bytes = {4096};
  list.push_back(scenario("all axes, 1f1b, zero 1, SP, narrow SRAM", 2, 2, 2));
  list.back().fixture.plan.zero = 1;
  list.back().fixture.plan.sp = workloads::SequenceParallel::megatron;
  list.back().fixture.wafer.sram.bandwidth = per_cycle(64);
  list.back().network.packet_bytes = {512};
  list.push_back(scenario("all axes, gpipe, two iterations, rows_cols, one port", 4, 2, 2));
  list.back().fixture.plan.schedule = workloads::PipelineSchedule::gpipe;
  list.back().fixture.plan.collectives = workloads::Collective::rows_cols;
  list.back().fixture.plan.collective_chunks = 2;
  list.back().fixture.training.iterations = 2;
  list.back().fixture.wafer.nic.ports = models::NicPorts::single;
  list.push_back(scenario("all axes, trees, full recompute, llama, tight buffers", 2, 4, 2));
  list.back().fixture.make_llama();
  list.back().fixture.plan.collectives = workloads::Collective::tree;
  list.back().fixture.training.recompute = models::Recompute::full;
  list.back().router.vc_buffer = DataSize{1024};
  list.back().router.virtual_channels = 1;
  list.push_back(scenario("optimizer in DRAM of a shared die", 2, 1, 2));
  list.back().fixture.wafer.dram = models::DramSpec{{1ULL << 30}, per_cycle(20), {2, 2}};
  list.back().fixture.wafer.sram.bandwidth = per_cycle(100);
  list.back().fixture.placement[workloads::MemoryClass::optimizer] = workloads::MemoryPlace::dram;
  list.back().fixture.placement[workloads::MemoryClass::gradients] = workloads::MemoryPlace::dram;
  list.push_back(scenario("streams and weights split between SRAM and DRAM", 2, 1, 2));
  list.back().fixture.plan.tatp = 4;
  list.back().fixture.model.attention_kernel = models::AttentionKernel::fused;
  list.back().fixture.training.recompute = models::Recompute::full;
  list.back().fixture.training.recompute_every = 2;
  list.back().fixture.wafer.dram = models::DramSpec{{1ULL << 30}, per_cycle(20), {2, 2}};
  list.back().fixture.wafer.sram.capacity = {100'000};
  list.push_back(scenario("ideal network", 2, 2, 2));
  list.back().network.fidelity = models::Fidelity::ideal;
  return list;
}

models::HardwareModel hardware_of(const Scenario& entry) {
  return models::resolve_hardware(entry.fixture.wafer, entry.router, entry.network);
}

workloads::LoweredPlan lowered(const Scenario& entry, const topology::Mesh& mesh,
                               const models::HardwareModel& hardware) {
  const LoweringFixture& f = entry.fixture;
  return workloads::lower({f.model, f.training, f.plan, f.placement, hardware, mesh});
}

sim::Measurements simulate(const Scenario& entry, const sim::SimulationOptions& options = {}) {
  const topology::Mesh mesh = entry.fixture.mesh();
  const models::HardwareModel hardware = hardware_of(entry);
  return run_trace(mesh, hardware, lowered(entry, mesh, hardware).trace, options);
}

class Invariants : public testing::TestWithParam<std::size_t> {
 protected:
  Scenario entry_ = scenarios()[GetParam()];
};

TEST_P(Invariants, ResultsDoNotDependOnTheOrderOfVisits) {
  const std::string plain = isolated_text([&] { return dump(simulate(entry_)); });
  EXPECT_GT(plain.size(), 1000U);
  EXPECT_EQ(first_difference(isolated_text([&] { return dump(simulate(entry_)); }), plain), "")
      << entry_.name;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    sim::SimulationOptions options;
    options.shuffle = true;
    options.seed = seed;
    const std::string shuffled = isolated_text([&] { return dump(simulate(entry_, options)); });
    EXPECT_EQ(first_difference(shuffled, plain), "") << entry_.name << ", seed " << seed;
  }
}

TEST_P(Invariants, PeaksStayBelowTheMemoryBound) {
  const topology::Mesh mesh = entry_.fixture.mesh();
  const workloads::MemoryBound bound = lowered(entry_, mesh, hardware_of(entry_)).memory;
  ASSERT_TRUE(bound.fits);
  for (const sim::TileMeasurement& tile : simulate(entry_).tiles) {
    for (std::size_t i = 0; i < workloads::kMemoryClasses; ++i) {
      EXPECT_LE(tile.peak_by_class[i], bound.by_class[i])
          << entry_.name << ", " << mesh.name(tile.tile) << ", "
          << to_string(static_cast<workloads::MemoryClass>(i));
    }
    EXPECT_LE(tile.peak_bytes, bound.peak_bytes) << entry_.name << ", " << mesh.name(tile.tile);
    EXPECT_LE(tile.peak_sram_bytes, bound.peak_sram_bytes) << entry_.name << ", " << mesh.name(tile.tile);
    EXPECT_LE(tile.peak_dram_bytes, bound.peak_dram_bytes) << entry_.name << ", " << mesh.name(tile.tile);
    EXPECT_GE(tile.peak_bytes, tile.static_bytes);
    EXPECT_EQ(tile.final_bytes, tile.static_bytes);
  }
}

TEST_P(Invariants, EveryByteOfTheTraceIsCarriedOverItsRoute) {
  const topology::Mesh mesh = entry_.fixture.mesh();
  const models::HardwareModel hardware = hardware_of(entry_);
  const workloads::Trace trace = lowered(entry_, mesh, hardware).trace;
  const auto sent = workloads::sent_bytes(trace);
  std::array<Bytes, workloads::kAxes> link_bytes{};
  std::uint64_t messages = 0, packets = 0, packet_hops = 0;
  for_each_op(
      trace, [&](const workloads::TileBinding& tile, const workloads::Step&, const workloads::Op& op) {
        if (op.kind != workloads::OpKind::send) return;
        const auto hops = static_cast<std::uint64_t>(mesh.distance(tile.tile, trace.peer(tile, op.peer)));
        ++messages;
        packets += ceil_div(op.bytes, hardware.packet_bytes);
        packet_hops += hops * ceil_div(op.bytes, hardware.packet_bytes);
        link_bytes[static_cast<std::size_t>(op.axis)] += hops * op.bytes;
      });

  const sim::Measurements measured = run_trace(mesh, hardware, trace);
  Bytes tiles_sent = 0, tiles_received = 0;
  for (const sim::TileMeasurement& tile : measured.tiles) {
    tiles_sent += tile.bytes_sent;
    tiles_received += tile.bytes_received;
    EXPECT_EQ(tile.cycles.total(), measured.cycles);
  }
  EXPECT_EQ(tiles_sent, std::accumulate(sent.begin(), sent.end(), Bytes{0})) << entry_.name;
  EXPECT_EQ(tiles_received, tiles_sent) << entry_.name;
  EXPECT_EQ(measured.messages, messages) << entry_.name;
  EXPECT_EQ(measured.matrix_flops, workloads::gemm_flops(trace)) << entry_.name;
  if (hardware.fidelity == models::Fidelity::ideal) return;
  EXPECT_EQ(measured.packets, packets) << entry_.name;
  EXPECT_EQ(measured.packet_hops, packet_hops) << entry_.name;
  std::array<Bytes, workloads::kAxes> carried{};
  for (const sim::LinkMeasurement& link : measured.links) {
    for (std::size_t axis = 0; axis < carried.size(); ++axis) carried[axis] += link.bytes_by_axis[axis];
    // A link carries no more than its rate allows, and is busy no longer than the run.
    EXPECT_GE(link.busy + 1, cycles_at_rate(link.bytes, hardware.link_bytes_per_cycle));
    EXPECT_LE(link.busy, measured.cycles);
  }
  EXPECT_EQ(carried, link_bytes) << entry_.name;
}

INSTANTIATE_TEST_SUITE_P(Plans, Invariants, testing::Range<std::size_t>(0, scenarios().size()));

Bytes bytes_sent(const Scenario& entry, workloads::Axis axis) {
  return isolated_number([&] {
    const sim::Measurements measured = simulate(entry);
    Bytes tiles = 0, links = 0;
    for (const sim::TileMeasurement& tile : measured.tiles) tiles += tile.bytes_sent;
    for (const sim::LinkMeasurement& link : measured.links) {
      links += link.bytes_by_axis[static_cast<std::size_t>(axis)];
    }
    if (tiles != links) throw std::runtime_error("bytes of another axis, or over more than one hop");
    return tiles;
  });
}

/// n members send 2 (n - 1) D in a ring all-reduce of D bytes, a stage boundary carries the residual stream
/// forth and back.
TEST(ClosedForms, BytesOfEachAxis) {
  Scenario data = scenario("data parallel", 4, 1, 1);
  const auto parameters = models::count_parameters(data.fixture.model).total(data.fixture.model.layers);
  EXPECT_EQ(bytes_sent(data, workloads::Axis::dp), 2 * 3 * 2 * parameters);

  Scenario tensor = scenario("tensor parallel", 1, 4, 1);
  tensor.fixture.layers_alone();
  tensor.fixture.training.clip_grad = false;
  const Bytes stream = tensor.fixture.stream_bytes();
  const Bytes passes = 8 * static_cast<Bytes>(tensor.fixture.model.layers);
  EXPECT_EQ(bytes_sent(tensor, workloads::Axis::tp), passes * 4 * 2 * 3 * stream);
  // Sequence parallelism: two all-gathers and two reduce-scatters each way, and two gathers of saved inputs.
  tensor.fixture.plan.sp = workloads::SequenceParallel::megatron;
  // Once an iteration, an all-reduce of the gradients of two layernorms and two output biases a layer.
  const Bytes norms = 2 * 3 * static_cast<Bytes>(tensor.fixture.model.layers * (2 * 2 + 2) * tensor.fixture.model.hidden) * 2;
  EXPECT_EQ(bytes_sent(tensor, workloads::Axis::tp), passes * (8 + 2) * 3 * stream + norms);

  Scenario pipeline = scenario("pipeline", 1, 1, 4);
  pipeline.fixture.layers_alone();
  pipeline.fixture.training.clip_grad = false;
  EXPECT_EQ(bytes_sent(pipeline, workloads::Axis::pp), 3 * 2 * 8 * stream);
}

/// Random flows with many ties, through routers that share links, buffers and arbiters.
TEST(NetworkInvariants, RandomTrafficDoesNotDependOnTheOrderOfVisits) {
  for (const std::uint64_t seed : {11U, 12U, 13U, 14U}) {
    const topology::Mesh mesh({{4, 5}, {}, {}});
    RandomStream random(seed, "traffic");
    std::vector<Flow> flows;
    for (int i = 0; i < 300; ++i) {
      flows.push_back({static_cast<TileId>(random.below(20)), static_cast<TileId>(random.below(20)),
                       1 + random.below(900), random.below(40) * 16,
                       static_cast<workloads::Axis>(random.below(7))});
    }
    models::HardwareModel hardware = plain_hardware(64, Rational(16), seed % 2, 1 + seed % 3);
    if (seed == 13) hardware.nic_ports = models::NicPorts::single;
    if (seed == 14) hardware.vc_buffer_bytes = 64;
    if (seed == 12) hardware.message_overhead = 5;
    const auto run = [&](bool shuffle) {
      return isolated_text([&] {
        const FlowResult result = run_flows(mesh, hardware, flows, "xy", shuffle);
        std::string text = dump(result.measurements);
        for (const sim::MessageRecord& message : result.messages) {
          text += std::to_string(message.injected) + ' ' + std::to_string(message.received) + ' ' +
                  std::to_string(message.queued) + '\n';
        }
        return text;
      });
    };
    const std::string plain = run(false);
    EXPECT_EQ(first_difference(run(true), plain), "") << "seed " << seed;
  }
}

/// One tile that waits for nobody: with more SRAM less passes through DRAM, and nothing once all fits.
TEST(SplitClasses, MoreSramIsNeverSlower) {
  const auto run = [](Bytes sram) {
    return isolated_numbers([=] {
      LoweringFixture fixture;
      fixture.wafer.mesh.shape = {1, 1};
      fixture.wafer.dram = models::DramSpec{{1ULL << 34}, per_cycle(16), {1, 1}};
      fixture.wafer.sram.capacity = {sram};
      const sim::Measurements result =
          run_trace(fixture.mesh(), models::resolve_hardware(fixture.wafer, {}, {}), fixture.lower().trace);
      const sim::TileMeasurement& tile = result.tiles[0];
      return std::vector<std::uint64_t>{result.cycles, tile.peak_sram_bytes, tile.peak_bytes, tile.cycles.memory_stall};
    });
  };
  Cycle before = kNever;
  for (const Bytes sram : {Bytes{1}, Bytes{100'000}, Bytes{500'000}, Bytes{1'000'000}, Bytes{2'500'000}, Bytes{1} << 30}) {
    const std::vector<std::uint64_t> now = run(sram);
    EXPECT_LT(now[0], before) << sram;
    EXPECT_LE(now[1], std::min<Bytes>(sram, now[2])) << sram;
    EXPECT_EQ(now[3] == 0, now[2] <= sram) << sram;
    before = now[0];
  }
}

}  // namespace
}  // namespace wafersim::test
