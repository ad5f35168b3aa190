#include "workloads/plan_ranks.h"

#include <utility>

namespace wafersim::workloads {

PlanRanks::PlanRanks(const LoweringInput& input, const Mapping& mapping)
    : input_(input), mapping_(mapping), layout_(input.plan), parameters_(input.model, input.plan) {
  for (int sp = 0; sp < plan().sp_degree; ++sp) {
    for (int tatp = 0; tatp < plan().tatp; ++tatp) {
      for (int tp = 0; tp < plan().tp; ++tp) contexts_.push_back(make_context({tp, tatp, sp}));
    }
  }
  const std::vector<Range> sharers = kv_sharers();
  for (RankContext& context : contexts_) context.kv_sharers = sharers;
}

RankContext PlanRanks::make_context(const InnerRank& rank) const {
  return {.input = input_,
          .layout = parameters_,
          .shard = make_shard(input_.model, input_.training, plan(), rank),
          .tp = group(Axis::tp, rank.tp),
          .tatp = group(Axis::tatp, rank.tatp),
          .sp = group(Axis::sp, rank.sp),
          .previous_stage = layout_.of(Axis::pp) + static_cast<std::uint32_t>(plan().pp - 1),
          .next_stage = layout_.of(Axis::pp) + (plan().pp > 1 ? 1U : 0U)};
}

/// The tensor-parallel ranks that hold each kv head, when these are more than the heads.
std::vector<Range> PlanRanks::kv_sharers() const {
  std::vector<Range> result;
  if (plan().tp <= input_.model.kv_heads) return result;
  result.resize(static_cast<std::size_t>(input_.model.kv_heads));
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(plan().tp); ++rank) {
    const Range& heads = contexts_[rank].shard.kv_heads;
    for (std::uint64_t head = heads.first; head < heads.end(); ++head) {
      if (result[head].count++ == 0) result[head].first = rank;
    }
  }
  return result;
}

std::vector<Ranks> PlanRanks::all() const {
  std::vector<Ranks> result;
  Ranks ranks;
  for (ranks.dp = 0; ranks.dp < plan().dp; ++ranks.dp) {
    for (ranks.pp = 0; ranks.pp < plan().pp; ++ranks.pp) {
      for (const RankContext& each : contexts_) {
        const InnerRank& inner = each.shard.rank;
        ranks.tp = inner.tp;
        ranks.tatp = inner.tatp;
        ranks.sp = inner.sp;
        result.push_back(ranks);
      }
    }
  }
  return result;
}

const RankContext& PlanRanks::context(const Ranks& ranks) const {
  return contexts_[static_cast<std::size_t>((ranks.sp * plan().tatp + ranks.tatp) * plan().tp + ranks.tp)];
}

Group PlanRanks::group(Axis axis, int rank) const {
  return {axis, plan().degree(axis), rank, mapping_.axis_shape(axis), mapping_.axis_positions(axis), layout_.of(axis)};
}

Group PlanRanks::tie_group(const Ranks& ranks) const {
  if (!ties_across_stages(input_) || (!is_first(ranks) && !is_last(ranks))) return {};
  return {Axis::pp, 2, is_first(ranks) ? 0 : 1, {1, 2}, {{0, 0}, {1, 0}}, layout_.tie};
}

/// Each group's members as the rank sees them: itself first, the others in cyclic order.
std::vector<TileId> PlanRanks::peers(const Ranks& ranks) const {
  std::vector<TileId> result;
  const auto add = [&](const std::vector<TileId>& members, int rank) {
    const auto first = members.begin() + rank;
    result.insert(result.end(), first, members.end());
    result.insert(result.end(), members.begin(), first);
  };
  for (const Axis axis : kPeerAxes) add(mapping_.group(axis, ranks), ranks.at(axis));
  const std::vector<TileId> stages = mapping_.group(Axis::pp, ranks);
  const Group tie = tie_group(ranks);
  if (tie.size == 2) add({stages.front(), stages.back()}, tie.rank);
  return result;
}

LayerRange PlanRanks::layers(const Ranks& ranks, int chunk) const {
  return virtual_stage_layers(plan(), input_.model.layers, chunk * plan().pp + ranks.pp);
}

LayerEdges PlanRanks::edges(const Ranks& ranks, int chunk, std::int32_t layer) const {
  LayerEdges result;
  const LayerRange range = layers(ranks, chunk);
  const EdgeKind neighbour = plan().pp > 1 ? EdgeKind::remote : EdgeKind::inside;
  if (layer == range.first) {
    const bool begins = is_first(ranks) && chunk == 0;
    result.input = !begins ? neighbour : has_embedding(ranks) ? EdgeKind::inside : EdgeKind::open;
    if (result.input == EdgeKind::remote) result.input_chunk = is_first(ranks) ? chunk - 1 : chunk;
  }
  if (layer == range.last()) {
    const bool ends = is_last(ranks) && chunk == last_chunk();
    result.output = !ends ? neighbour : has_head(ranks) ? EdgeKind::inside : EdgeKind::open;
    if (result.output == EdgeKind::remote) result.output_chunk = chunk;
  }
  return result;
}

std::map<std::int32_t, Bucket> PlanRanks::buckets(const Ranks& ranks) const {
  return parameter_buckets(input_, parameters_, context(ranks), ranks.pp);
}

}  // namespace wafersim::workloads
