#include "workloads/peer_layout.h"

namespace wafersim::workloads {

namespace {

constexpr std::array kPeerAxes = {Axis::tp, Axis::tatp, Axis::sp, Axis::ep, Axis::dp, Axis::pp};

/// A group's members as `rank` sees them.
void append(std::vector<TileId>& peers, const std::vector<TileId>& members, int rank) {
  const auto first = members.begin() + rank;
  peers.insert(peers.end(), first, members.end());
  peers.insert(peers.end(), members.begin(), first);
}

}  // namespace

PeerLayout::PeerLayout(const PlanSpec& plan, const Mapping& mapping)
    : plan_(plan), mapping_(mapping), replica_positions_(mapping.replica_positions()) {
  for (const Axis axis : kPeerAxes) {
    first_[static_cast<std::size_t>(axis)] = ends_;
    ends_ += static_cast<std::uint32_t>(axis == Axis::dp ? plan.dp : plan.degree(axis));
  }
}

Group PeerLayout::group(Axis axis, int rank) const {
  return {axis, plan_.degree(axis), rank, mapping_.axis_shape(axis), mapping_.axis_positions(axis), of(axis),
          {},   mapping_.axis_closed(axis)};
}

Replicas PeerLayout::replicas(const Ranks& ranks) const {
  const Group all{Axis::dp,           plan_.dp,    plan_.replica(ranks), mapping_.replica_shape(),
                  replica_positions_, of(Axis::dp), {},                  mapping_.replicas_closed()};
  Group experts = group(Axis::dp, ranks.dp);
  Ranks other = ranks;
  for (other.dp = 0; other.dp < experts.size; ++other.dp)
    experts.peers.push_back(all.peer(plan_.replica(other)));
  return {all, experts};
}

std::uint32_t PeerLayout::previous_stage() const {
  return of(Axis::pp) + static_cast<std::uint32_t>(plan_.pp - 1);
}

std::uint32_t PeerLayout::next_stage() const { return of(Axis::pp) + (plan_.pp > 1 ? 1U : 0U); }

std::vector<TileId> PeerLayout::peers(const Ranks& ranks, bool with_ends) const {
  std::vector<TileId> all;
  for (const Axis axis : kPeerAxes) {
    if (axis == Axis::dp) {
      append(all, mapping_.replicas(ranks), plan_.replica(ranks));
    } else {
      append(all, mapping_.group(axis, ranks), ranks.at(axis));
    }
  }
  if (!with_ends) return all;
  const std::vector<TileId> stages = mapping_.group(Axis::pp, ranks);
  append(all, {stages.front(), stages.back()}, ranks.pp == 0 ? 0 : 1);
  return all;
}

}  // namespace wafersim::workloads
