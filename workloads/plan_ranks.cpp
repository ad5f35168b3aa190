#include "workloads/plan_ranks.h"

#include <utility>

namespace wafersim::workloads {

namespace {

/// The tensor-parallel ranks that hold each kv head, when these are more than the heads.
std::vector<Range> ranks_by_kv_head(const LoweringInput& input) {
  std::vector<Range> result;
  if (input.plan.tp <= input.model.kv_heads) return result;
  result.resize(static_cast<std::size_t>(input.model.kv_heads));
  for (int rank = 0; rank < input.plan.tp; ++rank) {
    const Range heads = make_shard(input.model, input.training, input.plan, {.tp = rank}).kv_heads;
    for (std::uint64_t head = heads.first; head < heads.end(); ++head) {
      Range& sharers = result[head];
      if (sharers.count++ == 0) sharers.first = static_cast<std::uint64_t>(rank);
    }
  }
  return result;
}

LoweringInput with_plan(const LoweringInput& input, const PlanSpec& plan) {
  return {input.model, input.training, plan, input.placement, input.hardware, input.mesh};
}

}  // namespace

PlanRanks::CutRanks::CutRanks(const PlanRanks& plan, Cut which)
    : input(with_plan(plan.input(), plan.cuts_.plan(which))),
      parameters(operator_parameters(input.model, input.training, plan.plan(), which)) {
  if (which == Cut::attention) kv_sharers = ranks_by_kv_head(input);
}

PlanRanks::PlanRanks(const LoweringInput& input, const Mapping& mapping)
    : PlanStages(input),
      mapping_(mapping),
      cuts_(input.plan, mapping, input.mesh),
      reshards_(input.model, input.training, cuts_),
      peers_(input.plan, mapping, cuts_),
      parameters_(input.model, input.training, input.plan) {
  for (const Cut cut : {Cut::attention, Cut::mlp}) {
    if (cuts_.split()) cut_ranks_.try_emplace(cut, *this, cut);
  }
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

const std::vector<Range>& PlanRanks::kv_sharers() const {
  if (kv_sharers_.empty()) kv_sharers_ = ranks_by_kv_head(input());
  return kv_sharers_;
}

/// `rank`: of the cut.
const RankContext& PlanRanks::cut_context(Cut cut, const InnerRank& rank) const {
  const CutRanks& own = cut_ranks_.at(cut);
  std::unique_ptr<const RankContext>& known = own.contexts[rank];
  if (known == nullptr) {
    known = std::make_unique<RankContext>(
        RankContext{.input = own.input,
                    .layout = own.parameters,
                    .shard = make_shard(own.input.model, own.input.training, own.input.plan, rank),
                    .tp = peers_.group(cut, Axis::tp, rank.tp),
                    .tatp = peers_.group(cut, Axis::tatp, rank.tatp),
                    .sp = group(Axis::sp, rank.sp),
                    .ep = group(Axis::ep, rank.ep),
                    .kv_sharers = own.kv_sharers});
  }
  return *known;
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
  if (known != nullptr) return *known;
  auto made = std::make_unique<RankContext>(make_context({ranks.tp, ranks.tatp, ranks.sp, ranks.ep}));
  if (cuts_.split()) {
    made->reshards = &reshards_;
    made->block = peers_.block(cuts_.member(ranks));
    made->cuts[static_cast<std::size_t>(Cut::plan)] = made.get();
    for (const Cut cut : {Cut::attention, Cut::mlp}) {
      const Ranks own = cuts_.ranks(cut, ranks);
      made->cuts[static_cast<std::size_t>(cut)] = &cut_context(cut, {own.tp, own.tatp, own.sp, own.ep});
    }
  }
  known = std::move(made);
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
