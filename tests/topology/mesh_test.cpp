#include "topology/mesh.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "topology/mesh_graph.h"

namespace wafersim::topology {
namespace {

Mesh mesh_of(int rows, int cols) { return Mesh(MeshSpec{{rows, cols}, {}, {}}); }

std::string error_of(const MeshSpec& spec) {
  try {
    const Mesh mesh(spec);
  } catch (const PlanError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Direction, OppositeAndName) {
  EXPECT_EQ(opposite(Direction::north), Direction::south);
  EXPECT_EQ(opposite(Direction::east), Direction::west);
  EXPECT_EQ(opposite(Direction::south), Direction::north);
  EXPECT_EQ(opposite(Direction::west), Direction::east);
  EXPECT_STREQ(to_string(Direction::north), "north");
  EXPECT_STREQ(to_string(Direction::west), "west");
}

TEST(Shape, ParsesRowsThenColumns) {
  Shape shape;
  ASSERT_TRUE(parse_shape("4x16", shape));
  EXPECT_EQ(shape, (Shape{4, 16}));
  EXPECT_EQ(shape.size(), 64);
  EXPECT_EQ(to_string(shape), "4x16");
}

TEST(Shape, RefusesWhatIsNoShape) {
  for (const char* text : {"", "x", "4", "4x", "x4", "0x4", "4x0", "-1x4", "4x4x4", "4 x 4", "4X4", "+4x4",
                           "4x4 ", "99999999999x1"}) {
    Shape shape{7, 7};
    EXPECT_FALSE(parse_shape(text, shape)) << text;
    EXPECT_EQ(shape, (Shape{7, 7})) << text << " changed the shape";
  }
}

TEST(Mesh, CoordinatesAreColumnThenRowFromTheNorthWest) {
  const Mesh mesh = mesh_of(3, 5);
  EXPECT_EQ(mesh.tile_count(), 15U);
  EXPECT_EQ(mesh.tile_at({4, 0}), 4U);
  EXPECT_EQ(mesh.tile_at({0, 1}), 5U);
  EXPECT_EQ(mesh.coord(13), (Coord{3, 2}));
  EXPECT_TRUE(mesh.contains({4, 2}));
  EXPECT_FALSE(mesh.contains({5, 2}));
  EXPECT_FALSE(mesh.contains({0, -1}));
}

TEST(Mesh, NeighboursInAllDirections) {
  const Mesh mesh = mesh_of(3, 5);
  const TileId centre = mesh.tile_at({2, 1});
  EXPECT_EQ(mesh.neighbour(centre, Direction::north), mesh.tile_at({2, 0}));
  EXPECT_EQ(mesh.neighbour(centre, Direction::east), mesh.tile_at({3, 1}));
  EXPECT_EQ(mesh.neighbour(centre, Direction::south), mesh.tile_at({2, 2}));
  EXPECT_EQ(mesh.neighbour(centre, Direction::west), mesh.tile_at({1, 1}));
}

TEST(Mesh, EdgesHaveNoNeighbourAndNoWrapAround) {
  const Mesh mesh = mesh_of(3, 5);
  for (int x = 0; x < 5; ++x) {
    EXPECT_EQ(mesh.neighbour(mesh.tile_at({x, 0}), Direction::north), kNoTile);
    EXPECT_EQ(mesh.neighbour(mesh.tile_at({x, 2}), Direction::south), kNoTile);
  }
  for (int y = 0; y < 3; ++y) {
    EXPECT_EQ(mesh.neighbour(mesh.tile_at({0, y}), Direction::west), kNoTile);
    EXPECT_EQ(mesh.neighbour(mesh.tile_at({4, y}), Direction::east), kNoTile);
  }
}

TEST(Mesh, LinksAreNumberedByTileAndDirection) {
  const LinkId link = Mesh::link(7, Direction::south);
  EXPECT_EQ(link, 7U * kDirections + 2);
  EXPECT_EQ(Mesh::link_source(link), 7U);
  EXPECT_EQ(Mesh::link_direction(link), Direction::south);
}

TEST(Mesh, LiveLinksAreThoseInsideTheMesh) {
  const Mesh mesh = mesh_of(3, 5);
  int live = 0;
  for (LinkId link = 0; link < mesh.link_slots(); ++link) live += mesh.link_alive(link) ? 1 : 0;
  EXPECT_EQ(live, 2 * (3 * 4 + 2 * 5)) << "both directions of rows (cols-1) + (rows-1) cols";
  EXPECT_FALSE(mesh.has_faults());
}

TEST(Mesh, DirectionToFindsNeighboursOnly) {
  const Mesh mesh = mesh_of(3, 5);
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    for (TileId other = 0; other < mesh.tile_count(); ++other) {
      const auto direction = mesh.direction_to(tile, other);
      ASSERT_EQ(direction.has_value(), mesh.distance(tile, other) == 1);
      if (direction) {
        EXPECT_EQ(mesh.neighbour(tile, *direction), other);
      }
    }
  }
}

TEST(Mesh, DistanceIsManhattan) {
  const Mesh mesh = mesh_of(4, 6);
  EXPECT_EQ(mesh.distance(mesh.tile_at({0, 0}), mesh.tile_at({5, 3})), 8);
  EXPECT_EQ(mesh.distance(mesh.tile_at({4, 1}), mesh.tile_at({1, 3})), 5);
  EXPECT_EQ(mesh.distance(9, 9), 0);
}

TEST(Mesh, NamesTilesAndLinksByColumnAndRow) {
  const Mesh mesh = mesh_of(4, 6);
  const TileId tile = mesh.tile_at({3, 1});
  EXPECT_EQ(mesh.name(tile), "tile_3_1");
  EXPECT_EQ(mesh.link_name(Mesh::link(tile, Direction::east)), "tile_3_1>tile_4_1");
  EXPECT_EQ(mesh.link_name(Mesh::link(tile, Direction::north)), "tile_3_1>tile_3_0");
  EXPECT_EQ(mesh.link_name(Mesh::link(0, Direction::west)), "tile_0_0>outside");
}

TEST(Mesh, DeadTileTakesItsLinksWithIt) {
  const Mesh mesh(MeshSpec{{3, 3}, {{1, 1}}, {}});
  const TileId dead = mesh.tile_at({1, 1});
  EXPECT_TRUE(mesh.has_faults());
  EXPECT_FALSE(mesh.alive(dead));
  for (const Direction direction : kCompass) {
    EXPECT_FALSE(mesh.link_alive(Mesh::link(dead, direction)));
    EXPECT_FALSE(mesh.link_alive(Mesh::link(mesh.neighbour(dead, direction), opposite(direction))));
  }
  EXPECT_TRUE(mesh.alive(mesh.tile_at({0, 1})));
  EXPECT_TRUE(mesh.link_alive(Mesh::link(mesh.tile_at({0, 0}), Direction::east)));
}

TEST(Mesh, DeadLinkIsDeadBothWays) {
  const Mesh mesh(MeshSpec{{3, 3}, {}, {{{1, 2}, {1, 1}}}});
  EXPECT_TRUE(mesh.has_faults());
  EXPECT_FALSE(mesh.link_alive(Mesh::link(mesh.tile_at({1, 2}), Direction::north)));
  EXPECT_FALSE(mesh.link_alive(Mesh::link(mesh.tile_at({1, 1}), Direction::south)));
  EXPECT_TRUE(mesh.alive(mesh.tile_at({1, 1})));
}

TEST(Mesh, ErrorsNameTheFaultAndTheMesh) {
  EXPECT_EQ(error_of({{4, 8}, {{8, 0}}, {}}),
            "dead tile (8, 0) is outside the 4x8 mesh: (x, y) = (column, row) within (0..7, 0..3)");
  EXPECT_EQ(error_of({{4, 8}, {}, {{{0, 3}, {0, 4}}}}),
            "dead link (0, 3)-(0, 4) is outside the 4x8 mesh: (x, y) = (column, row) within (0..7, 0..3)");
  EXPECT_EQ(error_of({{4, 8}, {}, {{{0, 0}, {1, 1}}}}),
            "dead link (0, 0)-(1, 1) does not join two neighbours");
  EXPECT_EQ(error_of({{4, 8}, {}, {{{2, 2}, {2, 2}}}}),
            "dead link (2, 2)-(2, 2) does not join two neighbours");
  EXPECT_EQ(error_of({{4, 8}, {}, {{{7, 0}, {0, 1}}}}),
            "dead link (7, 0)-(0, 1) does not join two neighbours");
}

TEST(Mesh, RefusesImpossibleShapes) {
  EXPECT_NE(error_of({{0, 8}, {}, {}}).find("mesh of 0x8 tiles cannot be built"), std::string::npos);
  EXPECT_NE(error_of({{100'000, 100'000}, {}, {}}).find("at most 134217728"), std::string::npos);
}

TEST(LiveGraph, HasAnEdgeForEachLiveLink) {
  const Mesh mesh(MeshSpec{{3, 3}, {{1, 1}}, {{{0, 0}, {1, 0}}}});
  const Graph graph = live_graph(mesh);
  EXPECT_EQ(boost::num_vertices(graph), 9U);
  EXPECT_EQ(boost::num_edges(graph), 2U * (12 - 4 - 1));
  EXPECT_EQ(boost::out_degree(mesh.tile_at({1, 1}), graph), 0U);
  EXPECT_EQ(boost::out_degree(mesh.tile_at({0, 0}), graph), 1U);
}

}  // namespace
}  // namespace wafersim::topology
