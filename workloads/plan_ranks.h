#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "workloads/buckets.h"
#include "workloads/layer.h"
#include "workloads/lowering.h"
#include "workloads/peer_layout.h"
#include "workloads/schedule.h"

namespace wafersim::workloads {

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

  Group group(Axis axis, int rank) const { return peers_.group(axis, rank); }
  Replicas replicas(const Ranks& ranks) const { return peers_.replicas(ranks); }
  /// Whether the rank is at one of the two ends of a pipeline that tie the embedding, and the group of both.
  bool ties(const Ranks& ranks) const { return ties_across_stages(input_) && (is_first(ranks) || is_last(ranks)); }
  Group ends(const Ranks& ranks) const { return peers_.ends(is_first(ranks)); }
  /// The tiles that a rank exchanges messages with, in the order of PeerLayout.
  std::vector<TileId> peers(const Ranks& ranks) const { return peers_.peers(ranks, ties(ranks)); }
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

  /// Until it is asked for those of another rank.
  const std::map<std::int32_t, Bucket>& buckets(const Ranks& ranks) const;

 private:
  RankContext make_context(const InnerRank& rank) const;
  std::vector<Range> kv_sharers() const;
  int last_chunk() const { return plan().virtual_stages - 1; }

  const LoweringInput& input_;
  const Mapping& mapping_;
  PeerLayout peers_;
  ParameterLayout parameters_;
  std::vector<RankContext> contexts_;
  /// Of the inner rank and stage that was asked for last: a tile's are asked for many times in a row.
  mutable std::pair<const RankContext*, int> known_{nullptr, -1};
  mutable std::map<std::int32_t, Bucket> buckets_;
};

}  // namespace wafersim::workloads
