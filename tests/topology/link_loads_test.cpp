#include "topology/link_loads.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace wafersim::topology {
namespace {

TEST(LinkLoads, EveryLinkOfARouteCarriesTheDemand) {
  const Mesh mesh(MeshSpec{{3, 3}, {}, {}});
  const auto xy = make_routing("xy", mesh);
  // From the north-west corner to the south-east one, and from there one hop north.
  const LinkBytes loads = link_loads(*xy, mesh, {{0, 8, 100}, {8, 5, 7}});
  LinkBytes expected(mesh.link_slots(), 0);
  for (const LinkId link : route(*xy, mesh, 0, 8)) expected[link] += 100;
  expected[Mesh::link(8, Direction::north)] = 7;
  EXPECT_EQ(loads, expected);
  EXPECT_EQ(summarize(loads, mesh), (LoadSummary{100, 4 * 100 + 7}));
}

/// Hop by hop, as routes go.
LinkBytes walked(const Routing& routing, const Mesh& mesh, const Demands& demands) {
  LinkBytes loads(mesh.link_slots(), 0);
  for (const Demand& demand : demands) {
    for (const LinkId link : route(routing, mesh, demand.source, demand.destination))
      loads[link] += demand.bytes;
  }
  return loads;
}

TEST(LinkLoads, AreThoseOfTheRoutesWhateverThePolicy) {
  const Mesh mesh(MeshSpec{{4, 7}, {}, {}});
  RandomStream random(1, "loads");
  Demands demands;
  for (int i = 0; i < 200; ++i) {
    demands.push_back(
        {static_cast<TileId>(random.below(28)), static_cast<TileId>(random.below(28)), random.below(1000)});
  }
  for (const char* policy : {"xy", "yx", "table"}) {
    const auto routing = make_routing(policy, mesh);
    EXPECT_EQ(routing->straight_first().has_value(), std::string(policy) != "table");
    EXPECT_EQ(link_loads(*routing, mesh, demands), walked(*routing, mesh, demands)) << policy;
    LoadMeter meter(*routing, mesh);
    for (const Demand& demand : demands) EXPECT_TRUE(meter.add(demand));
    EXPECT_EQ(meter.loads(), meter.loads()) << "asking changes nothing";
    meter.clear();
    EXPECT_EQ(summarize(meter.loads(), mesh), LoadSummary{});
  }
}

TEST(LinkLoads, NothingLoadsNothing) {
  const Mesh mesh(MeshSpec{{2, 2}, {}, {}});
  const auto xy = make_routing("xy", mesh);
  EXPECT_EQ(summarize(link_loads(*xy, mesh, {{3, 3, 50}, {0, 1, 0}}), mesh), LoadSummary{});
}

TEST(LinkLoads, ABlockedDemandIsRefusedWithTheReason) {
  const Mesh mesh(MeshSpec{{1, 3}, {}, {{{1, 0}, {2, 0}}}});
  const auto xy = make_routing("xy", mesh);
  try {
    link_loads(*xy, mesh, {{0, 2, 1}});
    FAIL() << "did not throw";
  } catch (const PlanError& error) {
    EXPECT_NE(std::string(error.what()).find("link tile_1_0>tile_2_0 on its way is dead"), std::string::npos);
  }
}

TEST(LinkLoads, LessOnTheLargestLinkIsBetterThanFewerHops) {
  EXPECT_LT((LoadSummary{1, 100}), (LoadSummary{2, 10}));
  EXPECT_LT((LoadSummary{1, 10}), (LoadSummary{1, 11}));
}

TEST(CutBound, IsTheBytesOverACutPerLiveLink) {
  const Mesh mesh(MeshSpec{{2, 4}, {}, {}});
  // 90 bytes over the middle on two links, whichever way they take.
  EXPECT_EQ(cut_bound(mesh, {{0, 3, 60}, {5, 6, 30}}), 45u);
  EXPECT_EQ(cut_bound(mesh, {{0, 3, 60}, {6, 5, 30}}), 30u) << "directions are apart";
  // A corner has two links; three bytes on two links load one with two.
  EXPECT_EQ(cut_bound(mesh, {{0, 7, 3}}), 2u);
  const Mesh cut(MeshSpec{{2, 4}, {}, {{{1, 0}, {2, 0}}}});
  EXPECT_EQ(cut_bound(cut, {{0, 3, 60}, {5, 6, 30}}), 90u);
  EXPECT_EQ(cut_bound(mesh, {}), 0u);
}

TEST(Demands, MergedByPair) {
  EXPECT_EQ(merged({{2, 1, 5}, {0, 1, 3}, {2, 1, 6}, {4, 4, 9}, {0, 3, 0}}),
            (Demands{{0, 1, 3}, {2, 1, 11}}));
}

}  // namespace
}  // namespace wafersim::topology
