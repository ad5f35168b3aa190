#include "workloads/stream_operand.h"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/schedule.h"
#include "workloads/shard.h"

namespace wafersim::workloads {
namespace {

std::uint64_t count(std::int64_t value) { return static_cast<std::uint64_t>(value); }

/// Of the tensor-parallel rank that has the fewest.
std::uint64_t fewest_heads(const models::TransformerSpec& model, int tp) {
  const auto ranks = count(tp);
  if (tp > model.kv_heads) return count(model.heads) / ranks;
  return count(model.kv_heads) / ranks * count(model.heads / model.kv_heads);
}

/// Some tensor-parallel rank's query heads attend to several kv heads, and other ranks hold these too.
bool spans_shared_heads(const models::TransformerSpec& model, int tp) {
  if (tp <= model.kv_heads) return false;
  const std::uint64_t group = count(model.heads / model.kv_heads);
  for (int rank = 0; rank < tp; ++rank) {
    const Range heads = share_range(count(model.heads), tp, rank);
    if (heads.count > 0 && heads.first / group != (heads.end() - 1) / group) return true;
  }
  return false;
}

int nearest_unshared(const models::TransformerSpec& model, int tp) {
  while (tp > 1 && spans_shared_heads(model, tp)) --tp;
  return tp;
}

std::uint64_t pair_parameters(const models::TransformerSpec& model, int pair, std::uint64_t kv_heads) {
  const std::uint64_t hidden = count(model.hidden);
  if (pair == 1) {
    const std::uint64_t up = count(model.ffn) * (model.mlp == models::Mlp::swiglu ? 2 : 1);
    return (hidden + (model.linear_bias ? 1 : 0)) * up + hidden * count(model.ffn);
  }
  const std::uint64_t q = count(model.q_width()), kv = kv_heads * count(model.head_dim);
  return (hidden + (model.has_qkv_bias() ? 1 : 0)) * (q + 2 * kv) + hidden * q;
}

/// Key and value heads of all tensor-parallel ranks together.
std::uint64_t kv_heads_held(const models::TransformerSpec& model, int tp) {
  if (tp <= model.kv_heads) return count(model.kv_heads);
  const std::uint64_t group = count(model.heads / model.kv_heads);
  std::uint64_t held = 0;
  for (int rank = 0; rank < tp; ++rank) {
    const Range heads = share_range(count(model.heads), tp, rank);
    held += ceil_div(heads.end(), group) - heads.first / group;
  }
  return held;
}

/// What attention sends over tatp where tokens stay cut.
Bytes attention_volume(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                       std::uint64_t kv_heads) {
  const std::uint64_t tokens = count(training.microbatch) * count(model.sequence), others = count(plan.tatp) - 1;
  const std::uint64_t forwards = training.recompute == models::Recompute::full ? 2 : 1;
  const Bytes element = element_bytes(training.precision);
  const std::uint64_t q = count(model.q_width()), kv = 2 * kv_heads * count(model.head_dim);
  const bool ring = plan.sp == SequenceParallel::ring && plan.sp_degree > 1;
  if (plan.stream.attention == StreamAttention::stream_kv) {
    const std::uint64_t visits = ring ? count(plan.sp_degree) : 1;  // the blocks of all ranks of the ring come by
    return others * visits * tokens * kv * ((forwards + 1) * element + kPartialBytes);
  }
  // One of tatp parts of each row stays.
  const Bytes row_sums = ring ? count(model.heads) * kPartialBytes : 0;
  return tokens * ((forwards + 1) * (2 * q + kv) * element + row_sums) * others / count(plan.tatp);
}

}  // namespace

StreamVolumes stream_volumes(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                             int pair) {
  const std::uint64_t forwards = training.recompute == models::Recompute::full ? 2 : 1;
  const std::uint64_t others = count(plan.tatp) - 1;  // to which each block goes
  const Bytes element = element_bytes(training.precision);
  const std::uint64_t kv_heads = kv_heads_held(model, plan.tp);
  StreamVolumes volumes;
  volumes.weights = others * count(plan.sp_degree) * pair_parameters(model, pair, kv_heads) *
                    ((forwards + 1) * element + kPartialBytes);
  if (pair == 1 && model.routes()) {
    volumes.weights *= count(model.experts / plan.ep);
    return volumes;
  }
  if (pair == 0) volumes.weights += attention_volume(model, training, plan, kv_heads);
  // Outward: the input in each forward pass and for its weight gradient, the output's gradient once, or twice where
  // weight gradients have a pass of their own. Inward: the output in each forward pass, the input's gradient.
  const std::uint64_t outward = forwards + (splits_backward(plan.schedule) ? 3 : 2);
  const std::uint64_t stream = count(training.microbatch) * count(model.sequence) * count(model.hidden);
  volumes.inputs = others * count(plan.tp) * stream * (outward * element + (forwards + 1) * kPartialBytes);
  return volumes;
}

std::string stream_inputs_fault(const models::TransformerSpec& model, const PlanSpec& plan, int pair) {
  if (pair == 1 && model.routes()) return {};
  if (pair == 1) {
    const std::uint64_t columns = count(model.ffn) / count(plan.tp);
    if (count(plan.tatp) <= columns) return {};
    return fmt::format(
        "plan.tatp {} with stream inputs cuts the MLP of a tensor-parallel rank, which has {} columns only; nearest "
        "valid: {}",
        plan.tatp, columns, std::max<std::uint64_t>(columns, 1));
  }
  const std::uint64_t heads = fewest_heads(model, plan.tp);
  if (count(plan.tatp) > heads) {
    return fmt::format(
        "plan.tatp {} with stream inputs cuts the attention heads of a tensor-parallel rank, which has {} only; nearest "
        "valid: {}",
        plan.tatp, heads, std::max<std::uint64_t>(heads, 1));
  }
  if (spans_shared_heads(model, plan.tp)) {
    return fmt::format(
        "plan.tp {} with stream inputs gives a rank query heads of several of the {} key/value heads, which other ranks "
        "hold too; nearest valid: {}",
        plan.tp, model.kv_heads, nearest_unshared(model, plan.tp));
  }
  return {};
}

bool streams_inputs(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                    int pair) {
  if (plan.tatp == 1 || plan.stream.operand == StreamOperand::weights) return false;
  if (pair == 1 && model.routes()) return false;
  if (plan.stream.operand == StreamOperand::inputs) return true;
  if (!stream_inputs_fault(model, plan, pair).empty()) return false;
  const StreamVolumes volumes = stream_volumes(model, training, plan, pair);
  return *volumes.inputs < volumes.weights;
}

std::array<bool, kPairs> streamed_inputs(const models::TransformerSpec& model, const TrainingSpec& training,
                                         const PlanSpec& plan) {
  return {streams_inputs(model, training, plan, 0), streams_inputs(model, training, plan, 1)};
}

std::optional<StreamReport> stream_report(const models::TransformerSpec& model, const TrainingSpec& training,
                                          const PlanSpec& plan) {
  const PlanSpec attention = cut_plan(plan, Cut::attention), mlp = cut_plan(plan, Cut::mlp);
  if (attention.tatp == 1 && mlp.tatp == 1) return std::nullopt;
  return StreamReport{{streams_inputs(model, training, attention, 0), streams_inputs(model, training, mlp, 1)},
                      {stream_volumes(model, training, attention, 0), stream_volumes(model, training, mlp, 1)}};
}

std::optional<StreamAttention> line_attention(const models::TransformerSpec& model, const TrainingSpec& training,
                                              const PlanSpec& plan) {
  if (plan.tatp == 1 || streams_inputs(model, training, plan, 0)) return std::nullopt;
  return plan.stream.attention;
}

bool replicates_kv_heads(const models::TransformerSpec& model, const PlanSpec& plan, bool attention_inputs) {
  if (plan.tp > model.kv_heads) return true;
  return attention_inputs && model.kv_heads / plan.tp < plan.tatp;
}

}  // namespace wafersim::workloads
