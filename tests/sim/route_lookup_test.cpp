#include "sim/route_lookup.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/port_clock.h"

namespace wafersim::sim {
namespace {

class RouteLookupTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RouteLookupTest, SaysWhatTheRoutingFunctionSays) {
  for (const topology::Shape shape : {topology::Shape{1, 9}, {9, 1}, {5, 7}, {6, 6}}) {
    const topology::Mesh mesh({shape, {}, {}});
    const auto routing = topology::make_routing(GetParam(), mesh);
    const RouteLookup lookup(mesh, *routing);
    for (TileId at = 0; at < mesh.tile_count(); ++at) {
      for (TileId to = 0; to < mesh.tile_count(); ++to) {
        ASSERT_EQ(lookup.next(at, to), routing->next(at, to)) << topology::to_string(shape) << ' ' << at << ' ' << to;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Names, RouteLookupTest, ::testing::Values("xy", "yx", "table"));

TEST(ExactTimeTest, TheLaterOfTwoIsTheirMaximum) {
  const ExactTime times[] = {{0, 0}, {0, 1}, {1, 0}, {1, 6}, {kNever, 0}, {kNever, 5}};
  for (const ExactTime& a : times) {
    for (const ExactTime& b : times) EXPECT_EQ(ExactTime::later(a, b), std::max(a, b));
  }
}

}  // namespace
}  // namespace wafersim::sim
