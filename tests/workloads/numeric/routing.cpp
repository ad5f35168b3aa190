#include "tests/workloads/numeric/routing.h"

#include "workloads/shard.h"

namespace wafersim::workloads::numeric {

Routing::Routing(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan)
    : sequences_(static_cast<std::uint64_t>(training.microbatch)) {
  if (!model.routes()) return;
  const auto experts = static_cast<std::uint64_t>(model.experts),
             top_k = static_cast<std::uint64_t>(model.top_k);
  const auto num = static_cast<std::uint64_t>(model.capacity_factor.num());
  const auto den = static_cast<std::uint64_t>(model.capacity_factor.den());
  tokens_.resize(sequences_ * static_cast<std::uint64_t>(model.sequence));
  for (int sp = 0; sp < plan.sp_degree; ++sp) {
    for (int tatp = 0; tatp < plan.tatp; ++tatp) {
      const TokenSet own = work_tokens(model, training, plan, sp, tatp);
      const std::uint64_t slots = (num * own.count() * top_k + den * experts - 1) / (den * experts);
      std::vector<std::uint64_t> filled(experts, 0);
      std::uint64_t turn = 0;
      for (const Range& range : own.ranges) {
        for (std::uint64_t row = range.first; row < range.end(); ++row) {
          tokens_[row].slots = slots;
          for (std::uint64_t i = 0; i < top_k; ++i) {
            const std::uint64_t expert = turn;
            turn = turn + 1 == experts ? 0 : turn + 1;
            const std::uint64_t slot = filled[expert]++;
            tokens_[row].choices.push_back({expert, slot >= slots, slot});
          }
        }
      }
    }
  }
}

}  // namespace wafersim::workloads::numeric
