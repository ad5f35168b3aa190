#include "topology/pair_loads.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "policy_states.h"
#include "random_faults.h"

namespace wafersim::topology {
namespace {

/// Route by route.
LinkBytes added_up(const Routing& routing, const Mesh& mesh, const std::vector<Bytes>& from,
                   const std::vector<Bytes>& to) {
  Demands demands;
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
      if (mesh.alive(source) && mesh.alive(destination) && source != destination)
        demands.push_back({source, destination, from[source] + to[destination]});
    }
  }
  return link_loads(routing, mesh, demands);
}

std::vector<Bytes> random_bytes(const Mesh& mesh, RandomStream& random) {
  std::vector<Bytes> bytes = live_bytes(mesh, 1);
  for (Bytes& value : bytes) value *= random.below(1000);
  return bytes;
}

TEST(PairLoads, AreThoseOfAllRoutes) {
  RandomStream random(1, "pair loads");
  for (const Shape shape : {Shape{1, 1}, Shape{1, 5}, Shape{4, 1}, Shape{2, 2}, Shape{5, 7}}) {
    const Mesh mesh(MeshSpec{shape, {}, {}});
    const std::vector<Bytes> from = random_bytes(mesh, random), to = random_bytes(mesh, random);
    for (const std::string& name : routing_names()) {
      const auto routing = make_routing(name, mesh);
      EXPECT_EQ(pair_loads(*routing, mesh, from, to), added_up(*routing, mesh, from, to)) << name;
    }
  }
}

TEST(PairLoads, AreThoseOfAllRoutesRoundFaults) {
  RandomStream random(2, "pair loads");
  const Mesh mesh(MeshSpec{{5, 6}, {{2, 2}}, {{{0, 0}, {1, 0}}, {{4, 3}, {4, 4}}}});
  const std::vector<Bytes> from = random_bytes(mesh, random), to = random_bytes(mesh, random);
  for (const char* name : {"table", "balanced"}) {
    const auto routing = make_routing(name, mesh);
    EXPECT_EQ(pair_loads(*routing, mesh, from, to), added_up(*routing, mesh, from, to)) << name;
  }
  EXPECT_THROW(pair_loads(*make_routing("xy", mesh), mesh, from, to), PlanError);
}

TEST(LiveBytes, LeaveOutDeadTiles) {
  EXPECT_EQ(live_bytes(Mesh(MeshSpec{{1, 3}, {{1, 0}}, {}}), 7), (std::vector<Bytes>{7, 0, 7}));
}

}  // namespace
}  // namespace wafersim::topology
