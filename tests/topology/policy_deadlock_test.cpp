// The deadlock check on every policy, and on policies that lack what keeps them safe.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/error.h"
#include "dateline_ring.h"
#include "policy_states.h"
#include "random_faults.h"
#include "topology/adaptive_routing.h"
#include "topology/dependency_graph.h"
#include "topology/turn_models.h"

namespace wafersim::topology {
namespace {

using enum Direction;

/// All minimal outputs, whatever turns that takes, but those that are forbidden.
class AllBut final : public AdaptiveRule {
 public:
  explicit AllBut(std::function<bool(Coord, Direction, Direction)> forbids = [](auto...) { return false; })
      : forbids_(std::move(forbids)) {}
  bool permits(Coord at, Direction in, Direction out) const override {
    return out != opposite(in) && !forbids_(at, in, out);
  }
  OutputSet outputs(Coord at, Hop, Coord destination) const override {
    const auto [row, column] = productive(at, destination);
    return static_cast<OutputSet>((row ? turn_bit(*row) : 0) | (column ? turn_bit(*column) : 0));
  }

 private:
  std::function<bool(Coord, Direction, Direction)> forbids_;
};

/// Each channel must follow on the one before it, and the last be followed by the first.
void expect_circle(const DependencyVerdict& verdict, const RoutingPolicy& policy, const Mesh& mesh) {
  ASSERT_FALSE(verdict.acyclic());
  ASSERT_GE(verdict.cycle.size(), 2u);
  for (std::size_t i = 0; i < verdict.cycle.size(); ++i) {
    const Channel& channel = verdict.cycle[i];
    const Channel& next = verdict.cycle[(i + 1) % verdict.cycle.size()];
    ASSERT_LT(channel.vc_class, verdict.classes);
    ASSERT_EQ(mesh.neighbour(Mesh::link_source(channel.link), Mesh::link_direction(channel.link)),
              Mesh::link_source(next.link));
    OutputSet turns = 0;
    for (unsigned c = 0; c < policy.vc_classes(); ++c) {
      turns |= policy.class_turns(mesh, c)[channel.link];
      for (unsigned to = 0; to < policy.vc_classes(); ++to) {
        if (to != c) turns |= policy.handover_turns(mesh, c, to)[channel.link];
      }
    }
    ASSERT_NE(turns & turn_bit(Mesh::link_direction(next.link)), 0);
  }
}

TEST(PolicyDeadlock, EveryPolicyIsAcyclicOnEveryMesh) {
  for (const Shape shape : {Shape{1, 1}, Shape{1, 9}, Shape{9, 1}, Shape{2, 2}, Shape{3, 3}, Shape{8, 8},
                            Shape{7, 12}, Shape{24, 17}}) {
    const Mesh mesh(MeshSpec{shape, {}, {}});
    for (const std::string& name : routing_policy_names()) {
      const auto policy = make_routing_policy(name, mesh);
      const DependencyVerdict verdict = check_dependencies(*policy, mesh, 2);
      EXPECT_TRUE(verdict.acyclic()) << name << " " << to_string(shape) << ": " << cycle_text(verdict, mesh);
      EXPECT_EQ(verdict.classes, policy->vc_classes());
    }
  }
}

TEST(PolicyDeadlock, EveryPolicyThatCopesWithTheFaultsIsAcyclic) {
  std::map<std::string, int> made;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const MeshSpec corner = corner_cut({6, 7}, {3, 1}, seed % 2 != 0, seed / 2 % 2 != 0);
    const MeshSpec whole_row = corner_cut({6, 7}, {7}, false, seed % 2 != 0);
    const Mesh mesh(seed < 4 ? corner : seed < 6 ? whole_row : random_faulty_mesh(seed));
    for (const std::string& name : routing_policy_names()) {
      try {
        const auto policy = make_routing_policy(name, mesh);
        EXPECT_TRUE(check_dependencies(*policy, mesh, 2).acyclic()) << name << " " << seed;
        ++made[name];
      } catch (const PlanError&) {
      }
    }
  }
  for (const std::string& name : routing_policy_names()) EXPECT_GT(made[name], 1) << name;
}

TEST(PolicyDeadlock, FullyAdaptiveRoutingIsRefusedWithItsCycle) {
  const Mesh mesh = plain_mesh(4, 4);
  const auto policy = make_adaptive_routing(mesh, "fully_adaptive", std::make_unique<AllBut>());
  expect_connected(*policy, mesh, true);
  const DependencyVerdict verdict = check_dependencies(*policy, mesh, 4);
  expect_circle(verdict, *policy, mesh);
  EXPECT_EQ(verdict.cycle.size(), 4u) << "four turns of one rotation";
  const std::string text = cycle_text(verdict, mesh);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(text.substr(0, text.find(' ')), text.substr(text.rfind(' ') + 1)) << text;
}

TEST(PolicyDeadlock, OnTwoByOneThereIsNoCycleToRefuse) {
  const Mesh mesh = plain_mesh(1, 2);
  EXPECT_TRUE(
      check_dependencies(*make_adaptive_routing(mesh, "any", std::make_unique<AllBut>()), mesh, 1).acyclic());
}

// What o1turn and valiant have their second class for.
TEST(PolicyDeadlock, WithoutSeparateClassesTwoPoliciesHaveACycle) {
  const Mesh mesh = plain_mesh(4, 5);
  for (const char* name : {"o1turn", "valiant"}) {
    const auto policy = make_routing_policy(name, mesh);
    EXPECT_TRUE(check_dependencies(*policy, mesh, 2).acyclic());
    EXPECT_TRUE(check_dependencies(*policy, mesh, 12).acyclic());
    const DependencyVerdict verdict = check_dependencies(*policy, mesh, 1);
    EXPECT_EQ(verdict.classes, 1u);
    EXPECT_EQ(channels_without_cycle(*policy, mesh), 2u);
    expect_circle(verdict, *policy, mesh);
  }
}

// Each of the turns that a model forbids closes a cycle when it is permitted again.
TEST(PolicyDeadlock, EachForbiddenTurnOfATurnModelMatters) {
  const Mesh mesh = plain_mesh(4, 4);
  const std::map<std::string, std::pair<Turn, Turn>> forbidden = {
      {"west_first", {{south, west}, {north, west}}},
      {"north_last", {{north, east}, {north, west}}},
      {"negative_first", {{south, west}, {east, north}}}};
  for (const auto& [name, turns] : forbidden) {
    const auto forbid = [&](std::vector<Turn> kept) {
      return make_adaptive_routing(mesh, name,
                                   std::make_unique<AllBut>([kept](Coord, Direction in, Direction out) {
                                     return std::find(kept.begin(), kept.end(), Turn{in, out}) != kept.end();
                                   }));
    };
    const auto model = make_routing_policy(name, mesh);
    EXPECT_EQ(forbid({turns.first, turns.second})->class_turns(mesh, 0), model->class_turns(mesh, 0)) << name;
    for (const Turn& kept : {turns.first, turns.second}) {
      const auto policy = forbid({kept});
      expect_circle(check_dependencies(*policy, mesh, 1), *policy, mesh);
    }
  }
}

TEST(PolicyDeadlock, EachForbiddenTurnOfOddEvenMatters) {
  const Mesh mesh = plain_mesh(4, 5);
  const std::vector<std::pair<Turn, bool>> forbidden = {
      {{east, north}, false}, {{east, south}, false}, {{north, west}, true}, {{south, west}, true}};
  for (std::size_t restored = 0; restored <= forbidden.size(); ++restored) {
    const auto forbids = [&forbidden, restored](Coord at, Direction in, Direction out) {
      for (std::size_t i = 0; i < forbidden.size(); ++i) {
        const auto& [turn, odd] = forbidden[i];
        if (i != restored && turn == Turn{in, out} && (at.x % 2 != 0) == odd) return true;
      }
      return false;
    };
    const auto policy = make_adaptive_routing(mesh, "restored", std::make_unique<AllBut>(forbids));
    const DependencyVerdict verdict = check_dependencies(*policy, mesh, 1);
    if (restored < forbidden.size()) {
      expect_circle(verdict, *policy, mesh);
    } else {
      EXPECT_TRUE(verdict.acyclic());
      EXPECT_EQ(policy->class_turns(mesh, 0), make_routing_policy("odd_even", mesh)->class_turns(mesh, 0));
    }
  }
}

// Straight on: 2 R (C - 2) + 2 C (R - 2). Turns from a row into a column: each tile joins its neighbours in
// the row with those in the column, 4 (R - 1) (C - 1) in all. From the first to the second class of valiant:
// neighbours squared.
TEST(PolicyDeadlock, TheGraphHasTheDependenciesOfItsRules) {
  const int rows = 5, cols = 7;
  const Mesh mesh = plain_mesh(rows, cols);
  const auto size = [](int value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t links = size(2 * (2 * rows * cols - rows - cols));
  const std::uint64_t straight = size(2 * rows * (cols - 2) + 2 * cols * (rows - 2));
  const std::uint64_t corner = size(4 * (rows - 1) * (cols - 1));
  const auto verdict = [&](const char* name, unsigned channels) {
    return check_dependencies(*make_routing_policy(name, mesh), mesh, channels);
  };
  EXPECT_EQ(verdict("xy", 2).channels, links);
  EXPECT_EQ(verdict("xy", 2).dependencies, straight + corner);
  EXPECT_EQ(verdict("o1turn", 2).channels, 2 * links);
  EXPECT_EQ(verdict("o1turn", 2).dependencies, 2 * (straight + corner));
  EXPECT_EQ(verdict("o1turn", 1).channels, links);
  EXPECT_EQ(verdict("o1turn", 1).dependencies, straight + 2 * corner);
  std::uint64_t squares = 0;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    std::uint64_t neighbours = 0;
    for (const Direction direction : kAllDirections)
      neighbours += mesh.neighbour(tile, direction) != kNoTile ? 1 : 0;
    squares += neighbours * neighbours;
  }
  EXPECT_EQ(verdict("valiant", 2).dependencies, 2 * (straight + corner) + squares);
  // Two of eight turns are forbidden, in negative_first as in the others.
  for (const char* name : {"west_first", "north_last", "negative_first"})
    EXPECT_EQ(verdict(name, 1).dependencies, straight + corner + corner / 2) << name;
}

// Four links in a ring: in one class they wait for each other; with the class changed at one of them they form a spiral, the
// three of the second class that are used being those from the dateline on.
TEST(PolicyDeadlock, AClassThatChangesOnTheWayBreaksARing) {
  const Mesh mesh = plain_mesh(2, 2);
  const DatelineRing policy;
  expect_connected(policy, mesh, false);
  const DependencyVerdict one = check_dependencies(policy, mesh, 1);
  EXPECT_EQ(one.cycle.size(), 4u);
  const DependencyVerdict two = check_dependencies(policy, mesh, 2);
  EXPECT_TRUE(two.acyclic()) << cycle_text(two, mesh);
  EXPECT_EQ(two.dependencies, 2u + 1 + 2);
  EXPECT_EQ(channels_without_cycle(policy, mesh), 2u);
  EXPECT_EQ(channels_without_cycle(Clockwise(), mesh), std::nullopt);
}

TEST(PolicyDeadlock, TheCycleIsPrintedTileByTileWithItsClasses) {
  const Mesh mesh = plain_mesh(2, 2);
  DependencyVerdict verdict;
  verdict.cycle = {{Mesh::link(0, east), 0}, {Mesh::link(1, west), 1}};
  EXPECT_EQ(cycle_text(verdict, mesh), "tile_0_0 > tile_1_0 > tile_0_0");
  verdict.classes = 2;
  EXPECT_EQ(cycle_text(verdict, mesh), "tile_0_0 >0 tile_1_0 >1 tile_0_0");
  verdict.cycle.clear();
  EXPECT_EQ(cycle_text(verdict, mesh), "");
}

}  // namespace
}  // namespace wafersim::topology
