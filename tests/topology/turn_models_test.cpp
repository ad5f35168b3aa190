#include "topology/turn_models.h"

#include <gtest/gtest.h>

#include <set>

#include "random_faults.h"
#include "topology/dependency_graph.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

/// Only says which turns it permits.
class TurnsOnly : public Routing {
 public:
  explicit TurnsOnly(TurnSets turns) : turns_(std::move(turns)) {}
  const std::string& name() const override { return name_; }
  Hop next(TileId, TileId) const override { return Hop::unreachable; }
  TurnSets permitted_turns(const Mesh&) const override { return turns_; }

 private:
  std::string name_ = "turns_only";
  TurnSets turns_;
};

bool has_cycle(const TurnModel& model, const Mesh& mesh) {
  return !check_dependencies(TurnsOnly(turn_sets(model, mesh)), mesh, 1).acyclic();
}

TEST(TurnModels, AreTheTwelveOfSixteenWithoutACycle) {
  const Mesh mesh(MeshSpec{{5, 6}, {}, {}});
  std::set<std::string> names;
  for (const TurnModel& model : turn_models()) {
    EXPECT_FALSE(has_cycle(model, mesh)) << model.name;
    names.insert(model.name);
  }
  EXPECT_EQ(names.size(), 12u);
  // The other four: a turn and its reverse.
  using enum Direction;
  for (const Turn clockwise : {Turn{south, west}, Turn{north, east}, Turn{east, south}, Turn{west, north}}) {
    EXPECT_TRUE(has_cycle({"", clockwise, {clockwise.out, clockwise.in}}, mesh));
  }
}

TEST(TurnModels, TheFirstFourPermitXy) {
  for (std::size_t i = 0; i < turn_models().size(); ++i) EXPECT_EQ(turn_models()[i].permits_xy(), i < 4);
}

TEST(TurnModels, QuadrantOrderIsMinimalAndKeepsToItsModel) {
  const Mesh mesh(MeshSpec{{4, 5}, {}, {}});
  for (const TurnModel& model : turn_models()) {
    const auto routing = make_quadrant_order_routing(mesh, model);
    for (TileId source = 0; source < mesh.tile_count(); ++source) {
      for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
        const auto links = route(*routing, mesh, source, destination);
        ASSERT_EQ(links.size(), static_cast<std::size_t>(mesh.distance(source, destination)));
        for (std::size_t i = 1; i < links.size(); ++i) {
          ASSERT_TRUE(model.permits(Mesh::link_direction(links[i - 1]), Mesh::link_direction(links[i])))
              << model.name;
        }
      }
    }
  }
}

TEST(UpDownOrder, ItsTurnsLeaveNoCycleWhateverTheRoot) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Mesh mesh(random_faulty_mesh(seed));
    for (const Coord corner : {Coord{0, 0}, Coord{mesh.cols() - 1, 0}, Coord{0, mesh.rows() - 1}}) {
      const UpDownOrder order(mesh, roots_near(mesh, corner));
      const TurnSets turns = turn_sets(order, mesh);
      EXPECT_TRUE(check_dependencies(TurnsOnly(turns), mesh, 1).acyclic()) << seed;
      const auto table = make_table_routing(mesh, order);
      const TurnSets used = table->permitted_turns(mesh);
      for (LinkId link = 0; link < mesh.link_slots(); ++link) ASSERT_EQ(used[link] & ~turns[link], 0) << seed;
    }
  }
}

}  // namespace
}  // namespace wafersim::topology
