#include "topology/balanced_routing.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "random_faults.h"
#include "topology/dependency_graph.h"

namespace wafersim::topology {
namespace {

Mesh mesh_of(int rows, int cols) { return Mesh(MeshSpec{{rows, cols}, {}, {}}); }

LoadSummary loads_under(const std::string& policy, const Mesh& mesh, const Demands& demands) {
  return summarize(link_loads(*make_routing(policy, mesh, demands), mesh, demands), mesh);
}

/// Every live pair of a connected part is delivered (route() checks that links live and that it ends), and no
/// cycle of links can wait for itself.
void expect_sound(const Routing& routing, const Mesh& mesh) {
  EXPECT_TRUE(check_dependencies(routing, mesh, 1).acyclic());
  // The rule that it states covers the turns of all its routes.
  const TurnSets permitted = routing.permitted_turns(mesh);
  const TurnSets taken = routing.Routing::permitted_turns(mesh);
  for (LinkId link = 0; link < mesh.link_slots(); ++link) ASSERT_EQ(taken[link] & ~permitted[link], 0);
  const auto table = make_routing("table", mesh);
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    if (!mesh.alive(source)) continue;
    for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
      if (table->next(source, destination) == Hop::unreachable) {
        EXPECT_EQ(routing.next(source, destination), Hop::unreachable);
      } else {
        EXPECT_NO_THROW(route(routing, mesh, source, destination));
      }
    }
  }
}

/// Up to 60 demands between live tiles.
Demands random_demands(const Mesh& mesh, std::uint64_t seed) {
  RandomStream random(seed, "demands");
  Demands demands;
  for (std::uint64_t i = 0, count = 1 + random.below(60); i < count; ++i) {
    const auto source = static_cast<TileId>(random.below(mesh.tile_count()));
    const auto destination = static_cast<TileId>(random.below(mesh.tile_count()));
    if (mesh.alive(source) && mesh.alive(destination))
      demands.push_back({source, destination, 1 + random.below(1000)});
  }
  return demands;
}

/// (x, y) sends to (y, x).
Demands transposed(const Mesh& mesh, Bytes bytes) {
  Demands demands;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    const Coord c = mesh.coord(tile);
    demands.push_back({tile, mesh.tile_at({c.y, c.x}), bytes});
  }
  return merged(demands);
}

TEST(Balanced, WithoutTrafficItIsXy) {
  const Mesh mesh = mesh_of(4, 5);
  const auto xy = make_routing("xy", mesh);
  const auto balanced = make_routing("balanced", mesh);
  EXPECT_EQ(balanced->name(), "balanced");
  for (TileId at = 0; at < mesh.tile_count(); ++at) {
    for (TileId to = 0; to < mesh.tile_count(); ++to) EXPECT_EQ(balanced->next(at, to), xy->next(at, to));
  }
}

TEST(Balanced, TwoFlowsThatNeedNotShareALinkDoNot) {
  const Mesh mesh = mesh_of(2, 3);
  // Under xy both leave the north-west part along the first row.
  const Demands demands = {{0, 5, 100}, {1, 2, 100}};
  EXPECT_EQ(loads_under("xy", mesh, demands).largest, 200u);
  const BalancedRoutes routes = balance_routes(mesh, demands);
  EXPECT_EQ(routes.report.baseline, "xy");
  EXPECT_EQ(routes.report.before, (LoadSummary{200, 400}));
  EXPECT_EQ(routes.report.after, (LoadSummary{100, 400}));
  EXPECT_EQ(routes.report.moved_destinations, 1u);
  EXPECT_EQ(summarize(link_loads(*routes.routing, mesh, demands), mesh), routes.report.after);
}

TEST(Balanced, ADetourOfTwoHopsMayBeTheOnlyWay) {
  // Both flows go through the middle of the first row; the longer one can go round by the second row.
  const Mesh mesh = mesh_of(2, 3);
  const BalancedRoutes routes = balance_routes(mesh, {{0, 2, 100}, {1, 2, 100}});
  EXPECT_EQ(routes.report.before, (LoadSummary{200, 300}));
  EXPECT_EQ(routes.report.after, (LoadSummary{100, 500}));
}

TEST(Balanced, WhatCannotBeAvoidedStays) {
  const Mesh line = mesh_of(1, 4);
  EXPECT_EQ(balance_routes(line, {{0, 3, 10}, {1, 3, 20}}).report.after, (LoadSummary{30, 70}));
  // Everything into one corner comes in by two links; xy uses them unevenly.
  const Mesh mesh = mesh_of(4, 4);
  Demands incast;
  for (TileId tile = 1; tile < 16; ++tile) incast.push_back({tile, 0, 1});
  EXPECT_EQ(loads_under("xy", mesh, incast).largest, 12u);
  const RoutingReport report = balance_routes(mesh, incast).report;
  EXPECT_EQ(report.bound, 8u) << "15 flows over two links";
  EXPECT_EQ(report.after.largest, report.bound);
}

TEST(Balanced, TransposedTraffic) {
  for (const int k : {4, 6, 8, 16}) {
    const Mesh mesh = mesh_of(k, k);
    const Demands demands = transposed(mesh, 10);
    EXPECT_EQ(loads_under("xy", mesh, demands).largest, 10u * static_cast<Bytes>(k - 1));
    const BalancedRoutes routes = balance_routes(mesh, demands);
    EXPECT_LE(routes.report.after.largest, 10u * static_cast<Bytes>(k / 2)) << k;
    expect_sound(*routes.routing, mesh);
  }
}

TEST(Balanced, NeverWorseThanXyAndFreeOfDeadlock) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    MeshSpec spec = random_faulty_mesh(seed);
    spec.dead_tiles.clear();
    spec.dead_links.clear();
    const Mesh mesh(spec);
    const Demands demands = random_demands(mesh, seed);
    const BalancedRoutes routes = balance_routes(mesh, demands);
    const LoadSummary after = summarize(link_loads(*routes.routing, mesh, demands), mesh);
    EXPECT_EQ(after, routes.report.after);
    EXPECT_EQ(routes.report.before, loads_under("xy", mesh, demands));
    EXPECT_FALSE(routes.report.before < after);
    EXPECT_LE(routes.report.bound, after.largest);
    for (const Demand& demand : demands) {
      EXPECT_LE(route(*routes.routing, mesh, demand.source, demand.destination).size(),
                static_cast<std::size_t>(mesh.distance(demand.source, demand.destination) + kDetourHops));
    }
    expect_sound(*routes.routing, mesh);
  }
}

TEST(Balanced, WithFaultsNeverWorseThanTableAndAllPairsDelivered) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Mesh mesh(random_faulty_mesh(seed));
    if (!mesh.has_faults()) continue;
    const auto table = make_routing("table", mesh);
    Demands demands = random_demands(mesh, seed);
    std::erase_if(demands, [&](const Demand& demand) {
      return table->next(demand.source, demand.destination) == Hop::unreachable;
    });
    const BalancedRoutes routes = balance_routes(mesh, demands);
    const LoadSummary after = summarize(link_loads(*routes.routing, mesh, demands), mesh);
    EXPECT_EQ(after, routes.report.after);
    EXPECT_FALSE(loads_under("table", mesh, demands) < after);
    expect_sound(*routes.routing, mesh);
  }
}

TEST(Balanced, TheSameDemandsInAnyOrderGiveTheSameRoutes) {
  const Mesh mesh = mesh_of(6, 6);
  Demands demands = random_demands(mesh, 5);
  const BalancedRoutes first = balance_routes(mesh, demands);
  std::reverse(demands.begin(), demands.end());
  const BalancedRoutes second = balance_routes(mesh, demands);
  for (TileId at = 0; at < mesh.tile_count(); ++at) {
    for (TileId to = 0; to < mesh.tile_count(); ++to)
      ASSERT_EQ(first.routing->next(at, to), second.routing->next(at, to));
  }
}

TEST(Balanced, DemandsThatNothingCanDeliverAreRefusedByRoute) {
  const Mesh mesh(MeshSpec{{1, 4}, {{2, 0}}, {}});
  const BalancedRoutes routes = balance_routes(mesh, {{0, 3, 10}, {0, 1, 10}});
  EXPECT_EQ(routes.report.after, (LoadSummary{10, 10}));
  try {
    route(*routes.routing, mesh, 0, 3);
    FAIL() << "did not throw";
  } catch (const PlanError& error) {
    EXPECT_STREQ(error.what(),
                 "no 'balanced' route from tile_0_0 to tile_3_0: dead tiles or links cut every live path "
                 "between them");
  }
}

}  // namespace
}  // namespace wafersim::topology
