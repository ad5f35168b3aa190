#include "workloads/mapping.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "topology/shapes.h"

namespace wafersim::workloads {
namespace {

using topology::Coord;
using topology::Mesh;
using topology::Shape;

Mesh mesh(int rows, int cols, std::vector<Coord> dead = {}) {
  return Mesh({{rows, cols}, std::move(dead), {}});
}

PlanSpec plan(int tp, int pp, int dp, std::map<Axis, AxisMapping> mapping = {}) {
  PlanSpec made;
  made.tp = tp;
  made.pp = pp;
  made.dp = dp;
  made.mapping = std::move(mapping);
  return made;
}

std::vector<std::pair<int, int>> places(const Mesh& on, const std::vector<TileId>& tiles) {
  std::vector<std::pair<int, int>> found;
  for (const TileId tile : tiles) found.emplace_back(on.coord(tile).x, on.coord(tile).y);
  return found;
}

/// The message of the PlanError, or "" when the plan is laid out.
std::string fault(const PlanSpec& wanted, const Mesh& on) {
  try {
    const Mapping mapping(wanted, on);
  } catch (const PlanError& error) {
    return error.what();
  }
  return "";
}

/// Every rank has a live tile of its own.
void expect_bijection(const PlanSpec& wanted, const Mesh& on) {
  const Mapping mapping(wanted, on);
  std::set<TileId> tiles;
  for (int dp = 0; dp < wanted.dp; ++dp) {
    for (int pp = 0; pp < wanted.pp; ++pp) {
      for (const TileId tile : mapping.group(Axis::tp, {.dp = dp, .pp = pp})) {
        EXPECT_TRUE(on.alive(tile));
        tiles.insert(tile);
      }
    }
  }
  EXPECT_EQ(tiles.size(), static_cast<std::size_t>(wanted.tiles_used()));
}

TEST(Mapping, NestsAxesFromTheInsideOut) {
  const Mesh on = mesh(4, 8);
  const Mapping mapping(plan(4, 4, 2,
                             {{Axis::tp, {Placement::block, Shape{2, 2}}},
                              {Axis::pp, {Placement::row, {}}},
                              {Axis::dp, {Placement::col, {}}}}),
                        on);
  EXPECT_EQ(places(on, mapping.group(Axis::tp, {.dp = 1, .pp = 1})),
            (std::vector<std::pair<int, int>>{{2, 2}, {3, 2}, {2, 3}, {3, 3}}));
  EXPECT_EQ(places(on, mapping.group(Axis::pp, {.tp = 3, .dp = 0})),
            (std::vector<std::pair<int, int>>{{1, 1}, {3, 1}, {5, 1}, {7, 1}}));
  EXPECT_EQ(places(on, mapping.group(Axis::dp, {.tp = 0, .pp = 2})), (std::vector<std::pair<int, int>>{{4, 0}, {4, 2}}));
  EXPECT_EQ(mapping.axis_shape(Axis::pp), (Shape{1, 4}));
  EXPECT_EQ(mapping.axis_shape(Axis::dp), (Shape{2, 1}));
}

/// Replicas are ep times dp; ep lies inside dp, whatever is nested between them.
TEST(Mapping, ReplicasMakeAGridOfBothAxes) {
  const Mesh on = mesh(4, 8);
  PlanSpec wanted = plan(1, 2, 8, {{Axis::ep, {Placement::row, {}}}, {Axis::pp, {Placement::row, {}}},
                                   {Axis::dp, {Placement::col, {}}}});
  wanted.ep = 4;
  const Mapping mapping(wanted, on);
  EXPECT_EQ(places(on, mapping.group(Axis::ep, {.dp = 1, .pp = 1})),
            (std::vector<std::pair<int, int>>{{4, 1}, {5, 1}, {6, 1}, {7, 1}}));
  EXPECT_EQ(places(on, mapping.group(Axis::dp, {.ep = 2, .pp = 0})), (std::vector<std::pair<int, int>>{{2, 0}, {2, 1}}));
  EXPECT_EQ(mapping.replica_shape(), (Shape{2, 4}));
  EXPECT_EQ(mapping.replica_positions(), topology::row_major({2, 4}));
  const std::vector<TileId> replicas = mapping.replicas({.pp = 1});
  ASSERT_EQ(replicas.size(), 8U);
  EXPECT_EQ(replicas[wanted.replica({.ep = 3, .dp = 1})], mapping.tile({.ep = 3, .dp = 1, .pp = 1}));
  wanted.order = {Axis::dp, Axis::ep, Axis::pp};
  wanted.mapping[Axis::dp] = {Placement::row, {}};
  wanted.mapping[Axis::ep] = {Placement::col, {}};
  const Mapping turned(wanted, on);
  EXPECT_EQ(turned.replica_shape(), (Shape{4, 2}));
  EXPECT_EQ(turned.replica_positions()[1], (topology::Coord{0, 1})) << "the next replica is the next rank of ep";
}

TEST(Mapping, SnakesRunBackInOddRows) {
  const Mesh on = mesh(2, 3);
  const Mapping mapping(plan(1, 6, 1, {{Axis::pp, {Placement::snake, Shape{2, 3}}}}), on);
  EXPECT_EQ(places(on, mapping.group(Axis::pp, {.tp = 0, .dp = 0})),
            (std::vector<std::pair<int, int>>{{0, 0}, {1, 0}, {2, 0}, {2, 1}, {1, 1}, {0, 1}}));
  EXPECT_EQ(mapping.axis_positions(Axis::pp), topology::snake({2, 3}));
}

TEST(Mapping, OrderMovesAnAxisInside) {
  const Mesh on = mesh(1, 8);
  PlanSpec wanted = plan(2, 1, 4, {{Axis::tp, {Placement::row, {}}}, {Axis::dp, {Placement::row, {}}}});
  wanted.order = {Axis::dp, Axis::tp, Axis::pp};
  const Mapping mapping(wanted, on);
  EXPECT_EQ(mapping.group(Axis::dp, {.tp = 1, .pp = 0}), (std::vector<TileId>{4, 5, 6, 7}));
  EXPECT_EQ(mapping.group(Axis::tp, {.dp = 2, .pp = 0}), (std::vector<TileId>{2, 6}));
}

TEST(Mapping, StandardShapesAreMostSquareAndWiderThanTall) {
  const Mapping mapping(plan(8, 6, 1), mesh(64, 64));
  EXPECT_EQ(mapping.axis_shape(Axis::tp), (Shape{2, 4}));
  EXPECT_EQ(mapping.axis_shape(Axis::pp), (Shape{2, 3}));
  EXPECT_EQ(mapping.axis_shape(Axis::dp), (Shape{1, 1}));
  EXPECT_EQ(mapping.axis_positions(Axis::tp), topology::row_major({2, 4}));
  EXPECT_EQ(mapping.axis_positions(Axis::pp), topology::snake({2, 3}));
}

TEST(Mapping, StandardShapesChangeFromTheOutsideInUntilTheWholeFits) {
  // tp 2x2, pp 1x2 and dp 2x2 would be 4x8; on 8x4 it is dp that turns.
  const Mapping outer(plan(4, 2, 4), mesh(8, 4));
  EXPECT_EQ(outer.axis_shape(Axis::tp), (Shape{2, 2}));
  EXPECT_EQ(outer.axis_shape(Axis::pp), (Shape{1, 2}));
  EXPECT_EQ(outer.axis_shape(Axis::dp), (Shape{4, 1}));
  // On one row nothing else is left.
  const Mapping row(plan(4, 2, 4), mesh(1, 32));
  EXPECT_EQ(row.axis_shape(Axis::tp), (Shape{1, 4}));
  EXPECT_EQ(row.axis_shape(Axis::dp), (Shape{1, 4}));
}

TEST(Mapping, NeighbouringStagesStayNeighbours) {
  const Mesh on = mesh(16, 16);
  const Mapping mapping(plan(4, 12, 2), on);
  const Shape inner = mapping.axis_shape(Axis::tp);
  for (int tp = 0; tp < 4; ++tp) {
    const std::vector<TileId> stages = mapping.group(Axis::pp, {.tp = tp, .dp = 1});
    for (std::size_t i = 1; i < stages.size(); ++i) {
      EXPECT_LE(on.distance(stages[i - 1], stages[i]), std::max(inner.rows, inner.cols));
    }
  }
}

TEST(Mapping, StridedAxesTakeEveryKthTile) {
  const Mesh on = mesh(4, 4);
  const std::map<Axis, AxisMapping> strided = {{Axis::tp, {Placement::strided, Shape{1, 2}}},
                                               {Axis::pp, {Placement::strided, Shape{2, 2}}},
                                               {Axis::dp, {Placement::strided, Shape{2, 1}}}};
  const Mapping mapping(plan(2, 4, 2, strided), on);
  EXPECT_EQ(mapping.group(Axis::tp, {.dp = 1, .pp = 1}), (std::vector<TileId>{10, 11}));
  EXPECT_EQ(mapping.group(Axis::pp, {.tp = 0, .dp = 0}), (std::vector<TileId>{0, 2, 4, 6}));
  EXPECT_EQ(mapping.group(Axis::dp, {.tp = 1, .pp = 3}), (std::vector<TileId>{7, 15}));
  EXPECT_EQ(mapping.axis_shape(Axis::pp), (Shape{2, 2}));
  EXPECT_EQ(mapping.axis_positions(Axis::pp), topology::row_major({2, 2}));
}

TEST(Mapping, AStridedAxisReshapesTheRectanglesInsideIt) {
  // tp is a 2x2 block of its own, but four tiles in a row inside the 2x8 rectangle that pp strides over.
  const Mesh on = mesh(2, 8);
  const Mapping mapping(
      plan(4, 4, 1,
           {{Axis::tp, {Placement::block, Shape{2, 2}}}, {Axis::pp, {Placement::strided, Shape{1, 4}}}}),
      on);
  EXPECT_EQ(mapping.group(Axis::tp, {.dp = 0, .pp = 1}), (std::vector<TileId>{4, 5, 6, 7}));
  EXPECT_EQ(mapping.group(Axis::pp, {.tp = 0, .dp = 0}), (std::vector<TileId>{0, 4, 8, 12}));
  EXPECT_EQ(mapping.axis_shape(Axis::tp), (Shape{1, 4}));
  EXPECT_EQ(mapping.axis_shape(Axis::pp), (Shape{2, 2}));
}

TEST(Mapping, TilesThatMakeNoGridCountAsALine) {
  // Every second tile of two rows of five: three in the first row, two in the second, in columns of their
  // own.
  const Mapping mapping(
      plan(2, 5, 1, {{Axis::tp, {Placement::col, {}}}, {Axis::pp, {Placement::strided, Shape{1, 5}}}}),
      mesh(2, 5));
  EXPECT_EQ(mapping.group(Axis::pp, {.tp = 0, .dp = 0}), (std::vector<TileId>{0, 2, 4, 6, 8}));
  EXPECT_EQ(mapping.axis_shape(Axis::pp), (Shape{1, 5}));
  EXPECT_EQ(mapping.axis_positions(Axis::pp), topology::row_major({1, 5}));
}

TEST(Mapping, EveryPlacementIsABijection) {
  const std::vector<Placement> all = {Placement::standard, Placement::row,   Placement::col,
                                      Placement::block,    Placement::snake, Placement::strided};
  const Mesh on = mesh(36, 36);
  for (const Placement tp : all) {
    for (const Placement pp : all) {
      for (const Placement dp : all) {
        PlanSpec wanted = plan(4, 6, 3, {{Axis::tp, {tp, {}}}, {Axis::pp, {pp, {}}}, {Axis::dp, {dp, {}}}});
        if (fault(wanted, on).empty()) expect_bijection(wanted, on);
        std::reverse(wanted.order.begin(), wanted.order.end());
        if (fault(wanted, on).empty()) expect_bijection(wanted, on);
      }
    }
  }
}

TEST(Mapping, MovesAsAWholeToTheFirstLivePlace) {
  const Mesh on = mesh(4, 6, {{1, 0}, {4, 1}});
  const PlanSpec wanted = plan(4, 1, 1, {{Axis::tp, {Placement::block, Shape{2, 2}}}});
  EXPECT_EQ(places(on, Mapping(wanted, on).group(Axis::tp, {.dp = 0, .pp = 0})),
            (std::vector<std::pair<int, int>>{{2, 0}, {3, 0}, {2, 1}, {3, 1}}));
  const PlanSpec wide = plan(6, 1, 1, {{Axis::tp, {Placement::row, {}}}});
  EXPECT_EQ(places(on, Mapping(wide, on).group(Axis::tp, {.dp = 0, .pp = 0})).front(), (std::pair<int, int>{0, 2}));
}

TEST(Mapping, RefusesWithTheDeadTilesInTheWay) {
  EXPECT_EQ(
      fault(plan(6, 1, 1, {{Axis::tp, {Placement::block, Shape{2, 3}}}}), mesh(2, 4, {{1, 0}, {2, 1}})),
      "plan.mapping: no place on the mesh of 2x4 for a rectangle of 2x3 live tiles; in the north-west corner "
      "these are dead: tile_1_0, tile_2_1");
}

TEST(Mapping, RefusesWhatDoesNotFit) {
  EXPECT_EQ(
      fault(plan(4, 3, 1, {{Axis::tp, {Placement::block, Shape{2, 2}}}, {Axis::pp, {Placement::row, {}}}}),
            mesh(4, 5)),
      "plan.mapping.pp: 3 copies of a rectangle of 2x2 tiles do not fit the mesh of 4x5: as 1x3 they take "
      "2x6");
  EXPECT_EQ(fault(plan(7, 1, 1), mesh(4, 4)),
            "plan.mapping.tp: 7 copies of a rectangle of 1x1 tiles do not fit the mesh of 4x4: as 1x7 they "
            "take 1x7, "
            "and no other factorization fits");
  EXPECT_EQ(fault(plan(6, 1, 1, {{Axis::tp, {Placement::block, Shape{2, 2}}}}), mesh(4, 4)),
            "plan.mapping.tp: shape 2x2 has 4 places, the degree is 6");
  EXPECT_EQ(fault(plan(1, 1, 1, {{Axis::pp, {Placement::snake, Shape{2, 2}}}}), mesh(4, 4)),
            "plan.mapping.pp: shape 2x2 has 4 places, the degree is 1");
}

}  // namespace
}  // namespace wafersim::workloads
