#include "workloads/shard.h"

#include <algorithm>

namespace wafersim::workloads {

namespace {

std::uint64_t count(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace

std::uint64_t share(std::uint64_t total, int parts, int member) {
  const auto n = static_cast<std::uint64_t>(parts);
  return total / n + (static_cast<std::uint64_t>(member) < total % n ? 1 : 0);
}

Bytes Shard::saved_scores_bytes() const {
  if (fused_attention) return 0;
  const std::uint64_t scores = sequences * heads * sequence * sequence;
  return dropout ? scores * (2 * element + 1) : scores * element;
}

Bytes Shard::statistics_bytes() const { return fused_attention ? tokens * heads * 4 : 0; }

Shard make_shard(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                 int rank) {
  Shard shard;
  shard.tp = plan.tp;
  shard.rank = rank;
  shard.sequence_parallel = plan.sp == SequenceParallel::megatron;
  shard.fused_attention = model.attention_kernel == models::AttentionKernel::fused;
  shard.dropout = !shard.fused_attention;
  shard.sequences = count(training.microbatch);
  shard.sequence = count(model.sequence);
  shard.tokens = shard.sequences * shard.sequence;
  shard.local_tokens = shard.sequence_parallel ? share(shard.tokens, plan.tp, rank) : shard.tokens;
  shard.hidden = count(model.hidden);
  shard.head_dim = count(model.head_dim);
  shard.heads = share(count(model.heads), plan.tp, rank);
  shard.q_width = shard.heads * shard.head_dim;
  shard.kv_width = std::max<std::uint64_t>(1, share(count(model.kv_heads), plan.tp, rank)) * shard.head_dim;
  shard.ffn = share(count(model.ffn), plan.tp, rank);
  shard.up_width = shard.ffn * (model.mlp == models::Mlp::swiglu ? 2 : 1);
  shard.vocab = ceil_div(count(model.vocab), count(plan.tp));
  shard.keys = model.attention == models::AttentionMask::causal ? (shard.sequence + 2) / 2 : shard.sequence;
  shard.element = element_bytes(training.precision);
  return shard;
}

std::uint64_t layer_parameters(const models::TransformerSpec& model, const Shard& shard) {
  std::uint64_t total = models::count_parameters(model).norms_per_layer;
  total += shard.hidden * (shard.qkv_width() + shard.q_width);
  total += shard.hidden * (shard.up_width + shard.ffn);
  if (model.has_qkv_bias()) total += shard.qkv_width();
  if (model.linear_bias) total += shard.hidden + shard.up_width + shard.hidden;
  return total;
}

std::uint64_t token_embedding_parameters(const Shard& shard) { return shard.vocab * shard.hidden; }

std::uint64_t embedding_parameters(const models::TransformerSpec& model, const Shard& shard) {
  const bool learned = model.positions == models::Positions::learned;
  return token_embedding_parameters(shard) + (learned ? count(model.context) * shard.hidden : 0);
}

std::uint64_t head_parameters(const models::TransformerSpec& model, const Shard& shard,
                              bool separate_weight) {
  const std::uint64_t weight =
      !model.tied_embeddings || separate_weight ? token_embedding_parameters(shard) : 0;
  return weight + models::count_parameters(model).final_norm;
}

Bytes optimizer_bytes_per_parameter(Optimizer optimizer, Precision precision) {
  constexpr Bytes kFp32 = 4;
  const Bytes master = precision == Precision::fp32 ? 0 : kFp32;
  switch (optimizer) {
    case Optimizer::none:
      return 0;
    case Optimizer::sgd:
      return master;
    case Optimizer::adam:
      return master + 2 * kFp32;
  }
  return 0;
}

}  // namespace wafersim::workloads
