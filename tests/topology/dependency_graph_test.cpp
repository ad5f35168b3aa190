#include <gtest/gtest.h>

#include <algorithm>

#include "dateline_ring.h"
#include "random_faults.h"
#include "topology/dependency_graph.h"
#include "topology/routing.h"

namespace wafersim::topology {
namespace {

/// Routes like xy but claims that every turn but the one back may be taken.
class EveryTurn : public Routing {
 public:
  explicit EveryTurn(const Mesh& mesh) : xy_(make_routing("xy", mesh)) {}
  const std::string& name() const override { return name_; }
  Hop next(TileId at, TileId destination) const override { return xy_->next(at, destination); }
  TurnSets permitted_turns(const Mesh& mesh) const override {
    TurnSets turns(mesh.link_slots(), 0);
    for (LinkId link = 0; link < mesh.link_slots(); ++link) {
      if (mesh.link_alive(link)) turns[link] = live_outputs(mesh, link);
    }
    return turns;
  }

 private:
  static OutputSet live_outputs(const Mesh& mesh, LinkId link) {
    const Direction in = Mesh::link_direction(link);
    const TileId through = mesh.neighbour(Mesh::link_source(link), in);
    OutputSet outputs = 0;
    for (const Direction out : kAllDirections) {
      if (out != opposite(in) && mesh.link_alive(Mesh::link(through, out))) outputs |= turn_bit(out);
    }
    return outputs;
  }

  std::string name_ = "every_turn";
  std::unique_ptr<Routing> xy_;
};

std::vector<LinkId> cycle_of(const RoutingPolicy& policy, const Mesh& mesh) {
  std::vector<LinkId> links;
  for (const Channel& channel : check_dependencies(policy, mesh, 1).cycle) links.push_back(channel.link);
  return links;
}

/// Each link of the cycle must start where the one before it ends, and may be taken after it.
void expect_closed_walk(const std::vector<LinkId>& cycle, const Routing& routing, const Mesh& mesh) {
  ASSERT_FALSE(cycle.empty());
  const TurnSets turns = routing.permitted_turns(mesh);
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const LinkId link = cycle[i];
    const LinkId next = cycle[(i + 1) % cycle.size()];
    EXPECT_EQ(mesh.neighbour(Mesh::link_source(link), Mesh::link_direction(link)), Mesh::link_source(next));
    EXPECT_NE(turns[link] & turn_bit(Mesh::link_direction(next)), 0);
  }
}

TEST(DependencyGraph, DimensionOrderIsAcyclic) {
  for (const Shape shape :
       {Shape{1, 1}, Shape{1, 8}, Shape{8, 1}, Shape{2, 2}, Shape{8, 8}, Shape{300, 300}}) {
    const Mesh mesh(MeshSpec{shape, {}, {}});
    EXPECT_TRUE(cycle_of(*make_routing("xy", mesh), mesh).empty()) << to_string(shape);
    EXPECT_TRUE(cycle_of(*make_routing("yx", mesh), mesh).empty()) << to_string(shape);
  }
}

TEST(DependencyGraph, TableIsAcyclic) {
  const Mesh mesh(MeshSpec{{8, 8}, {}, {}});
  EXPECT_TRUE(cycle_of(*make_routing("table", mesh), mesh).empty());
}

// The rule of a policy must agree with what its routes do; without faults every permitted turn is taken.
TEST(DependencyGraph, TurnsOfDimensionOrderAreThoseOfItsRoutes) {
  const Mesh mesh(MeshSpec{{4, 5}, {}, {}});
  for (const char* name : {"xy", "yx"}) {
    const auto routing = make_routing(name, mesh);
    EXPECT_EQ(routing->permitted_turns(mesh), routing->Routing::permitted_turns(mesh)) << name;
  }
}

TEST(DependencyGraph, TurnsOfDimensionOrderCoverItsRoutesAroundFaults) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Mesh mesh(random_faulty_mesh(seed));
    const auto routing = make_routing("xy", mesh);
    const TurnSets rule = routing->permitted_turns(mesh);
    const TurnSets taken = routing->Routing::permitted_turns(mesh);
    for (LinkId link = 0; link < mesh.link_slots(); ++link) {
      ASSERT_EQ(taken[link] & ~rule[link], 0) << mesh.link_name(link);
    }
  }
}

TEST(DependencyGraph, CycleOfAllTurnsIsReported) {
  const Mesh mesh(MeshSpec{{4, 4}, {}, {}});
  const EveryTurn routing(mesh);
  expect_closed_walk(cycle_of(routing, mesh), routing, mesh);
}

TEST(DependencyGraph, CycleOfRoutesIsReportedInOrder) {
  const Mesh mesh(MeshSpec{{2, 2}, {}, {}});
  auto cycle = cycle_of(Clockwise(), mesh);
  expect_closed_walk(cycle, Clockwise(), mesh);
  std::sort(cycle.begin(), cycle.end());
  const std::vector<LinkId> clockwise = {Mesh::link(0, Direction::east), Mesh::link(1, Direction::south),
                                         Mesh::link(2, Direction::north), Mesh::link(3, Direction::west)};
  EXPECT_EQ(cycle, clockwise);
}

TEST(DependencyGraph, DeadTileCanBreakACycle) {
  const Mesh mesh(MeshSpec{{2, 2}, {{1, 1}}, {}});
  EXPECT_TRUE(cycle_of(Clockwise(), mesh).empty());
}

}  // namespace
}  // namespace wafersim::topology
