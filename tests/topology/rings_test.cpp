// Torus and half-torus: distances, minimal routes, datelines, what is known of their loads.
#include <gtest/gtest.h>

#include <array>
#include <queue>

#include "base/error.h"
#include "base/random.h"
#include "policy_states.h"
#include "topology/balanced_routing.h"
#include "topology/dependency_graph.h"
#include "topology/mesh_metrics.h"
#include "topology/network_facts.h"

namespace wafersim::topology {
namespace {

MeshSpec ring_spec(const Shape& shape, Wrap wrap) {
  MeshSpec spec;
  spec.shape = shape;
  spec.wrap = wrap;
  return spec;
}

const std::vector<Shape> kShapes = {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 7}, {2, 2}, {2, 5}, {6, 2}, {3, 3}, {3, 4}, {4, 4}, {5, 4}, {6, 5}, {5, 8}};
const std::vector<Wrap> kWraps = {Wrap::x, Wrap::y, Wrap::both};

template <class Check>
void for_each_ring_mesh(const Check& check) {
  for (const Shape& shape : kShapes) {
    for (const Wrap wrap : kWraps) {
      const Mesh mesh(ring_spec(shape, wrap));
      SCOPED_TRACE(testing::Message() << to_string(shape) << " " << mesh.topology_name());
      check(mesh);
    }
  }
}

/// Hops from a tile to all others, breadth first over live links.
std::vector<int> hops_from(const Mesh& mesh, TileId from) {
  std::vector<int> hops(mesh.tile_count(), -1);
  std::queue<TileId> open;
  hops[from] = 0;
  for (open.push(from); !open.empty(); open.pop()) {
    for (const Direction out : kAllDirections) {
      if (!mesh.link_alive(Mesh::link(open.front(), out))) continue;
      const TileId next = mesh.neighbour(open.front(), out);
      if (hops[next] >= 0) continue;
      hops[next] = hops[open.front()] + 1;
      open.push(next);
    }
  }
  return hops;
}

TEST(Rings, NeighboursAreMutualAndOnlyRealRingsWrap) {
  for_each_ring_mesh([](const Mesh& mesh) {
    for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
      for (const Direction out : kAllDirections) {
        const TileId next = mesh.neighbour(tile, out);
        if (next == kNoTile) continue;
        EXPECT_NE(next, tile);
        EXPECT_EQ(mesh.neighbour(next, opposite(out)), tile);
        EXPECT_EQ(mesh.direction_to(tile, next), out) << "two neighbours are joined once";
      }
    }
  });
  EXPECT_FALSE(Mesh(ring_spec({2, 2}, Wrap::both)).wraps());
  EXPECT_STREQ(Mesh(ring_spec({2, 3}, Wrap::both)).topology_name(), "half-torus in x");
}

TEST(Rings, DistancesAreThoseOfASearch) {
  for_each_ring_mesh([](const Mesh& mesh) {
    std::int64_t sum = 0;
    int farthest = 0;
    for (TileId from = 0; from < mesh.tile_count(); ++from) {
      const std::vector<int> hops = hops_from(mesh, from);
      for (TileId to = 0; to < mesh.tile_count(); ++to) {
        ASSERT_EQ(mesh.distance(from, to), hops[to]) << mesh.name(from) << " " << mesh.name(to);
        sum += hops[to];
        farthest = std::max(farthest, hops[to]);
      }
    }
    const auto metrics = measure_distances(mesh);
    const std::int64_t tiles = mesh.tile_count();
    EXPECT_EQ(metrics->diameter, farthest);
    EXPECT_EQ(metrics->mean, Rational(sum, tiles * tiles));
  });
}

TEST(Rings, DeadLinksMayBeThoseThatCloseARing) {
  MeshSpec spec = ring_spec({1, 5}, Wrap::x);
  spec.dead_links = {{{4, 0}, {0, 0}}};
  const Mesh mesh(spec);
  EXPECT_FALSE(mesh.link_alive(Mesh::link(4, Direction::east)));
  EXPECT_FALSE(mesh.link_alive(Mesh::link(0, Direction::west)));
  EXPECT_EQ(measure_distances(mesh)->diameter, 4);
  EXPECT_TRUE(are_neighbours(spec, {0, 0}, {4, 0}));
  spec.wrap = Wrap::none;
  EXPECT_FALSE(are_neighbours(spec, {0, 0}, {4, 0}));
  EXPECT_THROW(Mesh{spec}, PlanError);
}

TEST(Rings, DimensionOrderIsMinimal) {
  for_each_ring_mesh([](const Mesh& mesh) {
    for (const char* name : {"xy", "yx"}) {
      const auto routing = make_routing(name, mesh);
      for (TileId from = 0; from < mesh.tile_count(); ++from) {
        for (TileId to = 0; to < mesh.tile_count(); ++to) {
          ASSERT_EQ(static_cast<int>(route(*routing, mesh, from, to).size()), mesh.distance(from, to));
        }
      }
    }
  });
}

TEST(Rings, TiesGoUpwardsFromEvenTilesAndDownwardsFromOddOnes) {
  const Mesh mesh(ring_spec({3, 4}, Wrap::x));
  const auto xy = make_routing("xy", mesh);
  EXPECT_EQ(xy->next(mesh.tile_at({0, 0}), mesh.tile_at({2, 0})), Hop::east);
  EXPECT_EQ(xy->next(mesh.tile_at({1, 0}), mesh.tile_at({3, 0})), Hop::west);
  EXPECT_EQ(xy->next(mesh.tile_at({0, 1}), mesh.tile_at({2, 0})), Hop::west);
}

/// The routes of a routing function, in one class of virtual channels.
class OneClass final : public Routing {
 public:
  explicit OneClass(const Routing& routes) : routes_(routes) {}
  const std::string& name() const override { return routes_.name(); }
  Hop next(TileId at, TileId destination) const override { return routes_.next(at, destination); }

 private:
  const Routing& routes_;
};

TEST(Rings, TwoClassesHaveNoCycleAndOneHasIfItsRoutesHave) {
  int cyclic = 0;
  for_each_ring_mesh([&](const Mesh& mesh) {
    for (const char* name : {"xy", "yx"}) {
      const auto routing = make_routing(name, mesh);
      if (!mesh.wraps()) continue;
      EXPECT_EQ(routing->vc_classes(), 2u);
      EXPECT_TRUE(check_dependencies(*routing, mesh, 2).acyclic());
      EXPECT_TRUE(check_dependencies(*routing, mesh, 5).acyclic());
      const DependencyVerdict one = check_dependencies(*routing, mesh, 1);
      EXPECT_EQ(one.acyclic(), check_dependencies(OneClass(*routing), mesh, 1).acyclic());
      if (one.acyclic()) continue;
      ++cyclic;
      // A shortest cycle goes once round a ring.
      EXPECT_TRUE(one.cycle.size() == static_cast<std::size_t>(mesh.cols()) ||
                  one.cycle.size() == static_cast<std::size_t>(mesh.rows()));
    }
  });
  EXPECT_GT(cyclic, 10);
}

TEST(Rings, PacketsTakeTurnsAndClassesThatAreNamed) {
  for_each_ring_mesh([](const Mesh& mesh) {
    for (const char* name : {"xy", "yx"}) expect_connected(*make_routing(name, mesh), mesh, true);
  });
}

TEST(Rings, BothClassesAreOfUse) {
  for (const Shape shape : {Shape{4, 4}, Shape{5, 8}, Shape{8, 8}}) {
    const Mesh mesh(ring_spec(shape, Wrap::both));
    const auto xy = make_routing("xy", mesh);
    std::array<int, 2> used{};
    for (TileId source = 0; source < mesh.tile_count(); ++source) {
      for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
        Travel travel = xy->depart(source, destination, 0);
        for (const LinkId link : route(*xy, mesh, source, destination)) {
          travel = xy->leave(travel, Mesh::link_source(link), to_hop(Mesh::link_direction(link)));
          ++used[travel.vc_class];
        }
      }
    }
    EXPECT_GT(3 * std::min(used[0], used[1]), used[0] + used[1]) << to_string(shape);
  }
}

/// Dally and Towles, section 3: a link of a k-ary ring carries k/8 of what each tile sends to all alike (k even), or
/// (k - 1/k)/8 (k odd). With k/2 odd the ties of a ring cannot be halved on each link.
TEST(Rings, UniformTrafficSaturatesATorusAtTwiceTheMesh) {
  std::string why;
  for (const int k : {4, 8, 12}) {
    const Mesh mesh(ring_spec({k, k}, Wrap::both));
    EXPECT_EQ(uniform_saturation(*make_routing("xy", mesh), mesh, why)->with_self, Rational(8, k)) << k;
    EXPECT_EQ(bisection(mesh)->links, static_cast<std::uint64_t>(2 * k));
    EXPECT_EQ(*uniform_cut_bound(mesh), Rational(8, k));
  }
  for (const int k : {3, 5, 7}) {
    const Mesh mesh(ring_spec({k, k}, Wrap::both));
    EXPECT_EQ(uniform_saturation(*make_routing("yx", mesh), mesh, why)->with_self, Rational(8 * k, k * k - 1)) << k;
  }
  const Mesh six(ring_spec({6, 6}, Wrap::both));
  EXPECT_EQ(uniform_saturation(*make_routing("xy", six), six, why)->with_self, Rational(6, 5));
}

TEST(Rings, NoRoutesBeatTheBoundAndTablesGoRoundFaults) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    RandomStream random(seed, "rings");
    const auto below = [&random](int bound) { return static_cast<int>(random.below(static_cast<std::uint64_t>(bound))); };
    MeshSpec spec = ring_spec({3 + below(5), 3 + below(5)}, kWraps[random.below(3)]);
    const bool faulty = seed % 2 == 0;
    for (int i = 0; faulty && i < 3; ++i) spec.dead_tiles.push_back({below(spec.shape.cols), below(spec.shape.rows)});
    const Mesh mesh(spec);
    Demands demands;
    for (int i = 0; i < 40; ++i) {
      const auto from = static_cast<TileId>(random.below(mesh.tile_count())), to = static_cast<TileId>(random.below(mesh.tile_count()));
      if (mesh.alive(from) && hops_from(mesh, from)[to] > 0) demands.push_back({from, to, 1 + random.below(500)});
    }
    demands = merged(demands);
    const Bytes bound = cut_bound(mesh, demands);
    const auto table = make_routing("table", mesh);
    const BalancedRoutes balanced = balance_routes(mesh, demands);
    EXPECT_EQ(balanced.report.baseline, "table");
    for (const Routing* routing : {table.get(), balanced.routing.get()}) {
      EXPECT_TRUE(check_dependencies(*routing, mesh, 1).acyclic()) << "seed " << seed;
      EXPECT_GE(summarize(link_loads(*routing, mesh, demands), mesh).largest, bound) << "seed " << seed;
    }
    EXPECT_LE(balanced.report.after.largest, balanced.report.before.largest);
    if (faulty) continue;
    EXPECT_GE(summarize(link_loads(*make_routing("xy", mesh), mesh, demands), mesh).largest, bound) << "seed " << seed;
  }
}

TEST(Rings, PoliciesForMeshesAreRefused) {
  const Mesh mesh(ring_spec({4, 4}, Wrap::y));
  for (const char* name : {"o1turn", "valiant", "west_first", "north_last", "negative_first", "odd_even"}) {
    try {
      make_routing_policy(name, mesh);
      ADD_FAILURE() << name;
    } catch (const PlanError& error) {
      EXPECT_EQ(error.what(), "router.routing: '" + std::string(name) +
                                  "' cannot route on a half-torus in y; there are xy, yx, table, balanced");
    }
  }
}

TEST(Rings, XyRefusesARouteOverADeadLink) {
  MeshSpec spec = ring_spec({3, 5}, Wrap::x);
  spec.dead_links = {{{4, 1}, {0, 1}}};
  const Mesh mesh(spec);
  const auto xy = make_routing("xy", mesh);
  EXPECT_THROW(route(*xy, mesh, mesh.tile_at({4, 1}), mesh.tile_at({1, 1})), PlanError);
  EXPECT_EQ(route(*xy, mesh, mesh.tile_at({4, 0}), mesh.tile_at({1, 0})).size(), 2u);
}

}  // namespace
}  // namespace wafersim::topology
