#include <gtest/gtest.h>

#include <algorithm>

#include "models/cost.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/stream.h"

/// One tensor stream along a line of N tiles on an otherwise idle machine with unlimited SRAM bandwidth. A block is used
/// for c cycles, m is the latency of a message of a block over one hop.
namespace wafersim::test {
namespace {

using workloads::BlockUse;
using workloads::Deps;
using workloads::StreamBlocks;
using workloads::StreamRelay;
using workloads::StreamVariant;

struct StreamCase {
  int members = 8;
  Bytes bytes = 4096;
  Cycle use = 100;
  StreamVariant variant = StreamVariant::flood;
  StreamRelay relay = StreamRelay::cut_through;
  int chunks = 1;
  bool inward = false;
};

models::HardwareModel machine() { return plain_hardware(512, Rational(16), 2, 3); }

/// Vector work of `cycles`.
workloads::Work work_of(Cycle cycles) { return {.gemm = {}, .vector_flops = cycles, .sram_bytes = 0}; }

workloads::Trace stream_trace(const StreamCase& wanted) {
  workloads::LoweringFixture fixture;
  const topology::Mesh mesh({{1, wanted.members}, {}, {}});
  const models::HardwareModel hardware = machine();
  const workloads::LoweringInput input{fixture.model,     fixture.training, fixture.plan,
                                       fixture.placement, hardware,         mesh};
  const workloads::ParameterLayout layout(fixture.model, fixture.training, fixture.plan);
  workloads::Trace trace;
  trace.statics.emplace_back();
  for (int rank = 0; rank < wanted.members; ++rank) {
    const topology::Shape shape{1, wanted.members};
    const workloads::Group group{workloads::Axis::tatp, wanted.members, rank, shape, topology::row_major(shape), 0};
    const workloads::RankContext context{.input = input,
                                         .layout = layout,
                                         .shard = make_shard(fixture.model, fixture.training, fixture.plan, {}),
                                         .tp = {},
                                         .tatp = group,
                                         .sp = {}};
    workloads::StepEmitter step(trace, "stream", context);
    const workloads::StreamLine line =
        stream_line(group, {workloads::StreamOperand::weights, workloads::StreamAttention::stream_kv, wanted.variant,
                            wanted.relay});
    const auto chunks = static_cast<Bytes>(wanted.chunks);
    const StreamBlocks blocks{.chunks = wanted.chunks,
                              .views = [](int, int) { return workloads::Views{}; },
                              .bytes = [&](int, int) { return wanted.bytes / chunks; },
                              .elements = [](int, int) { return std::uint64_t{0}; }};
    const auto use = [&](int, int, const Deps& ready) -> BlockUse {
      const Deps done{step.builder().vector(work_of(wanted.use / chunks), ready)};
      return {done, done};
    };
    if (wanted.inward) {
      stream_inward(step, line, blocks, {}, use);
    } else {
      stream_outward(step, line, blocks, {}, use);
    }
    workloads::Program program;
    program.steps.emplace_back().step_template = step.finish();
    workloads::TileBinding binding;
    binding.tile = static_cast<TileId>(rank);
    binding.program = static_cast<std::uint32_t>(rank);
    binding.first_peer = static_cast<std::uint32_t>(trace.peers.size());
    binding.peer_count = static_cast<std::uint32_t>(wanted.members);
    for (int i = 0; i < wanted.members; ++i) {
      trace.peers.push_back(static_cast<TileId>((rank + i) % wanted.members));
    }
    trace.programs.push_back(std::move(program));
    trace.tiles.push_back(binding);
  }
  return trace;
}

Cycle cycles(const StreamCase& wanted) {
  return isolated_number([&] {
    const topology::Mesh mesh({{1, wanted.members}, {}, {}});
    return run_trace(mesh, machine(), stream_trace(wanted)).cycles;
  });
}

Cycle one_hop(Bytes bytes) { return models::message_latency(machine(), bytes, 1); }

TEST(TensorStream, FloodTakesTheLongerOfComputationAndStream) {
  for (const int n : {1, 2, 3, 5, 8, 16}) {
    for (const Bytes bytes : {512U, 5000U}) {
      const Cycle m = one_hop(bytes);
      for (const Cycle c : {Cycle{1}, m / 2, m - 1, m, m + 1, 2 * m, 5 * m}) {
        const auto members = static_cast<Cycle>(n);
        EXPECT_EQ(cycles({.members = n, .bytes = bytes, .use = c}),
                  std::max(members * c, (members - 1) * m + c))
            << n << " tiles, " << bytes << " bytes, c " << c << ", m " << m;
      }
    }
  }
}

/// With additions that cost nothing the parts of a gradient take as long on their way in as the blocks did on their way
/// out.
TEST(TensorStream, FloodInwardTakesAsLongAsOutward) {
  for (const int n : {1, 2, 3, 5, 8, 16}) {
    const Bytes bytes = 5000;
    const Cycle m = one_hop(bytes);
    for (const Cycle c : {Cycle{1}, m, m + 1, 5 * m}) {
      const auto members = static_cast<Cycle>(n);
      EXPECT_EQ(cycles({.members = n, .bytes = bytes, .use = c, .inward = true}),
                std::max(members * c, (members - 1) * m + c))
          << n << " tiles, c " << c << ", m " << m;
    }
  }
}

constexpr Cycle kHop = 2 + 3;  ///< router and link cycles of machine()

/// A block takes N - 1 transfers to visit all tiles; on its way it crosses the closing transfer of the wrapped ring once,
/// or N - 2 transfers of two hops of the interleaved ring. Cutting through costs hop latencies only; relaying costs N - 2
/// messages more. For the closing transfer alone that is N - 1 messages instead of one: the tail of the naive ring.
TEST(TensorStream, LongTransfersOfRingsCostHopsOrWholeMessages) {
  for (const StreamVariant variant : {StreamVariant::wrapped_ring, StreamVariant::interleaved_ring}) {
    for (const int n : {2, 3, 4, 5, 8, 16}) {
      const auto members = static_cast<Cycle>(n);
      const Bytes bytes = 20000;
      const Cycle c = 1, m = one_hop(bytes), visit = (members - 1) * m + c;
      EXPECT_EQ(cycles({.members = n, .bytes = bytes, .use = c, .variant = variant}), visit + (members - 2) * kHop)
          << n << " tiles";
      const Cycle relayed = cycles({.members = n,
                                    .bytes = bytes,
                                    .use = c,
                                    .variant = variant,
                                    .relay = StreamRelay::store_and_forward});
      // A relaying tile may start a message a cycle late, behind one of its own.
      EXPECT_GE(relayed, visit + (members - 2) * m) << n << " tiles";
      EXPECT_LE(relayed, visit + (members - 2) * (m + 1)) << n << " tiles";
    }
  }
}

TEST(TensorStream, ChunksLetTheLastBlockBeUsedWhileItArrives) {
  const Bytes bytes = 16384;
  const Cycle m = one_hop(bytes), c = m / 2;
  Cycle before = cycles({.members = 8, .bytes = bytes, .use = c});
  for (const int chunks : {2, 4}) {
    const Cycle now = cycles({.members = 8, .bytes = bytes, .use = c, .chunks = chunks});
    EXPECT_LT(now, before) << chunks;
    before = now;
  }
}

}  // namespace
}  // namespace wafersim::test
