#include "topology/routing.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace wafersim::topology {
namespace {

std::string error_of_route(const std::string& policy, const MeshSpec& spec, Coord source, Coord destination) {
  const Mesh mesh(spec);
  const auto routing = make_routing(policy, mesh);
  try {
    route(*routing, mesh, mesh.tile_at(source), mesh.tile_at(destination));
  } catch (const PlanError& error) {
    return error.what();
  }
  return "no error";
}

bool moves_along_x(LinkId link) {
  const Direction direction = Mesh::link_direction(link);
  return direction == Direction::east || direction == Direction::west;
}

/// Checks that `links` lead from `source` to `destination`, one after the other.
void expect_connected(const std::vector<LinkId>& links, const Mesh& mesh, TileId source, TileId destination) {
  TileId at = source;
  for (const LinkId link : links) {
    ASSERT_EQ(Mesh::link_source(link), at);
    at = mesh.neighbour(at, Mesh::link_direction(link));
  }
  ASSERT_EQ(at, destination);
}

/// All pairs of an 8x8 mesh: minimal, and never along the first axis again after the second.
void expect_dimension_order(const std::string& policy, bool x_first) {
  const Mesh mesh(MeshSpec{{8, 8}, {}, {}});
  const auto routing = make_routing(policy, mesh);
  EXPECT_EQ(routing->name(), policy);
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
      const auto links = route(*routing, mesh, source, destination);
      ASSERT_EQ(links.size(), static_cast<std::size_t>(mesh.distance(source, destination)));
      expect_connected(links, mesh, source, destination);
      bool second_axis = false;
      for (const LinkId link : links) {
        const bool on_second = moves_along_x(link) != x_first;
        ASSERT_TRUE(on_second || !second_axis) << mesh.name(source) << " to " << mesh.name(destination);
        second_axis = second_axis || on_second;
      }
    }
  }
}

TEST(DimensionOrder, XyGoesXFirst) { expect_dimension_order("xy", true); }

TEST(DimensionOrder, YxGoesYFirst) { expect_dimension_order("yx", false); }

TEST(DimensionOrder, RouteToItselfIsEmpty) {
  const Mesh mesh(MeshSpec{{2, 2}, {}, {}});
  const auto routing = make_routing("xy", mesh);
  EXPECT_EQ(routing->next(3, 3), Hop::local);
  EXPECT_TRUE(route(*routing, mesh, 3, 3).empty());
}

TEST(DimensionOrder, ADeadLinkIsUnreachableOnlyWhereItIsWanted) {
  const Mesh mesh(MeshSpec{{4, 4}, {}, {{{1, 0}, {2, 0}}}});
  const auto routing = make_routing("xy", mesh);
  const TileId before = mesh.tile_at({1, 0});
  EXPECT_EQ(routing->next(mesh.tile_at({0, 0}), mesh.tile_at({3, 0})), Hop::east)
      << "not yet at the dead link";
  EXPECT_EQ(routing->next(before, mesh.tile_at({3, 0})), Hop::unreachable);
  EXPECT_EQ(routing->next(before, mesh.tile_at({1, 3})), Hop::south);
  EXPECT_EQ(routing->next(mesh.tile_at({2, 0}), mesh.tile_at({0, 0})), Hop::unreachable) << "dead both ways";
}

TEST(Route, ErrorNamesTheDeadLinkAndTheWayOut) {
  EXPECT_EQ(error_of_route("xy", {{4, 4}, {}, {{{1, 0}, {2, 0}}}}, {0, 0}, {3, 3}),
            "no 'xy' route from tile_0_0 to tile_3_3: link tile_1_0>tile_2_0 on its way is dead; 'routing: "
            "table' would "
            "avoid it");
  EXPECT_EQ(error_of_route("yx", {{4, 4}, {}, {{{1, 0}, {2, 0}}}}, {0, 0}, {3, 3}), "no error");
}

TEST(Route, ErrorNamesTheDeadTile) {
  EXPECT_EQ(error_of_route("yx", {{4, 4}, {{0, 2}}, {}}, {0, 0}, {3, 3}),
            "no 'yx' route from tile_0_0 to tile_3_3: tile_0_2 on its way is dead; 'routing: table' would "
            "avoid it");
}

TEST(Route, ErrorNamesADeadEnd) {
  for (const std::string& policy : routing_names()) {
    EXPECT_EQ(error_of_route(policy, {{4, 4}, {{3, 3}}, {}}, {0, 0}, {3, 3}),
              "no '" + policy + "' route from tile_0_0 to tile_3_3: tile_3_3 is dead");
    EXPECT_EQ(error_of_route(policy, {{4, 4}, {{3, 3}}, {}}, {3, 3}, {0, 0}),
              "no '" + policy + "' route from tile_3_3 to tile_0_0: tile_3_3 is dead");
  }
}

TEST(Route, ErrorSaysWhenThePairIsCutApart) {
  EXPECT_EQ(
      error_of_route("table", {{1, 4}, {{2, 0}}, {}}, {0, 0}, {3, 0}),
      "no 'table' route from tile_0_0 to tile_3_0: dead tiles or links cut every live path between them");
}

class Circling : public Routing {
 public:
  const std::string& name() const override { return name_; }
  Hop next(TileId at, TileId) const override { return at == 0 ? Hop::east : Hop::west; }

 private:
  std::string name_ = "circling";
};

TEST(Route, ARouteWithoutEndIsABug) {
  const Mesh mesh(MeshSpec{{1, 4}, {}, {}});
  EXPECT_THROW(route(Circling(), mesh, 0, 3), InternalError);
  EXPECT_THROW(route(Circling(), mesh, 0, 4), InternalError) << "outside the mesh";
}

TEST(MakeRouting, KnowsItsNames) {
  const Mesh mesh(MeshSpec{{2, 2}, {}, {}});
  EXPECT_EQ(routing_names(), (std::vector<std::string>{"xy", "yx", "table", "balanced"}));
  for (const std::string& name : routing_names()) EXPECT_EQ(make_routing(name, mesh)->name(), name);
}

TEST(MakeRouting, RefusesUnknownNames) {
  const Mesh mesh(MeshSpec{{2, 2}, {}, {}});
  try {
    make_routing("zigzag", mesh);
    FAIL() << "did not throw";
  } catch (const PlanError& error) {
    EXPECT_STREQ(error.what(), "unknown routing 'zigzag'; there are xy, yx, table, balanced");
  }
}

}  // namespace
}  // namespace wafersim::topology
