#include "topology/network_facts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "policy_states.h"

namespace wafersim::topology {
namespace {

std::optional<UniformSaturation> saturation(const std::string& name, const Mesh& mesh,
                                            std::string* why = nullptr) {
  std::string reason;
  const auto result = uniform_saturation(*make_routing_policy(name, mesh), mesh, reason);
  if (why != nullptr) *why = reason;
  return result;
}

struct ReferenceRow {
  int k;
  std::string pattern;
  double channel_load, saturation, hops;
};

std::vector<ReferenceRow> reference() {
  std::ifstream in(WAFERSIM_SOURCE_DIR "/tests/reference/mesh_xy_saturation.csv");
  std::vector<ReferenceRow> rows;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    ReferenceRow row;
    char comma = 0;
    fields >> row.k >> comma;
    std::getline(fields, row.pattern, ',');
    fields >> row.channel_load >> comma >> row.saturation >> comma >> row.hops;
    rows.push_back(row);
  }
  return rows;
}

/// The permutations of the reference, one unit from each tile.
std::optional<Demands> permutation(const ReferenceRow& row, const Mesh& mesh) {
  int bits = 0;
  while (1 << bits < row.k * row.k) ++bits;
  const std::map<std::string, std::function<TileId(TileId)>> patterns = {
      {"transpose",
       [&](TileId t) {
         return mesh.tile_at({mesh.coord(t).y, mesh.coord(t).x});
       }},
      {"bit_complement", [&](TileId t) { return mesh.tile_count() - 1 - t; }},
      {"tornado_x",
       [&](TileId t) {
         const Coord at = mesh.coord(t);
         return mesh.tile_at({(at.x + (row.k + 1) / 2 - 1) % row.k, at.y});
       }},
      {"perfect_shuffle", [&](TileId t) { return (t << 1 | t >> (bits - 1)) & (mesh.tile_count() - 1); }},
      {"bit_reverse", [&](TileId t) {
         TileId reversed = 0;
         for (int i = 0; i < bits; ++i) reversed |= (t >> i & 1U) << (bits - 1 - i);
         return reversed;
       }}};
  const auto found = patterns.find(row.pattern);
  if (found == patterns.end()) return std::nullopt;
  Demands demands;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) demands.push_back({tile, found->second(tile), 1});
  return demands;
}

constexpr double kDigits = 0.5001e-4;  ///< the reference has four decimals

TEST(NetworkFacts, XyHasTheChannelLoadsOfTheReference) {
  int seen = 0;
  for (const ReferenceRow& row : reference()) {
    SCOPED_TRACE(row.pattern + " " + std::to_string(row.k));
    const Mesh mesh = plain_mesh(row.k, row.k);
    const auto distances = measure_distances(mesh);
    if (row.pattern == "uniform_including_self") {
      EXPECT_NEAR(saturation("xy", mesh)->with_self.to_double(), row.saturation, kDigits);
      EXPECT_NEAR(distances->mean->to_double(), row.hops, kDigits);
    } else if (row.pattern == "uniform_excluding_self") {
      EXPECT_NEAR(saturation("xy", mesh)->without_self.to_double(), row.saturation, kDigits);
      EXPECT_NEAR(distances->mean_of_others->to_double(), row.hops, kDigits);
    } else {
      const auto demands = permutation(row, mesh);
      ASSERT_TRUE(demands);
      const TrafficFacts facts = traffic_facts(*make_routing_policy("xy", mesh), mesh, *demands);
      EXPECT_NEAR(facts.largest.to_double(), row.channel_load, kDigits);
      EXPECT_NEAR(facts.byte_hops.to_double() / mesh.tile_count(), row.hops, kDigits);
    }
    ++seen;
  }
  EXPECT_EQ(seen, 28);
}

TEST(NetworkFacts, SaturationOfUniformTrafficByPolicy) {
  const Mesh mesh = plain_mesh(8, 8);
  for (const char* name : {"xy", "yx", "o1turn"}) {
    EXPECT_EQ(saturation(name, mesh)->with_self, Rational(1, 2)) << name;
    EXPECT_EQ(saturation(name, mesh)->without_self, Rational(63, 128)) << name;
    EXPECT_FALSE(saturation(name, mesh)->bound);
  }
  // Twice the hops, and a tile does not send to itself by way of others.
  EXPECT_EQ(saturation("valiant", mesh)->without_self, Rational(1, 4));
  // What no routes exceed is what xy reaches.
  for (const char* name : {"west_first", "north_last", "negative_first", "odd_even"}) {
    EXPECT_TRUE(saturation(name, mesh)->bound);
    EXPECT_EQ(saturation(name, mesh)->with_self, Rational(1, 2)) << name;
  }
}

TEST(NetworkFacts, SaturationNeedsAWayForEveryPair) {
  std::string why;
  EXPECT_FALSE(saturation("xy", plain_mesh(1, 1), &why));
  EXPECT_EQ(why, "there are no two live tiles");
  const Mesh faulty(MeshSpec{{4, 4}, {{1, 1}}, {}});
  EXPECT_FALSE(saturation("xy", faulty, &why));
  EXPECT_NE(why.find("tile_1_1 on its way is dead"), std::string::npos) << why;
  EXPECT_TRUE(saturation("table", faulty));
  EXPECT_FALSE(saturation("table", Mesh(MeshSpec{{1, 3}, {{1, 0}}, {}}), &why));
  EXPECT_NE(why.find("cut every live path"), std::string::npos) << why;
}

// Of all minimal routes o1turn halves the largest load of the transpose under xy, k - 1.
TEST(NetworkFacts, DrawnLoadsAreMeans) {
  const Mesh mesh = plain_mesh(8, 8);
  Demands demands;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile)
    demands.push_back({tile, mesh.tile_at({mesh.coord(tile).y, mesh.coord(tile).x}), 1});
  EXPECT_EQ(traffic_facts(*make_routing_policy("xy", mesh), mesh, demands).largest, Rational(7));
  const TrafficFacts o1turn = traffic_facts(*make_routing_policy("o1turn", mesh), mesh, demands);
  EXPECT_EQ(o1turn.largest, Rational(7, 2));
  EXPECT_EQ(o1turn.bytes, 56u) << "a tile and itself are left out";
  EXPECT_EQ(o1turn.pairs, 56u);
  EXPECT_EQ(o1turn.mean, o1turn.byte_hops / Rational(4 * 8 * 7));
}

TEST(NetworkFacts, HottestLinksComeFirst) {
  const Mesh mesh = plain_mesh(1, 4);
  const auto policy = make_routing_policy("xy", mesh);
  const TrafficFacts facts = traffic_facts(*policy, mesh, {{0, 3, 5}, {1, 2, 7}, {3, 2, 12}}, 3);
  ASSERT_EQ(facts.hottest.size(), 3u);
  EXPECT_EQ(facts.hottest[0].link, Mesh::link(1, Direction::east));
  EXPECT_EQ(facts.hottest[0].bytes, Rational(12));
  EXPECT_EQ(facts.hottest[1].link, Mesh::link(3, Direction::west)) << "of equal ones the first";
  EXPECT_EQ(facts.hottest[2].bytes, Rational(5));
  EXPECT_EQ(facts.bound, 12u);
}

TEST(NetworkFacts, OfAScenarioWithoutTrafficAndOneThatIsBlocked) {
  const Mesh mesh(MeshSpec{{3, 3}, {{1, 1}}, {}});
  const auto policy = make_routing_policy("xy", mesh);
  const NetworkFacts idle = network_facts(*policy, mesh, 2, {{0, 0, 5}});
  EXPECT_FALSE(idle.traffic);
  EXPECT_EQ(idle.blocked, "");
  EXPECT_EQ(idle.live_tiles, 8u);
  EXPECT_EQ(idle.links, 24u);
  EXPECT_EQ(idle.live_links, 16u);
  const NetworkFacts blocked = network_facts(*policy, mesh, 2, {{3, 5, 1}});
  EXPECT_FALSE(blocked.traffic);
  EXPECT_NE(blocked.blocked.find("tile_0_1 to tile_2_1"), std::string::npos) << blocked.blocked;
}

}  // namespace
}  // namespace wafersim::topology
