#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "workloads/buckets.h"
#include "workloads/layer.h"
#include "workloads/lowering.h"
#include "workloads/schedule.h"

namespace wafersim::workloads {

/// Where a rank's groups stand in its tile's peers: tp, tatp, sp, dp, pp, then (on the ends of a pipeline with tied
/// embeddings) itself and the other end.
inline constexpr std::array kPeerAxes = {Axis::tp, Axis::tatp, Axis::sp, Axis::dp, Axis::pp};
struct PeerLayout {
  explicit PeerLayout(const PlanSpec& plan) {
    for (const Axis axis : kPeerAxes) {
      first[static_cast<std::size_t>(axis)] = tie;
      tie += static_cast<std::uint32_t>(plan.degree(axis));
    }
  }
  std::uint32_t of(Axis axis) const { return first[static_cast<std::size_t>(axis)]; }
  std::array<std::uint32_t, kAxes> first{};
  std::uint32_t tie = 0;
};

/// What each rank of a plan is: its groups, its part of the model, its place in the pipeline.
class PlanRanks {
 public:
  /// `input` and `mapping` must outlive this.
  PlanRanks(const LoweringInput& input, const Mapping& mapping);
  PlanRanks(const PlanRanks&) = delete;
  PlanRanks& operator=(const PlanRanks&) = delete;

  const LoweringInput& input() const { return input_; }
  const PlanSpec& plan() const { return input_.plan; }
  /// Every rank, replica by replica, stage by stage.
  std::vector<Ranks> all() const;
  const RankContext& context(const Ranks& ranks) const;

  Group group(Axis axis, int rank) const;
  Group dp_group(const Ranks& ranks) const { return group(Axis::dp, ranks.dp); }
  /// The two ends of a pipeline with tied embeddings; of one member elsewhere.
  Group tie_group(const Ranks& ranks) const;
  /// The tiles that a rank exchanges messages with, in the order of PeerLayout.
  std::vector<TileId> peers(const Ranks& ranks) const;
  TileId tile(const Ranks& ranks) const { return mapping_.tile(ranks); }

  bool is_first(const Ranks& ranks) const { return ranks.pp == 0; }
  bool is_last(const Ranks& ranks) const { return ranks.pp == plan().pp - 1; }
  bool has_embedding(const Ranks& ranks) const { return input_.model.embedding && is_first(ranks); }
  bool has_head(const Ranks& ranks) const { return input_.model.head && is_last(ranks); }
  /// Of a chunk of the rank's stage: its layers, and whether the embedding or the head is part of it.
  LayerRange layers(const Ranks& ranks, int chunk) const;
  bool embeds(const Ranks& ranks, int chunk) const { return has_embedding(ranks) && chunk == 0; }
  bool heads(const Ranks& ranks, int chunk) const { return has_head(ranks) && chunk == last_chunk(); }
  /// Where a layer of a chunk stands. Chunks of a pipeline of one stage follow each other on their tile.
  LayerEdges edges(const Ranks& ranks, int chunk, std::int32_t layer) const;

  std::map<std::int32_t, Bucket> buckets(const Ranks& ranks) const;

 private:
  RankContext make_context(const InnerRank& rank) const;
  std::vector<Range> kv_sharers() const;
  int last_chunk() const { return plan().virtual_stages - 1; }

  const LoweringInput& input_;
  const Mapping& mapping_;
  PeerLayout layout_;
  ParameterLayout parameters_;
  std::vector<RankContext> contexts_;
};

}  // namespace wafersim::workloads
