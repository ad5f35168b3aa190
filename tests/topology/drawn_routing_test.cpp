// Policies that draw a packet's way at its source, and what all have in common.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "policy_states.h"
#include "random_faults.h"
#include "topology/dependency_graph.h"
#include "topology/link_loads.h"

namespace wafersim::topology {
namespace {

std::vector<Channel> way_of(const RoutingPolicy& policy, const Mesh& mesh, TileId source, TileId destination,
                            Travel travel) {
  std::vector<Channel> links;
  for (TileId at = source;;) {
    arrive(travel, at, destination);
    const std::optional<Direction> out = to_direction(policy.fixed(travel.vc_class)->next(at, travel.target));
    if (!out) return links;
    links.push_back({Mesh::link(at, *out), travel.vc_class});
    at = mesh.neighbour(at, *out);
  }
}

TEST(O1Turn, EachClassIsDimensionOrder) {
  const Mesh mesh = plain_mesh(5, 6);
  const auto policy = make_routing_policy("o1turn", mesh);
  EXPECT_EQ(policy->vc_classes(), 2u);
  EXPECT_EQ(policy->fixed(0)->straight_first(), Dimension::x);
  EXPECT_EQ(policy->fixed(1)->straight_first(), Dimension::y);
  expect_connected(*policy, mesh, true);
}

TEST(O1Turn, DrawsHalfOfThePacketsForEachClass) {
  const Mesh mesh = plain_mesh(4, 4);
  const auto policy = make_routing_policy("o1turn", mesh);
  int first = 0;
  for (std::uint64_t number = 0; number < 10'000; ++number)
    first += policy->depart(3, 12, packet_draw(7, 3, 12, number)).vc_class == 0 ? 1 : 0;
  EXPECT_NEAR(first, 5000, 200) << "four standard deviations";
}

TEST(O1Turn, IsRefusedWhereOneOfTheTwoRoutesIsDead) {
  const Mesh mesh(MeshSpec{{4, 4}, {{3, 0}}, {}});
  try {
    make_routing_policy("o1turn", mesh);
    FAIL() << "did not throw";
  } catch (const PlanError& error) {
    EXPECT_STREQ(
        error.what(),
        "no 'o1turn' route from tile_2_0 to tile_3_1: tile_3_0 on its way is dead; 'routing: table' would "
        "avoid it");
  }
}

TEST(Valiant, GoesToAnyLiveTileFirstAndThenToItsDestination) {
  for (const MeshSpec& spec : {MeshSpec{{4, 5}, {}, {}}, MeshSpec{{4, 5}, {{2, 2}}, {{{0, 0}, {1, 0}}}}}) {
    const Mesh mesh(spec);
    const auto policy = make_routing_policy("valiant", mesh);
    expect_connected(*policy, mesh, false);
    const auto starts = departures(*policy, 0, 7);
    EXPECT_EQ(starts.size(), mesh.tile_count() - spec.dead_tiles.size());
    for (const Travel start : starts) {
      EXPECT_TRUE(mesh.alive(start.target));
      std::vector<LinkId> expected;
      for (const LinkId link : route(*policy->fixed(0), mesh, 0, start.target)) expected.push_back(link);
      for (const LinkId link : route(*policy->fixed(1), mesh, start.target, 7)) expected.push_back(link);
      std::vector<LinkId> links;
      for (const Channel& channel : way_of(*policy, mesh, 0, 7, start)) links.push_back(channel.link);
      if (start.target == 7) expected = route(*policy->fixed(0), mesh, 0, 7);
      EXPECT_EQ(links, expected);
    }
    EXPECT_EQ(departures(*policy, 3, 3), std::vector<Travel>({Travel{3, 0}})) << "to itself it stays";
  }
}

TEST(Valiant, DrawsAllTilesEquallyOften) {
  const Mesh mesh = plain_mesh(2, 5);
  const auto policy = make_routing_policy("valiant", mesh);
  std::vector<int> times(mesh.tile_count(), 0);
  for (std::uint64_t number = 0; number < 20'000; ++number)
    ++times[policy->depart(1, 8, packet_draw(1, 1, 8, number)).target];
  for (const int count : times) EXPECT_NEAR(count, 2000, 170) << "four standard deviations";
}

TEST(Valiant, IsRefusedOnAMeshThatIsCutApart) {
  const Mesh mesh(MeshSpec{{1, 5}, {{2, 0}}, {}});
  try {
    make_routing_policy("valiant", mesh);
    FAIL() << "did not throw";
  } catch (const PlanError& error) {
    EXPECT_STREQ(
        error.what(),
        "no 'valiant' route from tile_3_0 to tile_0_0: dead tiles or links cut every live path between "
        "them");
  }
}

/// What demands load, added up over every way in which a packet may start; all are equally likely.
void expect_mean_over_all_draws(const std::string& name, const Mesh& mesh) {
  const auto policy = make_routing_policy(name, mesh);
  RandomStream random(3, "demands");
  Demands demands = {{6, 6, 1000}};
  for (int i = 0; i < 40; ++i) {
    const Demand demand{static_cast<TileId>(random.below(mesh.tile_count())),
                        static_cast<TileId>(random.below(mesh.tile_count())), random.below(1000)};
    if (mesh.alive(demand.source) && mesh.alive(demand.destination)) demands.push_back(demand);
  }
  LinkBytes sums(mesh.link_slots(), 0);
  Bytes ways = 0;
  for (const Demand& demand : merged(demands)) {
    const auto starts = departures(*policy, demand.source, demand.destination);
    ways = starts.size();
    for (const Travel start : starts) {
      for (const Channel& channel : way_of(*policy, mesh, demand.source, demand.destination, start))
        sums[channel.link] += demand.bytes;
    }
  }
  const ExpectedLoads loads = policy->expected_loads(mesh, demands);
  EXPECT_EQ(loads.parts_per_byte, ways);
  EXPECT_EQ(loads.parts, sums) << name;
}

TEST(ExpectedLoads, AreTheMeanOverAllDraws) {
  for (const char* name : {"o1turn", "valiant"}) {
    expect_mean_over_all_draws(name, plain_mesh(4, 5));
    expect_mean_over_all_draws(name, plain_mesh(1, 7));
  }
  expect_mean_over_all_draws("valiant", Mesh(MeshSpec{{4, 4}, {{1, 1}}, {{{2, 3}, {3, 3}}}}));
}

TEST(ExpectedLoads, OfDeadTilesAreRefused) {
  const Mesh mesh(MeshSpec{{4, 4}, {{0, 0}}, {}});
  for (const char* name : {"valiant", "north_last", "table"})
    EXPECT_THROW(make_routing_policy(name, mesh)->expected_loads(mesh, {{0, 5, 1}}), PlanError) << name;
}

TEST(RoutingPolicies, AreThoseOfTheList) {
  const Mesh mesh = plain_mesh(3, 3);
  EXPECT_EQ(routing_policy_names(),
            (std::vector<std::string>{"xy", "yx", "table", "balanced", "o1turn", "valiant", "west_first",
                                      "north_last", "negative_first", "odd_even"}));
  for (const std::string& name : routing_policy_names())
    EXPECT_EQ(make_routing_policy(name, mesh)->name(), name);
  EXPECT_THROW(make_routing_policy("zigzag", mesh), PlanError);
}

TEST(RoutingPolicies, AFixedOneHasTheOutputOfItsRoute) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Mesh mesh(random_faulty_mesh(seed));
    for (const std::string& name : routing_names()) {
      const auto policy = make_routing_policy(name, mesh);
      EXPECT_FALSE(policy->draws());
      for (TileId at = 0; at < mesh.tile_count(); ++at) {
        for (TileId to = 0; to < mesh.tile_count(); ++to) {
          if (!mesh.alive(at) || !mesh.alive(to)) continue;
          EXPECT_EQ(policy->depart(at, to, ~0ULL), (Travel{to, 0}));
          const Hop hop = policy->fixed(0)->next(at, to);
          EXPECT_EQ(policy->outputs(at, Hop::local, {to}), hop == Hop::unreachable ? 0 : output_bit(hop));
        }
      }
    }
  }
}

TEST(VcClasses, ShareOutAllChannelsWithoutOverlap) {
  for (unsigned channels = 1; channels <= 12; ++channels) {
    for (unsigned classes = 1; classes <= channels; ++classes) {
      unsigned next = 0;
      for (unsigned c = 0; c < classes; ++c) {
        const VcRange range = vcs_of_class(c, classes, channels);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.count, channels / classes);
        EXPECT_LE(range.count, channels / classes + 1);
        next += range.count;
      }
      EXPECT_EQ(next, channels);
    }
  }
}

TEST(VcClasses, ShareAChannelWhereThereAreTooFew) {
  for (unsigned classes = 1; classes <= 5; ++classes) {
    for (unsigned channels = 1; channels <= classes; ++channels) {
      for (unsigned c = 0; c < classes; ++c)
        EXPECT_EQ(vcs_of_class(c, classes, channels), (VcRange{c * channels / classes, 1}));
    }
  }
  EXPECT_THROW(vcs_of_class(2, 2, 1), InternalError);
  EXPECT_THROW(vcs_of_class(0, 2, 0), InternalError);
}

TEST(PacketDraw, DependsOnEachOfItsParts) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (TileId source = 0; source < 8; ++source) {
      for (TileId destination = 0; destination < 8; ++destination) {
        for (std::uint64_t number = 0; number < 8; ++number)
          seen.insert(packet_draw(seed, source, destination, number));
      }
    }
  }
  EXPECT_EQ(seen.size(), 4u * 8 * 8 * 8);
}

TEST(RequireWay, AsksWhatAPacketMightMeet) {
  const Mesh mesh(MeshSpec{{4, 4}, {{0, 0}}, {}});
  const auto xy = make_routing_policy("xy", mesh);
  EXPECT_THROW(require_way(*xy, mesh, 1, 4), PlanError) << "over the dead corner";
  EXPECT_NO_THROW(require_way(*xy, mesh, 4, 1));
  const auto adaptive = make_routing_policy("north_last", mesh);
  EXPECT_NO_THROW(require_way(*adaptive, mesh, 1, 4));
  EXPECT_THROW(require_way(*adaptive, mesh, 1, 0), PlanError) << "to a dead tile";
}

}  // namespace
}  // namespace wafersim::topology
