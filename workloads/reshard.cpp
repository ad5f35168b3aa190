#include "workloads/reshard.h"

#include <algorithm>

namespace wafersim::workloads {

namespace {

/// Rows of the residual stream by member. A set is only its rows: where it stands in sums plays no part.
std::vector<TokenSet> rows_by_member(const models::TransformerSpec& model, const TrainingSpec& training, const PlanCuts& cuts,
                                     Cut cut, int sp) {
  const PlanSpec& plan = cuts.plan(cut);
  std::vector<TokenSet> result;
  for (int member = 0; member < cuts.block(); ++member) {
    const Ranks ranks = cuts.ranks(cut, cuts.member_ranks(member));
    const TokenSet work = work_tokens(model, training, plan, sp, ranks.tatp);
    result.push_back(plan.sp == SequenceParallel::megatron ? work.part(plan.tp, ranks.tp) : work);
    TokenSet& rows = result.back();
    rows.ordinal = 0;
    std::erase_if(rows.ranges, [](const Range& range) { return range.count == 0; });
    // Runs of one tile may touch.
    std::vector<Range> joined;
    for (const Range& range : rows.ranges) {
      if (!joined.empty() && joined.back().end() == range.first) {
        joined.back().count += range.count;
      } else {
        joined.push_back(range);
      }
    }
    rows.ranges = std::move(joined);
  }
  return result;
}

}  // namespace

TokenSet common(const TokenSet& a, const TokenSet& b) {
  TokenSet result;
  for (const Range& x : a.ranges) {
    for (const Range& y : b.ranges) {
      const std::uint64_t first = std::max(x.first, y.first), end = std::min(x.end(), y.end());
      if (first < end) result.ranges.push_back({first, end - first});
    }
  }
  return result;
}

TokenSet without(const TokenSet& a, const TokenSet& b) {
  TokenSet result;
  for (const Range& x : a.ranges) {
    std::uint64_t first = x.first;
    for (const Range& y : b.ranges) {
      if (y.end() <= first || y.first >= x.end()) continue;
      if (y.first > first) result.ranges.push_back({first, y.first - first});
      first = y.end();
    }
    if (first < x.end()) result.ranges.push_back({first, x.end() - first});
  }
  return result;
}

Reshard::Reshard(const models::TransformerSpec& model, const TrainingSpec& training, const PlanCuts& cuts, Cut from, Cut to,
                 int sp)
    : replicated_(cuts.plan(from).sp != SequenceParallel::megatron),
      gathers_(replicated_ && cuts.plan(from).tatp > 1 && cuts.plan(to).tatp == 1),
      held_(rows_by_member(model, training, cuts, from, sp)),
      wanted_(rows_by_member(model, training, cuts, to, sp)) {
  for (int member = 0; member < cuts.block(); ++member) from_tp_.push_back(cuts.ranks(from, cuts.member_ranks(member)).tp);
}

bool Reshard::may_send(int from, int to) const {
  const bool same_line = from_tp_[static_cast<std::size_t>(from)] == from_tp_[static_cast<std::size_t>(to)];
  return from != to && (!replicated_ || same_line);
}

TokenSet Reshard::sent(int from, int to) const { return may_send(from, to) ? common(held(from), wanted(to)) : TokenSet{}; }

const Reshard& Reshards::get(Cut from, Cut to, int sp) const {
  const auto key = std::tuple(from, to, sp);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, Reshard(model_, training_, cuts_, from, to, sp)).first->second;
}

}  // namespace wafersim::workloads
