#include "workloads/plan_ranks.h"

#include <utility>

namespace wafersim::workloads {

PlanRanks::PlanRanks(const LoweringInput& input, const Mapping& mapping)
    : input_(input), mapping_(mapping), peers_(input.plan, mapping), parameters_(input.model, input.training, input.plan) {
  for (int ep = 0; ep < plan().ep; ++ep) {
    for (int sp = 0; sp < plan().sp_degree; ++sp) {
      for (int tatp = 0; tatp < plan().tatp; ++tatp) {
        for (int tp = 0; tp < plan().tp; ++tp) contexts_.push_back(make_context({tp, tatp, sp, ep}));
      }
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
          .ep = group(Axis::ep, rank.ep),
          .previous_stage = peers_.previous_stage(),
          .next_stage = peers_.next_stage()};
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
  for (ranks.dp = 0; ranks.dp < plan().degree(Axis::dp); ++ranks.dp) {
    for (ranks.pp = 0; ranks.pp < plan().pp; ++ranks.pp) {
      for (const RankContext& each : contexts_) {
        const InnerRank& inner = each.shard.rank;
        ranks.tp = inner.tp;
        ranks.tatp = inner.tatp;
        ranks.sp = inner.sp;
        ranks.ep = inner.ep;
        result.push_back(ranks);
      }
    }
  }
  return result;
}

const RankContext& PlanRanks::context(const Ranks& ranks) const {
  const int outer = ranks.ep * plan().sp_degree + ranks.sp;
  return contexts_[static_cast<std::size_t>((outer * plan().tatp + ranks.tatp) * plan().tp + ranks.tp)];
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

const std::map<std::int32_t, Bucket>& PlanRanks::buckets(const Ranks& ranks) const {
  const std::pair wanted(&context(ranks), ranks.pp);
  if (known_ != wanted) {
    buckets_ = parameter_buckets(input_, parameters_, *wanted.first, wanted.second);
    known_ = wanted;
  }
  return buckets_;
}

}  // namespace wafersim::workloads
