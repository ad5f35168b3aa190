#include "analysis/step_replay.h"

#include <gtest/gtest.h>

#include "models/collective_cost.h"
#include "models/cost.h"
#include "tests/sim/collective_rig.h"
#include "tests/sim/machine.h"
#include "topology/routing.h"

/// Steps played message by message against the closed forms and the packet simulator. Where messages do not meet, all three are
/// equal to the cycle.
namespace wafersim::test {
namespace {

using analysis::CostModel;
using workloads::Collective;
using workloads::CollectiveKind;

topology::Mesh mesh_of(const topology::Shape& shape) {
  topology::MeshSpec spec;
  spec.shape = shape;
  return topology::Mesh(spec);
}

/// The cycles of all steps of all tiles of a trace.
Cycle played(const workloads::Trace& trace, const topology::Mesh& mesh, const models::HardwareModel& hardware,
             CostModel model = CostModel::alpha_beta_contention) {
  const auto routing = topology::make_routing("xy", mesh);
  const sim::CompiledTrace code(trace, hardware);
  analysis::MessageTiming timing(hardware, mesh, *routing, model);
  analysis::StepReplay replay(code, hardware, timing, mesh, {});
  std::vector<analysis::PlayedTile> tiles;
  for (const workloads::TileBinding& binding : trace.tiles) {
    analysis::PlayedTile& tile = tiles.emplace_back();
    tile.binding = &binding;
    for (std::uint32_t step = 0; step < trace.programs[binding.program].steps.size(); ++step) tile.steps.push_back(step);
  }
  return replay.play(tiles).end;
}

models::HardwareModel machine() { return plain_hardware(256, Rational(16), 2, 3); }

Cycle played_collective(const CollectiveCase& collective, const models::HardwareModel& hardware) {
  return played(collective_trace(collective), mesh_of(collective.mesh), hardware);
}

TEST(StepReplay, OneMessageEqualsTheLatencyFormula) {
  const topology::Mesh mesh = mesh_of({3, 5});
  models::HardwareModel hardware = machine();
  hardware.link_bytes_per_cycle = hardware.injection_bytes_per_cycle = hardware.ejection_bytes_per_cycle = Rational(32, 3);
  hardware.turn_cycles = 2;
  hardware.message_overhead = 7;
  hardware.injection_cycles = 1;
  hardware.ejection_cycles = 4;
  for (const Bytes bytes : {Bytes{1}, Bytes{256}, Bytes{10'000}}) {
    for (const TileId to : {TileId{1}, TileId{4}, TileId{10}, TileId{14}}) {
      const int hops = mesh.distance(0, to), turns = to == 14 ? 1 : 0;
      const workloads::Trace trace = workloads::flow_trace({{0, to, bytes}});
      EXPECT_EQ(played(trace, mesh, hardware), models::message_latency(hardware, bytes, hops, turns)) << bytes << " to " << to;
      EXPECT_EQ(played(trace, mesh, hardware, CostModel::alpha_beta), models::message_latency(hardware, bytes, hops, turns));
      EXPECT_EQ(played(trace, mesh, hardware, CostModel::roofline), 0U);
    }
  }
}

/// Two messages over one link: the second one's bytes follow the first one's. Without contention neither sees the other.
TEST(StepReplay, MessagesShareALinkOneAfterTheOther) {
  const topology::Mesh mesh = mesh_of({1, 4});
  const models::HardwareModel hardware = machine();
  const Bytes bytes = 1600;  // 100 cycles
  const workloads::Trace trace = workloads::flow_trace({{0, 2, bytes}, {1, 3, bytes}});
  const Cycle alone = models::message_latency(hardware, bytes, 2);
  EXPECT_EQ(played(trace, mesh, hardware, CostModel::alpha_beta), alone);
  const Cycle shared = played(trace, mesh, hardware);
  EXPECT_GE(shared, alone + 90);
  EXPECT_LE(shared, alone + 100);
}

TEST(StepReplay, RingsEqualTheirFormula) {
  const models::HardwareModel hardware = machine();
  for (const topology::Shape shape : {topology::Shape{2, 2}, {2, 4}, {4, 4}}) {
    const int n = shape.size();
    const Bytes bytes = static_cast<Bytes>(n) * 1320;
    CollectiveCase ring{.mesh = shape, .algorithm = Collective::ring, .kind = CollectiveKind::all_gather, .bytes = bytes};
    EXPECT_EQ(played_collective(ring, hardware), models::ring_all_gather(hardware, n, bytes));
    ring.elements = 7 * static_cast<std::uint64_t>(n);
    ring.kind = CollectiveKind::all_reduce;
    EXPECT_EQ(played_collective(ring, hardware), models::ring_all_reduce(hardware, n, bytes, 7));
  }
}

TEST(StepReplay, LinesEqualTheirFormula) {
  const models::HardwareModel hardware = machine();
  const Cycle step = models::message_latency(hardware, 1320, 1);
  for (const topology::Shape shape : {topology::Shape{1, 2}, {1, 5}, {1, 8}, {5, 1}, {2, 4}, {3, 3}}) {
    const CollectiveCase line{.mesh = shape,
                              .algorithm = Collective::line,
                              .kind = CollectiveKind::all_gather,
                              .bytes = static_cast<Bytes>(shape.size()) * 1320};
    EXPECT_EQ(played_collective(line, hardware), static_cast<Cycle>(shape.size() - 1) * step) << topology::to_string(shape);
  }
}

/// Also where messages meet, as long as packets are not smaller than messages.
TEST(StepReplay, CollectivesTakeAsLongAsTheySimulate) {
  const models::HardwareModel hardware = plain_hardware(Bytes{1} << 20, Rational(16), 2, 3);
  for (const Collective algorithm : {Collective::ring, Collective::line, Collective::rows_cols, Collective::tree}) {
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
      const CollectiveCase collective{
          .mesh = {4, 4}, .algorithm = algorithm, .kind = kind, .bytes = 16 * 1320, .elements = 16 * 5};
      const Cycle simulated = collective_cycles(collective, hardware), predicted = played_collective(collective, hardware);
      EXPECT_NEAR(static_cast<double>(predicted), static_cast<double>(simulated), 0.01 * static_cast<double>(simulated))
          << workloads::to_string(algorithm) << ", kind " << static_cast<int>(kind);
    }
  }
}

}  // namespace
}  // namespace wafersim::test
