#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "topology/routing.h"

namespace wafersim::topology {

inline Mesh plain_mesh(int rows, int cols) { return Mesh(MeshSpec{{rows, cols}, {}, {}}); }

/// Tiles dead in a corner: the first lengths[0] of the first row, lengths[1] of the second, and so on;
/// mirrored to the east and south on demand. Routes between the tiles that are left need not bend outwards.
inline MeshSpec corner_cut(Shape shape, const std::vector<int>& lengths, bool east, bool south) {
  MeshSpec spec{shape, {}, {}};
  for (int row = 0; row < static_cast<int>(lengths.size()); ++row) {
    for (int place = 0; place < lengths[static_cast<std::size_t>(row)]; ++place)
      spec.dead_tiles.push_back({east ? shape.cols - 1 - place : place, south ? shape.rows - 1 - row : row});
  }
  return spec;
}

/// Every way in which a packet may start; on meshes of up to 256 tiles.
inline std::vector<Travel> departures(const RoutingPolicy& policy, TileId source, TileId destination) {
  std::vector<Travel> all;
  for (std::uint64_t draw = 0; draw < (policy.draws() ? 256 : 1); ++draw) {
    const Travel travel = policy.depart(source, destination, draw << 56);
    if (std::find(all.begin(), all.end(), travel) == all.end()) all.push_back(travel);
  }
  return all;
}

/// A packet that has come to a tile.
struct PacketState {
  TileId at;
  Hop came;
  Travel travel;
  auto key() const { return std::tuple(at, came, travel.target, travel.vc_class, travel.note); }
};

/// All states in which a packet from `source` to `destination` can be that started with `start`, visited once
/// each: calls `visit(state, outputs)` after arrive(), and `leave(state, entered, direction, left)` for each link
/// that it may take: the class of the link it came over, and that of this link.
template <class Visit, class Leave>
void for_each_state(const RoutingPolicy& policy, const Mesh& mesh, TileId source, TileId destination,
                    Travel start, const Visit& visit, const Leave& leave) {
  std::vector<PacketState> open = {{source, Hop::local, start}};
  std::set<std::pair<unsigned, decltype(open[0].key())>> seen;  // with the class of the link it came over
  while (!open.empty()) {
    PacketState state = open.back();
    open.pop_back();
    const unsigned entered = state.travel.vc_class;
    arrive(state.travel, state.at, destination);
    if (!seen.insert({entered, state.key()}).second) continue;
    const OutputSet outputs = policy.outputs(state.at, state.came, state.travel);
    visit(state, outputs);
    for (const Direction out : kAllDirections) {
      if ((outputs & turn_bit(out)) == 0) continue;
      const Travel onward = policy.leave(state.travel, state.at, to_hop(out));
      leave(state, entered, out, unsigned{onward.vc_class});
      open.push_back({mesh.neighbour(state.at, out), to_hop(out), onward});
    }
  }
}

/// From every state that is reached a packet may go on over a live link until it is at its destination, and
/// takes turns that the policy names. With `minimal` each hop brings it nearer, so it arrives after
/// distance() hops.
inline void expect_connected(const RoutingPolicy& policy, const Mesh& mesh, bool minimal) {
  std::map<std::pair<unsigned, unsigned>, TurnSets> turns;  // by class before and after
  for (unsigned from = 0; from < policy.vc_classes(); ++from) {
    for (unsigned to = 0; to < policy.vc_classes(); ++to)
      turns[{from, to}] = from == to ? policy.class_turns(mesh, from) : policy.handover_turns(mesh, from, to);
  }
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
      if (!mesh.alive(source) || !mesh.alive(destination)) continue;
      for (const Travel start : departures(policy, source, destination)) {
        const auto visit = [&](const PacketState& state, OutputSet outputs) {
          ASSERT_NE(outputs, 0) << policy.name() << ": dead end at " << mesh.name(state.at);
          ASSERT_EQ(outputs == output_bit(Hop::local), state.at == state.travel.target);
          if (minimal) {
            ASSERT_EQ(state.travel.target, destination);
          }
          ASSERT_LT(state.travel.vc_class, policy.vc_classes());
        };
        const auto leave = [&](const PacketState& state, unsigned entered, Direction out, unsigned left) {
          ASSERT_TRUE(mesh.link_alive(Mesh::link(state.at, out)));
          const TileId next = mesh.neighbour(state.at, out);
          if (minimal) {
            ASSERT_EQ(mesh.distance(next, destination) + 1, mesh.distance(state.at, destination));
          }
          const std::optional<Direction> came = to_direction(state.came);
          if (!came) return;
          const LinkId link = Mesh::link(mesh.neighbour(state.at, opposite(*came)), *came);
          ASSERT_LT(left, policy.vc_classes());
          ASSERT_NE(turns.at(std::pair(entered, left))[link] & turn_bit(out), 0)
              << policy.name() << ": a turn that it does not name";
        };
        for_each_state(policy, mesh, source, destination, start, visit, leave);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace wafersim::topology
