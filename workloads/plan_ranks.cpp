#include "workloads/plan_ranks.h"

#include <utility>

namespace wafersim::workloads {

PlanRanks::PlanRanks(const LoweringInput& input, const Mapping& mapping)
    : PlanStages(input), mapping_(mapping), peers_(input.plan, mapping), parameters_(input.model, input.training, input.plan) {
  contexts_.resize(static_cast<std::size_t>(plan().ep) * plan().sp_degree * plan().tatp * plan().tp);
}

RankContext PlanRanks::make_context(const InnerRank& rank) const {
  return {.input = input(),
          .layout = parameters_,
          .shard = make_shard(input().model, input().training, plan(), rank),
          .tp = group(Axis::tp, rank.tp),
          .tatp = group(Axis::tatp, rank.tatp),
          .sp = group(Axis::sp, rank.sp),
          .ep = group(Axis::ep, rank.ep),
          .kv_sharers = kv_sharers(),
          .previous_stage = peers_.previous_stage(),
          .next_stage = peers_.next_stage()};
}

/// The tensor-parallel ranks that hold each kv head, when these are more than the heads.
const std::vector<Range>& PlanRanks::kv_sharers() const {
  if (plan().tp <= input().model.kv_heads || !kv_sharers_.empty()) return kv_sharers_;
  kv_sharers_.resize(static_cast<std::size_t>(input().model.kv_heads));
  for (int rank = 0; rank < plan().tp; ++rank) {
    const Range heads = make_shard(input().model, input().training, plan(), {.tp = rank}).kv_heads;
    for (std::uint64_t head = heads.first; head < heads.end(); ++head) {
      Range& sharers = kv_sharers_[head];
      if (sharers.count++ == 0) sharers.first = static_cast<std::uint64_t>(rank);
    }
  }
  return kv_sharers_;
}

std::vector<Ranks> PlanRanks::all() const {
  std::vector<Ranks> result;
  Ranks ranks;
  for (ranks.dp = 0; ranks.dp < plan().degree(Axis::dp); ++ranks.dp) {
    for (ranks.pp = 0; ranks.pp < plan().pp; ++ranks.pp) {
      for (ranks.ep = 0; ranks.ep < plan().ep; ++ranks.ep) {
        for (ranks.sp = 0; ranks.sp < plan().sp_degree; ++ranks.sp) {
          for (ranks.tatp = 0; ranks.tatp < plan().tatp; ++ranks.tatp) {
            for (ranks.tp = 0; ranks.tp < plan().tp; ++ranks.tp) result.push_back(ranks);
          }
        }
      }
    }
  }
  return result;
}

const RankContext& PlanRanks::context(const Ranks& ranks) const {
  const int outer = ranks.ep * plan().sp_degree + ranks.sp;
  std::unique_ptr<const RankContext>& known =
      contexts_[static_cast<std::size_t>((outer * plan().tatp + ranks.tatp) * plan().tp + ranks.tp)];
  if (known == nullptr) known = std::make_unique<RankContext>(make_context({ranks.tp, ranks.tatp, ranks.sp, ranks.ep}));
  return *known;
}

const std::map<std::int32_t, Bucket>& PlanRanks::buckets(const Ranks& ranks) const {
  const std::pair wanted(&context(ranks), ranks.pp);
  if (known_ != wanted) {
    buckets_ = parameter_buckets(input(), parameters_, *wanted.first, wanted.second);
    known_ = wanted;
  }
  return buckets_;
}

}  // namespace wafersim::workloads
