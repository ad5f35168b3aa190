#include <gtest/gtest.h>

#include <optional>
#include <queue>

#include "base/error.h"
#include "random_faults.h"
#include "topology/dependency_graph.h"
#include "topology/routing.h"

namespace wafersim::topology {
namespace {

constexpr std::uint64_t kFaultyMeshes = 60;

/// Hops over live links from `source`; nothing for tiles that cannot be reached.
std::vector<std::optional<int>> hops_from(const Mesh& mesh, TileId source) {
  std::vector<std::optional<int>> hops(mesh.tile_count());
  std::queue<TileId> queue;
  hops[source] = 0;
  queue.push(source);
  while (!queue.empty()) {
    const TileId at = queue.front();
    queue.pop();
    for (const Direction direction : kAllDirections) {
      if (!mesh.link_alive(Mesh::link(at, direction))) continue;
      const TileId next = mesh.neighbour(at, direction);
      if (hops[next]) continue;
      hops[next] = *hops[at] + 1;
      queue.push(next);
    }
  }
  return hops;
}

/// Calls check(source, destination, live hops between them) for all pairs of live tiles.
template <class Check>
void for_live_pairs(const Mesh& mesh, Check check) {
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    if (!mesh.alive(source)) continue;
    const auto hops = hops_from(mesh, source);
    for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
      if (mesh.alive(destination)) check(source, destination, hops[destination]);
    }
  }
}

TEST(TableRouting, WithoutFaultsEveryRouteIsMinimal) {
  for (const Shape shape : {Shape{8, 8}, Shape{1, 9}, Shape{7, 1}, Shape{5, 12}}) {
    const Mesh mesh(MeshSpec{shape, {}, {}});
    const auto routing = make_routing("table", mesh);
    for_live_pairs(mesh, [&](TileId source, TileId destination, std::optional<int>) {
      ASSERT_EQ(route(*routing, mesh, source, destination).size(),
                static_cast<std::size_t>(mesh.distance(source, destination)));
    });
  }
}

// Only the first links of a route may lead to the north or west; within a half, x goes first.
TEST(TableRouting, WithoutFaultsTurnsLikeNegativeFirst) {
  const Mesh mesh(MeshSpec{{4, 4}, {}, {}});
  const auto routing = make_routing("table", mesh);
  const auto hop = [&](Coord at, Coord to) { return routing->next(mesh.tile_at(at), mesh.tile_at(to)); };
  EXPECT_EQ(hop({1, 1}, {3, 3}), Hop::east);
  EXPECT_EQ(hop({3, 3}, {1, 1}), Hop::west);
  EXPECT_EQ(hop({3, 1}, {1, 3}), Hop::west);
  EXPECT_EQ(hop({1, 3}, {3, 1}), Hop::north);
  EXPECT_EQ(hop({2, 2}, {2, 2}), Hop::local);
}

TEST(TableRouting, AvoidsADeadLinkInsideAMesh) {
  const Mesh mesh(MeshSpec{{4, 4}, {}, {{{1, 1}, {2, 1}}}});
  const auto routing = make_routing("table", mesh);
  EXPECT_EQ(route(*routing, mesh, mesh.tile_at({0, 1}), mesh.tile_at({3, 1})).size(), 5U)
      << "3 hops and a detour of 2";
  EXPECT_EQ(route(*routing, mesh, mesh.tile_at({0, 0}), mesh.tile_at({3, 3})).size(), 6U);
}

TEST(TableRouting, ConnectedPairsHaveLiveRoutesAndOthersNone) {
  for (std::uint64_t seed = 0; seed < kFaultyMeshes; ++seed) {
    const Mesh mesh(random_faulty_mesh(seed));
    const auto routing = make_routing("table", mesh);
    for_live_pairs(mesh, [&](TileId source, TileId destination, std::optional<int> hops) {
      if (!hops) {
        ASSERT_EQ(routing->next(source, destination), Hop::unreachable);
        ASSERT_THROW(route(*routing, mesh, source, destination), PlanError);
        return;
      }
      const auto links = route(*routing, mesh, source, destination);
      ASSERT_GE(links.size(), static_cast<std::size_t>(*hops));
      for (const LinkId link : links) ASSERT_TRUE(mesh.link_alive(link)) << mesh.link_name(link);
    });
  }
}

// The rule costs hops only near faults: 2 % on average with up to 3 % of all tiles and links dead.
TEST(TableRouting, RoutesAroundFewFaultsAreNearlyMinimal) {
  std::size_t routed = 0;
  std::size_t shortest = 0;
  for (std::uint64_t seed = 0; seed < kFaultyMeshes; ++seed) {
    const Mesh mesh(random_faulty_mesh(seed, 3));
    const auto routing = make_routing("table", mesh);
    for_live_pairs(mesh, [&](TileId source, TileId destination, std::optional<int> hops) {
      if (!hops) return;
      routed += route(*routing, mesh, source, destination).size();
      shortest += static_cast<std::size_t>(*hops);
    });
  }
  EXPECT_GE(routed, shortest);
  EXPECT_LE(routed * 100, shortest * 103);
}

TEST(TableRouting, RoutesOnFaultyMeshesCannotDeadlock) {
  for (std::uint64_t seed = 0; seed < kFaultyMeshes; ++seed) {
    const Mesh mesh(random_faulty_mesh(seed));
    const auto routing = make_routing("table", mesh);
    ASSERT_TRUE(check_dependencies(*routing, mesh, 1).acyclic()) << "seed " << seed;
  }
}

TEST(TableRouting, DeadTilesAreNoDestination) {
  const Mesh mesh(MeshSpec{{3, 3}, {{1, 1}}, {}});
  const auto routing = make_routing("table", mesh);
  EXPECT_EQ(routing->next(0, mesh.tile_at({1, 1})), Hop::unreachable);
  EXPECT_EQ(routing->next(mesh.tile_at({1, 1}), 0), Hop::unreachable);
}

TEST(TableRouting, AMeshWithoutLiveTilesHasNoRoutes) {
  const Mesh mesh(MeshSpec{{1, 2}, {{0, 0}, {1, 0}}, {}});
  EXPECT_EQ(make_routing("table", mesh)->next(0, 1), Hop::unreachable);
}

TEST(TableRouting, RefusesMeshesTooLargeForATable) {
  const Mesh mesh(MeshSpec{{257, 256}, {}, {}});
  try {
    make_routing("table", mesh);
    FAIL() << "did not throw";
  } catch (const PlanError& error) {
    EXPECT_STREQ(error.what(),
                 "'routing: table' keeps a byte for each pair of tiles and takes at most 65536 tiles; the "
                 "257x256 mesh "
                 "has 65792");
  }
}

}  // namespace
}  // namespace wafersim::topology
