#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/buckets.h"
#include "workloads/mapping.h"
#include "workloads/plan_cuts.h"

namespace wafersim::workloads {

/// Where a rank's groups stand in its tile's peers: tp, tatp, sp, ep, all replicas, pp, where operators have degrees of their own
/// all tiles of the model group and each operator's tp and tatp, then (on the ends of a pipeline with tied embeddings) itself and
/// the other end. Each group begins with the rank itself, the
/// others follow in cyclic order, so that ranks that do the same have the same indices.
class PeerLayout {
 public:
  /// All must outlive the object.
  PeerLayout(const PlanSpec& plan, const Mapping& mapping, const PlanCuts& cuts);

  Group group(Axis axis, int rank) const;
  /// tp or tatp of a cut, of which the tile is this rank.
  Group group(Cut cut, Axis axis, int rank) const;
  /// The tiles of a model group, one of which is this member (PlanCuts::member). Resharding is of axis tatp, which says who has
  /// which tokens.
  Group block(int member) const { return {Axis::tatp, cuts_.block(), member, {}, {}, block_}; }
  Replicas replicas(const Ranks& ranks) const;
  /// Both ends of a pipeline, of which this rank is one.
  Group ends(bool first) const { return {Axis::pp, 2, first ? 0 : 1, {1, 2}, {{0, 0}, {1, 0}}, ends_}; }
  std::uint32_t previous_stage() const;
  std::uint32_t next_stage() const;

  /// The peers of a tile, with those of `ends` when it has that group.
  std::vector<TileId> peers(const Ranks& ranks, bool with_ends) const;

 private:
  std::uint32_t of(Axis axis) const { return first_[static_cast<std::size_t>(axis)]; }

  const PlanSpec& plan_;
  const Mapping& mapping_;
  std::vector<topology::Coord> replica_positions_;
  std::array<std::uint32_t, kAxes> first_{};
  const PlanCuts& cuts_;
  std::uint32_t block_ = 0;
  std::array<std::array<std::uint32_t, 2>, kCuts> cut_first_{};  ///< by cut, of tp and tatp
  std::uint32_t ends_ = 0;
};

}  // namespace wafersim::workloads
