#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/workloads/lowering_fixture.h"
#include "topology/balanced_routing.h"
#include "workloads/trace_demands.h"

/// Runs of the same plan on balanced and on other routes: everything arrives, and every link carries what was
/// known before.
namespace wafersim::test {
namespace {

using workloads::LoweringFixture;
using workloads::Placement;

LoweringFixture plan(std::uint64_t seed) {
  RandomStream random(seed, "balanced_routes");
  const auto pick = [&random](std::vector<int> choices) { return choices[random.below(choices.size())]; };
  LoweringFixture fixture;
  fixture.set_degrees(pick({2, 4}), pick({2, 4}), pick({1, 2, 3}));
  fixture.wafer.mesh.shape = {8, 8};
  fixture.plan.zero = pick({0, 1});
  fixture.plan.collectives = workloads::Collective::automatic;
  if (pick({0, 1}) != 0) fixture.plan.sp = workloads::SequenceParallel::megatron;
  // Placements that are not laid out for their traffic: routes of different axes cross.
  fixture.plan.mapping[workloads::Axis::tp] = {Placement::strided, {}};
  fixture.plan.mapping[workloads::Axis::pp] = {Placement::block, {}};
  fixture.plan.order = {workloads::Axis::pp, workloads::Axis::dp, workloads::Axis::tp};
  return fixture;
}

/// What each tile has sent and received, and what each link has carried.
std::vector<std::uint64_t> run(const LoweringFixture& fixture, const topology::Mesh& mesh,
                               const topology::Routing& routing, const workloads::Trace& trace, bool links) {
  const models::HardwareModel hardware = models::resolve_hardware(fixture.wafer, {}, {});
  sim::Simulation simulation(mesh, routing, hardware, trace, {});
  const sim::Measurements measured = simulation.run();
  std::vector<std::uint64_t> numbers;
  if (links) {
    numbers.assign(mesh.link_slots(), 0);
    for (const sim::LinkMeasurement& link : measured.links) numbers[link.link] = link.bytes;
    return numbers;
  }
  for (const sim::TileMeasurement& tile : measured.tiles) {
    numbers.insert(numbers.end(), {tile.tile, tile.messages_sent, tile.messages_received, tile.bytes_sent,
                                   tile.bytes_received, tile.operations});
  }
  return numbers;
}

/// Returns to how many destinations the routes were moved.
std::uint64_t expect_same_delivery(const LoweringFixture& fixture, const std::string& other) {
  const topology::Mesh mesh = fixture.mesh();
  const workloads::LoweredPlan lowered = fixture.lower();
  const topology::Demands demands = workloads::demands_of(lowered.trace);
  const topology::BalancedRoutes balanced = topology::balance_routes(mesh, demands);
  const auto routing = topology::make_routing(other, mesh);
  const auto tiles = [&](const topology::Routing& on) {
    return isolated_numbers([&] { return run(fixture, mesh, on, lowered.trace, false); });
  };
  EXPECT_EQ(tiles(*balanced.routing), tiles(*routing));
  EXPECT_EQ(isolated_numbers([&] { return run(fixture, mesh, *balanced.routing, lowered.trace, true); }),
            topology::link_loads(*balanced.routing, mesh, demands));
  return balanced.report.moved_destinations;
}

TEST(BalancedRoutes, DeliverTheSameBytesAsXyAndLoadTheLinksAsForetold) {
  std::uint64_t moved = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    moved += expect_same_delivery(plan(seed), "xy");
  }
  EXPECT_GT(moved, 0u);
}

TEST(BalancedRoutes, DeliverTheSameBytesAsTableRoundFaults) {
  LoweringFixture fixture = plan(1);
  fixture.wafer.mesh.dead_tiles = {{7, 7}};
  fixture.wafer.mesh.dead_links = {{{1, 1}, {2, 1}}, {{0, 2}, {0, 3}}};
  EXPECT_GT(expect_same_delivery(fixture, "table"), 0u);
}

// One virtual channel with room for two packets, everything sent at once: where routes could wait for each
// other in a circle, they would.
TEST(BalancedRoutes, CrowdedTrafficNeverLocksUp) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    topology::MeshSpec spec{{7, 7}, {}, {}};
    if (seed >= 2) spec.dead_links = {{{1, 1}, {2, 1}}, {{3, 3}, {3, 4}}, {{5, 0}, {6, 0}}};
    const topology::Mesh mesh(spec);
    RandomStream random(seed, "crowd");
    std::vector<Flow> flows;
    topology::Demands demands;
    for (int i = 0; i < 400; ++i) {
      const auto source = static_cast<TileId>(random.below(mesh.tile_count()));
      const topology::Coord c = mesh.coord(source);
      const auto other = static_cast<TileId>(random.below(mesh.tile_count()));
      const TileId destination = i % 2 == 0 ? mesh.tile_at({c.y, c.x}) : other;
      flows.push_back({source, destination, 64 * (1 + random.below(8))});
      demands.push_back({source, destination, flows.back().bytes});
    }
    const topology::BalancedRoutes balanced = topology::balance_routes(mesh, demands);
    EXPECT_GT(balanced.report.moved_destinations, 0u);
    models::HardwareModel hardware = plain_hardware(64, Rational(1), 1, 1);
    hardware.virtual_channels = 1;
    hardware.vc_buffer_bytes = 128;
    const workloads::Trace trace = workloads::flow_trace(flows);
    const std::vector<std::uint64_t> loads = isolated_numbers([&] {
      sim::Simulation simulation(mesh, *balanced.routing, hardware, trace, {});
      std::vector<std::uint64_t> bytes(mesh.link_slots(), 0);
      for (const sim::LinkMeasurement& link : simulation.run().links) bytes[link.link] = link.bytes;
      return bytes;
    });
    EXPECT_EQ(loads, topology::link_loads(*balanced.routing, mesh, demands));
  }
}

}  // namespace
}  // namespace wafersim::test
