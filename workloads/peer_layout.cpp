#include "workloads/peer_layout.h"

#include "base/error.h"

namespace wafersim::workloads {

namespace {

constexpr std::array kPeerAxes = {Axis::tp, Axis::tatp, Axis::sp, Axis::ep, Axis::dp, Axis::pp};
constexpr std::array kCutAxes = {Axis::tp, Axis::tatp};
constexpr std::array kOperatorCuts = {Cut::attention, Cut::mlp};

/// A group's members as `rank` sees them.
void append(std::vector<TileId>& peers, const std::vector<TileId>& members, int rank) {
  const auto first = members.begin() + rank;
  peers.insert(peers.end(), first, members.end());
  peers.insert(peers.end(), members.begin(), first);
}

}  // namespace

PeerLayout::PeerLayout(const PlanSpec& plan, const Mapping& mapping, const PlanCuts& cuts)
    : plan_(plan), mapping_(mapping), replica_positions_(mapping.replica_positions()), cuts_(cuts) {
  for (const Axis axis : kPeerAxes) {
    first_[static_cast<std::size_t>(axis)] = ends_;
    ends_ += static_cast<std::uint32_t>(axis == Axis::dp ? plan.dp : plan.degree(axis));
  }
  if (!cuts.split()) return;
  block_ = ends_;
  ends_ += static_cast<std::uint32_t>(cuts.block());
  for (const Cut cut : kOperatorCuts) {
    for (const Axis axis : kCutAxes) {
      cut_first_[static_cast<std::size_t>(cut)][static_cast<std::size_t>(axis)] = ends_;
      ends_ += static_cast<std::uint32_t>(cuts.plan(cut).degree(axis));
    }
  }
}

Group PeerLayout::group(Cut cut, Axis axis, int rank) const {
  const Mapping& mapping = cuts_.mapping(cut);
  return {axis, cuts_.plan(cut).degree(axis), rank, mapping.axis_shape(axis), mapping.axis_positions(axis),
          cut_first_[static_cast<std::size_t>(cut)][static_cast<std::size_t>(axis)],
          {},   mapping.axis_closed(axis)};
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
  if (cuts_.split()) {
    std::vector<TileId> block;
    for (int member = 0; member < cuts_.block(); ++member) {
      Ranks other = ranks;
      other.tp = cuts_.member_ranks(member).tp;
      other.tatp = cuts_.member_ranks(member).tatp;
      block.push_back(mapping_.tile(other));
    }
    append(all, block, cuts_.member(ranks));
    for (const Cut cut : kOperatorCuts) {
      const Ranks own = cuts_.ranks(cut, ranks);
      require_invariant(cuts_.mapping(cut).tile(own) == mapping_.tile(ranks), "each model group is divided alike");
      for (const Axis axis : kCutAxes) append(all, cuts_.mapping(cut).group(axis, own), own.at(axis));
    }
  }
  if (!with_ends) return all;
  const std::vector<TileId> stages = mapping_.group(Axis::pp, ranks);
  append(all, {stages.front(), stages.back()}, ranks.pp == 0 ? 0 : 1);
  return all;
}

}  // namespace wafersim::workloads
