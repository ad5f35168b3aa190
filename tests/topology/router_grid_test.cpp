// Meshes whose routers are not one for each tile, or are joined over others.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <queue>

#include "base/error.h"
#include "base/random.h"
#include "topology/balanced_routing.h"
#include "topology/dependency_graph.h"
#include "topology/link_loads.h"
#include "topology/mesh_metrics.h"
#include "topology/network_facts.h"
#include "topology/routing.h"

namespace wafersim::topology {
namespace {

MeshSpec concentrated(const Shape& shape, const Shape& sharing) {
  MeshSpec spec;
  spec.shape = shape;
  spec.concentration = sharing;
  return spec;
}

MeshSpec express(const Shape& shape, const Shape& span, const Shape& every = {1, 1}) {
  MeshSpec spec;
  spec.shape = shape;
  spec.express = ExpressGrid{span, every};
  return spec;
}

std::vector<MeshSpec> grids() {
  std::vector<MeshSpec> specs = {concentrated({4, 6}, {2, 2}),
                                 concentrated({6, 3}, {2, 1}),
                                 concentrated({4, 8}, {1, 8}),
                                 express({5, 9}, {2, 3}),
                                 express({3, 13}, {1, 4}),
                                 express({9, 8}, {4, 4}, {4, 4}),
                                 express({7, 7}, {4, 6}, {2, 3})};
  specs.push_back(concentrated({8, 12}, {2, 1}));
  specs.back().express = ExpressGrid{{2, 4}, {1, 2}};
  return specs;
}

std::string text(const MeshSpec& spec) { return Mesh(spec).topology_name() + (" " + to_string(spec.shape)); }

/// Hops between all pairs of tiles over live links, breadth first.
std::vector<int> distances_from(const Mesh& mesh, TileId tile) {
  std::vector<int> distance(mesh.tile_count(), -1);
  std::queue<TileId> open;
  open.push(mesh.router(tile));
  distance[open.front()] = 0;
  for (; !open.empty(); open.pop()) {
    for (const Direction out : kAllDirections) {
      if (!mesh.link_alive(Mesh::link(open.front(), out))) continue;
      const TileId next = mesh.neighbour(open.front(), out);
      if (distance[next] >= 0) continue;
      distance[next] = distance[open.front()] + 1;
      open.push(next);
    }
  }
  return distance;
}

TEST(RouterGrid, TilesShareRouters) {
  const Mesh mesh(concentrated({4, 6}, {2, 3}));
  EXPECT_TRUE(mesh.concentrated());
  EXPECT_EQ(mesh.router_grid(), (Shape{2, 2}));
  EXPECT_STREQ(mesh.topology_name(), "concentrated mesh");
  std::vector<int> tiles_of(mesh.tile_count(), 0);
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    const TileId router = mesh.router(tile);
    EXPECT_TRUE(mesh.has_router(router));
    EXPECT_EQ(mesh.has_router(tile), router == tile);
    EXPECT_EQ(mesh.member(router, mesh.slot(tile)), tile);
    ++tiles_of[router];
  }
  for (const Coord corner : {Coord{0, 0}, {3, 0}, {0, 2}, {3, 2}}) EXPECT_EQ(tiles_of[mesh.tile_at(corner)], 6);
  EXPECT_EQ(mesh.neighbour(0, Direction::east), mesh.tile_at({3, 0}));
  EXPECT_EQ(mesh.neighbour(mesh.tile_at({3, 2}), Direction::north), mesh.tile_at({3, 0}));
  EXPECT_EQ(mesh.neighbour(1, Direction::east), kNoTile) << "no router goes by this tile";
  EXPECT_EQ(mesh.distance(mesh.tile_at({2, 1}), mesh.tile_at({3, 1})), 1);
  EXPECT_EQ(mesh.distance(mesh.tile_at({0, 0}), mesh.tile_at({2, 1})), 0);
  ASSERT_EQ(mesh.link_classes().size(), 3u);
  EXPECT_EQ(mesh.link_classes()[mesh.link_class(Mesh::link(0, Direction::east))].tiles, 3);
  EXPECT_EQ(mesh.link_classes()[mesh.link_class(Mesh::link(0, Direction::south))].tiles, 2);
}

TEST(RouterGrid, ExpressLinksBeginWhereTheirGridHasThem) {
  const Mesh every(express({1, 10}, {1, 3}));  // Ruche
  const Mesh cube(express({1, 10}, {1, 4}, {1, 4}));
  for (TileId tile = 0; tile < 10; ++tile) {
    EXPECT_EQ(every.neighbour(tile, Direction::express_east), tile + 3 < 10 ? tile + 3 : kNoTile);
    EXPECT_EQ(every.neighbour(tile, Direction::express_west), tile >= 3 ? tile - 3 : kNoTile);
    EXPECT_EQ(every.neighbour(tile, Direction::express_south), kNoTile);
    EXPECT_EQ(cube.neighbour(tile, Direction::express_east), tile == 0 || tile == 4 ? tile + 4 : kNoTile);
    EXPECT_EQ(cube.neighbour(tile, Direction::express_west), tile == 4 || tile == 8 ? tile - 4 : kNoTile);
  }
  const LinkClass& link = every.link_classes()[every.link_class(Mesh::link(2, Direction::express_east))];
  EXPECT_EQ(link.kind, LinkKind::express);
  EXPECT_EQ(link.tiles, 3);
  // 0 > 4 > 8 > 9; from the west of an interchange first to it; one hop short of the span all plain.
  EXPECT_EQ(cube.distance(TileId{0}, TileId{9}), 3);
  EXPECT_EQ(cube.distance(TileId{2}, TileId{9}), 2 + 1 + 1);
  EXPECT_EQ(cube.distance(TileId{9}, TileId{1}), 1 + 1 + 3);
  EXPECT_EQ(every.distance(TileId{1}, TileId{3}), 2);
}

TEST(RouterGrid, RoutesAreAsLongAsDistances) {
  for (const MeshSpec& spec : grids()) {
    const Mesh mesh(spec);
    for (const char* name : {"xy", "yx", "table"}) {
      const auto routing = make_routing(name, mesh);
      std::int64_t hops = 0;
      int longest = 0;
      for (TileId from = 0; from < mesh.tile_count(); ++from) {
        const std::vector<int> shortest = distances_from(mesh, from);
        for (TileId to = 0; to < mesh.tile_count(); ++to) {
          const auto length = static_cast<int>(route(*routing, mesh, from, to).size());
          EXPECT_GE(length, shortest[mesh.router(to)]);
          if (std::string(name) == "table") continue;
          ASSERT_EQ(length, mesh.distance(from, to)) << text(spec) << " " << mesh.name(from) << " " << mesh.name(to);
          if (!mesh.express()) {
            EXPECT_EQ(length, shortest[mesh.router(to)]);
          }
          hops += length;
          longest = std::max(longest, length);
        }
      }
      if (std::string(name) == "table") continue;
      const DistanceMetrics metrics = *measure_distances(mesh);
      const std::int64_t tiles = mesh.tile_count();
      EXPECT_EQ(metrics.diameter, longest) << text(spec);
      EXPECT_EQ(metrics.mean, Rational(hops, tiles * tiles)) << text(spec);
      EXPECT_EQ(metrics.parts, 1u);
    }
  }
}

/// Every way of finding loads says the same as the routes of all pairs one by one, and cuts bound them.
TEST(RouterGrid, LoadsAreThoseOfTheRoutes) {
  for (const MeshSpec& spec : grids()) {
    const Mesh mesh(spec);
    Demands all;
    for (TileId from = 0; from < mesh.tile_count(); ++from) {
      for (TileId to = 0; to < mesh.tile_count(); ++to) {
        if (from != to) all.push_back({from, to, 1});
      }
    }
    for (const char* name : {"xy", "yx", "table"}) {
      const auto routing = make_routing(name, mesh);
      LinkBytes expected(mesh.link_slots(), 0);
      for (const Demand& demand : all) {
        for (const LinkId link : route(*routing, mesh, demand.source, demand.destination)) ++expected[link];
      }
      EXPECT_EQ(link_loads(*routing, mesh, all), expected) << text(spec) << " " << name;
      EXPECT_EQ(routing->uniform_loads(mesh)->parts, expected) << text(spec) << " " << name;
      EXPECT_LE(cut_bound(mesh, all), summarize(expected, mesh).largest);
    }
    std::string why_not;
    const auto uniform = uniform_saturation(*make_routing("xy", mesh), mesh, why_not);
    ASSERT_TRUE(uniform) << why_not;
    EXPECT_LE(uniform->with_self, *uniform_cut_bound(mesh)) << text(spec);
  }
}

TEST(RouterGrid, DrawnAndAdaptiveLoadsAddUpToHops) {
  const Mesh mesh(concentrated({4, 6}, {2, 2}));
  const Demands demands = {{0, 23, 64}, {7, 12, 100}, {3, 2, 50}, {20, 21, 10}};
  Bytes byte_hops = 0;
  for (const Demand& demand : demands) {
    byte_hops += demand.bytes * static_cast<Bytes>(mesh.distance(demand.source, demand.destination));
  }
  for (const char* name : {"o1turn", "west_first", "north_last", "negative_first", "odd_even"}) {
    const auto policy = make_routing_policy(name, mesh);
    const ExpectedLoads loads = policy->expected_loads(mesh, demands);
    EXPECT_EQ(std::accumulate(loads.parts.begin(), loads.parts.end(), Bytes{0}), byte_hops * loads.parts_per_byte) << name;
  }
  // Over a tile drawn uniformly: the mean of all ways over one.
  const auto valiant = make_routing_policy("valiant", mesh);
  const auto xy = make_routing("xy", mesh);
  LinkBytes expected(mesh.link_slots(), 0);
  for (const Demand& demand : demands) {
    for (TileId between = 0; between < mesh.tile_count(); ++between) {
      for (const LinkId link : route(*xy, mesh, demand.source, between)) expected[link] += demand.bytes;
      for (const LinkId link : route(*xy, mesh, between, demand.destination)) expected[link] += demand.bytes;
    }
  }
  EXPECT_EQ(valiant->expected_loads(mesh, demands).parts, expected);
  EXPECT_EQ(valiant->expected_loads(mesh, demands).parts_per_byte, mesh.tile_count());
}

TEST(RouterGrid, PoliciesAreFreeOfDeadlockOrRefused) {
  for (const MeshSpec& spec : grids()) {
    const Mesh mesh(spec);
    for (const std::string& name : routing_policy_names()) {
      const bool express_too = name == "xy" || name == "yx" || name == "table" || name == "o1turn" || name == "valiant";
      if (name == "balanced" || (mesh.express() && !express_too)) {
        EXPECT_THROW(make_routing_policy(name, mesh), PlanError) << name << " on a " << text(spec);
        continue;
      }
      const auto policy = make_routing_policy(name, mesh);
      const DependencyVerdict verdict = check_dependencies(*policy, mesh, policy->vc_classes());
      EXPECT_TRUE(verdict.acyclic()) << name << " on a " << text(spec) << ": " << cycle_text(verdict, mesh);
    }
    EXPECT_THROW(balance_routes(mesh, {}), PlanError);
  }
}

TEST(RouterGrid, RingsOfSharedRoutersHaveDatelines) {
  MeshSpec spec = concentrated({6, 10}, {2, 2});
  spec.wrap = Wrap::both;
  const Mesh mesh(spec);
  EXPECT_STREQ(mesh.topology_name(), "torus");
  EXPECT_EQ(mesh.neighbour(0, Direction::west), mesh.tile_at({8, 0}));
  EXPECT_EQ(mesh.distance(TileId{0}, mesh.tile_at({9, 5})), 2);
  const auto xy = make_routing_policy("xy", mesh);
  EXPECT_TRUE(check_dependencies(*xy, mesh, 2).acyclic());
  EXPECT_FALSE(check_dependencies(*xy, mesh, 1).acyclic());
}

/// A dead express link costs a detour over plain ones, a dead router does what it does on every mesh.
TEST(RouterGrid, Faults) {
  MeshSpec spec = express({1, 9}, {1, 4});
  spec.dead_links = {{{0, 0}, {4, 0}}};
  EXPECT_TRUE(are_neighbours(spec, {0, 0}, {4, 0}));
  const Mesh mesh(spec);
  EXPECT_EQ(route(*make_routing("xy", mesh), mesh, 0, 8).size(), 1u + 1 + 3) << "0 > 1 > 5 > 6 > 7 > 8";
  EXPECT_EQ(route(*make_routing("xy", mesh), mesh, 8, 0).size(), 1u + 4) << "8 > 4 > 3 > 2 > 1 > 0";

  MeshSpec shared = concentrated({4, 6}, {2, 2});
  shared.dead_links = {{{0, 0}, {2, 0}}};
  shared.dead_tiles = {{2, 2}, {3, 2}, {2, 3}, {3, 3}};
  const Mesh broken(shared);
  EXPECT_FALSE(broken.has_router(broken.tile_at({2, 2})));
  const DistanceMetrics metrics = *measure_distances(broken);
  EXPECT_EQ(metrics.parts, 2u);
  shared.dead_links.clear();
  const Mesh whole(shared);
  const auto table = make_routing("table", whole);
  std::int64_t hops = 0, live = 0;
  for (TileId from = 0; from < whole.tile_count(); ++from) {
    if (!whole.alive(from)) continue;
    ++live;
    const std::vector<int> shortest = distances_from(whole, from);
    for (TileId to = 0; to < whole.tile_count(); ++to) {
      if (!whole.alive(to)) continue;
      hops += shortest[whole.router(to)];
      EXPECT_GE(route(*table, whole, from, to).size(), static_cast<std::size_t>(shortest[whole.router(to)]));
    }
  }
  EXPECT_EQ(measure_distances(whole)->mean, Rational(hops, live * live));
  EXPECT_EQ(measure_distances(whole)->mean_of_others, Rational(hops, live * live - live));
}

TEST(RouterGrid, WhatCannotBeLaidIsRefused) {
  EXPECT_THROW(Mesh(concentrated({5, 6}, {2, 2})), PlanError) << "not whole rectangles";
  EXPECT_THROW(Mesh(concentrated({6, 6}, {3, 3})), PlanError) << "nine tiles at one router";
  EXPECT_THROW(Mesh(express({4, 4}, {1, 1})), PlanError) << "a span of one";
  EXPECT_THROW(Mesh(express({9, 9}, {1, 4}, {1, 3})), PlanError) << "links that end between routers that have them";
  MeshSpec torus = express({6, 6}, {2, 2});
  torus.wrap = Wrap::x;
  EXPECT_THROW(Mesh{torus}, PlanError);
  MeshSpec half_dead = concentrated({4, 4}, {2, 2});
  half_dead.dead_tiles = {{0, 0}};
  EXPECT_THROW(Mesh{half_dead}, PlanError);
  half_dead.dead_tiles = {{3, 3}};
  EXPECT_THROW(Mesh{half_dead}, PlanError);
  half_dead.dead_tiles.clear();
  half_dead.dead_links = {{{0, 0}, {1, 0}}};
  EXPECT_FALSE(are_neighbours(half_dead, {0, 0}, {1, 0}));
  EXPECT_THROW(Mesh{half_dead}, PlanError);
}

TEST(RouterGrid, CutsCountTheLinksThatCrossThem) {
  // 4x8 with express links of span 4 along the rows from all tiles: 1 + 4 links a row in the middle.
  const auto cut = bisection(Mesh(express({4, 8}, {1, 4})));
  ASSERT_TRUE(cut);
  EXPECT_FALSE(cut->between_columns);
  EXPECT_EQ(cut->links, 8u);
  const std::vector<StraightCut> cuts = straight_cuts(Mesh(express({4, 8}, {1, 4})));
  EXPECT_EQ(cuts[0].links, 4u * 2);
  EXPECT_EQ(cuts[3].links, 4u * 5);
  const auto shared = bisection(Mesh(concentrated({4, 8}, {2, 2})));
  ASSERT_TRUE(shared);
  EXPECT_TRUE(shared->between_columns);
  EXPECT_EQ(shared->before, 3);
  EXPECT_EQ(shared->links, 2u);
  EXPECT_EQ(shared->low_tiles, 16u);
}

}  // namespace
}  // namespace wafersim::topology
