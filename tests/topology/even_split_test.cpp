#include "topology/even_split.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "policy_states.h"

namespace wafersim::topology {
namespace {

TEST(EvenSplit, HalvesWhereTwoOutputsLeadOn) {
  using enum Direction;
  const Mesh mesh = plain_mesh(2, 3);
  const auto policy = make_routing_policy("west_first", mesh);
  // From the north-west corner to the south-east one: 100 by each of two outputs, of which those on the
  // middle column split again.
  const LinkBytes loads = even_split_loads(*policy, mesh, {{0, 5, 200}});
  LinkBytes expected(mesh.link_slots(), 0);
  expected[Mesh::link(0, east)] = 100;
  expected[Mesh::link(0, south)] = 100;
  expected[Mesh::link(1, east)] = 50;
  expected[Mesh::link(1, south)] = 50;
  expected[Mesh::link(2, south)] = 50;
  expected[Mesh::link(3, east)] = 100;
  expected[Mesh::link(4, east)] = 150;
  EXPECT_EQ(loads, expected);
}

TEST(EvenSplit, LeftOverBytesGoToTheFirstOutput) {
  using enum Direction;
  const Mesh mesh = plain_mesh(2, 2);
  const auto policy = make_routing_policy("west_first", mesh);
  const LinkBytes loads = even_split_loads(*policy, mesh, {{0, 3, 7}});
  EXPECT_EQ(loads[Mesh::link(0, east)], 4u);
  EXPECT_EQ(loads[Mesh::link(0, south)], 3u);
}

TEST(EvenSplit, WhereThereIsOneWayItIsThatOfTheRoutes) {
  const Mesh mesh = plain_mesh(5, 5);
  RandomStream random(1, "split");
  Demands westward;
  for (int i = 0; i < 100; ++i) {
    const int from = 1 + static_cast<int>(random.below(4)),
              to = static_cast<int>(random.below(static_cast<std::uint64_t>(from)));
    const auto row = [&] { return static_cast<int>(random.below(5)); };
    westward.push_back({mesh.tile_at({from, row()}), mesh.tile_at({to, row()}), random.below(100)});
  }
  const auto policy = make_routing_policy("west_first", mesh);
  EXPECT_EQ(even_split_loads(*policy, mesh, westward), link_loads(*make_routing("xy", mesh), mesh, westward));
}

// Nothing is lost in splitting: bytes x hops are those of minimal routes.
TEST(EvenSplit, KeepsEveryByte) {
  for (const MeshSpec& spec : {MeshSpec{{6, 5}, {}, {}}, corner_cut({6, 5}, {2, 1}, false, false)}) {
    const Mesh mesh(spec);
    RandomStream random(2, "split");
    Demands demands;
    Bytes byte_hops = 0;
    for (int i = 0; i < 200; ++i) {
      const Demand demand{static_cast<TileId>(random.below(mesh.tile_count())),
                          static_cast<TileId>(random.below(mesh.tile_count())), random.below(1000)};
      if (!mesh.alive(demand.source) || !mesh.alive(demand.destination)) continue;
      demands.push_back(demand);
      byte_hops += demand.bytes * static_cast<Bytes>(mesh.distance(demand.source, demand.destination));
    }
    for (const char* name : {"north_last", "odd_even", "negative_first", "west_first"}) {
      if (mesh.has_faults() && std::string(name) != "north_last") continue;
      const LinkBytes loads = even_split_loads(*make_routing_policy(name, mesh), mesh, demands);
      EXPECT_EQ(summarize(loads, mesh).byte_hops, byte_hops) << name;
      EXPECT_GE(summarize(loads, mesh).largest, cut_bound(mesh, demands)) << name;
      for (LinkId link = 0; link < mesh.link_slots(); ++link) {
        EXPECT_TRUE(loads[link] == 0 || mesh.link_alive(link));
      }
    }
  }
}

}  // namespace
}  // namespace wafersim::topology
