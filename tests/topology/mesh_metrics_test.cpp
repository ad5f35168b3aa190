#include "topology/mesh_metrics.h"

#include <gtest/gtest.h>

#include "policy_states.h"

namespace wafersim::topology {
namespace {

TEST(Distances, AreThoseOfAllPairs) {
  for (const Shape shape : {Shape{1, 1}, Shape{1, 2}, Shape{1, 9}, Shape{4, 4}, Shape{5, 8}}) {
    const Mesh mesh(MeshSpec{shape, {}, {}});
    std::int64_t hops = 0;
    int farthest = 0;
    for (TileId a = 0; a < mesh.tile_count(); ++a) {
      for (TileId b = 0; b < mesh.tile_count(); ++b) {
        hops += mesh.distance(a, b);
        farthest = std::max(farthest, mesh.distance(a, b));
      }
    }
    const std::int64_t tiles = mesh.tile_count();
    const auto metrics = measure_distances(mesh);
    ASSERT_TRUE(metrics);
    EXPECT_EQ(metrics->parts, 1u);
    EXPECT_EQ(metrics->diameter, farthest);
    EXPECT_EQ(metrics->mean, Rational(hops, tiles * tiles)) << to_string(shape);
    if (tiles > 1) {
      EXPECT_EQ(metrics->mean_of_others, Rational(hops, tiles * (tiles - 1)));
    } else {
      EXPECT_FALSE(metrics->mean_of_others);
    }
  }
}

// With faults a search takes the place of the closed form; a fault that changes no distance shows that they
// agree.
TEST(Distances, SearchAndClosedFormAgree) {
  const Mesh whole = plain_mesh(5, 6);
  const Mesh wider(MeshSpec{{5, 7}, {{6, 0}, {6, 1}, {6, 2}, {6, 3}, {6, 4}}, {}});
  const auto a = measure_distances(whole), b = measure_distances(wider);
  EXPECT_EQ(a->parts, b->parts);
  EXPECT_EQ(a->diameter, b->diameter);
  EXPECT_EQ(a->mean, b->mean);
  EXPECT_EQ(a->mean_of_others, b->mean_of_others);
}

TEST(Distances, GoRoundFaults) {
  // A ring of eight: 1 + 1 + 2 + 2 + 3 + 3 + 4 hops from each.
  const auto ring = measure_distances(Mesh(MeshSpec{{3, 3}, {{1, 1}}, {}}));
  EXPECT_EQ(ring->diameter, 4);
  EXPECT_EQ(ring->mean, Rational(16, 8));
  EXPECT_EQ(ring->mean_of_others, Rational(16, 7));
  // A dead link opens the ring of four.
  EXPECT_EQ(measure_distances(Mesh(MeshSpec{{2, 2}, {}, {{{0, 0}, {1, 0}}}}))->diameter, 3);
}

TEST(Distances, CountPartsAndStayWithinThem) {
  const auto metrics = measure_distances(Mesh(MeshSpec{{1, 6}, {{2, 0}}, {}}));
  EXPECT_EQ(metrics->parts, 2u);
  EXPECT_EQ(metrics->diameter, 2);
  // Pairs: 4 + 9; hops: 2 of two tiles, 8 of three.
  EXPECT_EQ(metrics->mean, Rational(10, 13));
  EXPECT_EQ(metrics->mean_of_others, Rational(10, 8));
  EXPECT_EQ(measure_distances(Mesh(MeshSpec{{1, 1}, {{0, 0}}, {}}))->parts, 0u);
}

TEST(Distances, AreNotSearchedForOnHugeFaultyMeshes) {
  EXPECT_FALSE(measure_distances(Mesh(MeshSpec{{300, 300}, {{0, 0}}, {}})));
  EXPECT_EQ(measure_distances(plain_mesh(300, 300))->diameter, 598);
}

TEST(Bisection, IsTheSmallerMiddleCut) {
  const auto wide = bisection(plain_mesh(4, 8));
  ASSERT_TRUE(wide);
  EXPECT_TRUE(wide->between_columns);
  EXPECT_EQ(wide->before, 3);
  EXPECT_EQ(wide->links, 4u);
  EXPECT_EQ(wide->low_tiles, 16u);
  const auto tall = bisection(plain_mesh(9, 2));
  EXPECT_FALSE(tall->between_columns);
  EXPECT_EQ(tall->links, 2u);
  EXPECT_EQ(tall->before, 3) << "one of two cuts beside the middle row";
  EXPECT_FALSE(bisection(plain_mesh(1, 1)));
}

TEST(Bisection, CountsLiveLinks) {
  // The middle of five columns is a column: of the cuts on both sides of it the one with the dead links.
  const auto cut = bisection(Mesh(MeshSpec{{7, 5}, {}, {{{2, 0}, {3, 0}}, {{2, 5}, {3, 5}}}}));
  EXPECT_TRUE(cut->between_columns);
  EXPECT_EQ(cut->before, 2);
  EXPECT_EQ(cut->links, 5u);
}

// Over the middle of k columns, k even: half of the traffic of half of the tiles on k links.
TEST(UniformCutBound, IsFourOverK) {
  for (const int k : {2, 4, 8, 16}) EXPECT_EQ(uniform_cut_bound(plain_mesh(k, k)), Rational(4, k));
  EXPECT_FALSE(uniform_cut_bound(plain_mesh(1, 1)));
}

}  // namespace
}  // namespace wafersim::topology
