#pragma once

#include <cstdint>

#include "workloads/buckets.h"
#include "workloads/layer.h"
#include "workloads/lowering.h"
#include "workloads/schedule.h"

namespace wafersim::workloads {

/// What each rank has of the pipeline of a plan: its place, its layers and their neighbours. Does not depend on the mapping.
class PlanStages {
 public:
  /// `input` must outlive this.
  explicit PlanStages(const LoweringInput& input) : input_(input) {}

  const LoweringInput& input() const { return input_; }
  const PlanSpec& plan() const { return input_.plan; }

  bool is_first(const Ranks& ranks) const { return ranks.pp == 0; }
  bool is_last(const Ranks& ranks) const { return ranks.pp == plan().pp - 1; }
  bool has_embedding(const Ranks& ranks) const { return input_.model.embedding && is_first(ranks); }
  bool has_head(const Ranks& ranks) const { return input_.model.head && is_last(ranks); }
  /// Whether the rank is at one of the two ends of a pipeline that tie the embedding.
  bool ties(const Ranks& ranks) const { return ties_across_stages(input_) && (is_first(ranks) || is_last(ranks)); }
  /// Of a chunk of the rank's stage: its layers, and whether the embedding or the head is part of it.
  LayerRange layers(const Ranks& ranks, int chunk) const;
  bool embeds(const Ranks& ranks, int chunk) const { return has_embedding(ranks) && chunk == 0; }
  bool heads(const Ranks& ranks, int chunk) const { return has_head(ranks) && chunk == last_chunk(); }
  /// Where a layer of a chunk stands. Chunks of a pipeline of one stage follow each other on their tile.
  LayerEdges edges(const Ranks& ranks, int chunk, std::int32_t layer) const;

 private:
  int last_chunk() const { return plan().virtual_stages - 1; }

  const LoweringInput& input_;
};

}  // namespace wafersim::workloads
