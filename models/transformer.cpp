#include "models/transformer.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"

namespace wafersim::models {
namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t count(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::uint64_t linear_parameters(std::int64_t inputs, std::int64_t outputs, bool bias) {
  return count(inputs) * count(outputs) + (bias ? count(outputs) : 0);
}

std::uint64_t norm_parameters(const TransformerSpec& model) {
  return count(model.hidden) * (model.norm == Norm::layernorm ? 2 : 1);
}

std::uint64_t attention_parameters(const TransformerSpec& model) {
  return linear_parameters(model.hidden, model.q_width(), model.has_qkv_bias()) +
         2 * linear_parameters(model.hidden, model.kv_width(), model.has_qkv_bias()) +
         linear_parameters(model.q_width(), model.hidden, model.linear_bias);
}

/// Matrices of hidden x ffn that widen: gate and up in SwiGLU.
std::uint64_t widening_matrices(Mlp mlp) { return mlp == Mlp::swiglu ? 2 : 1; }

/// MLPs of a layer, and those that a token passes.
std::uint64_t mlps(const TransformerSpec& model) { return model.routes() ? count(model.experts) : 1; }
std::uint64_t active_mlps(const TransformerSpec& model) { return model.routes() ? count(model.top_k) : 1; }

std::uint64_t mlp_parameters(const TransformerSpec& model) {
  return widening_matrices(model.mlp) * linear_parameters(model.hidden, model.ffn, model.linear_bias) +
         linear_parameters(model.ffn, model.hidden, model.linear_bias);
}

std::uint64_t embedding_parameters(const TransformerSpec& model) {
  if (!model.embedding) return 0;
  const std::int64_t positions = model.positions == Positions::learned ? model.context : 0;
  return count(model.vocab + positions) * count(model.hidden);
}

/// Multiply-accumulates of one token in the MLPs of one layer that it passes.
Wide mlp_macs(const TransformerSpec& model) {
  return Wide{count(model.hidden)} * count(model.ffn) * (widening_matrices(model.mlp) + 1) * active_mlps(model);
}

/// Multiply-accumulates of one token in the weight matrices of one layer.
Wide projection_macs(const TransformerSpec& model) {
  const Wide hidden = count(model.hidden);
  const Wide attention = hidden * (2 * count(model.q_width()) + 2 * count(model.kv_width()));
  const Wide router = hidden * count(model.experts);
  return attention + router + mlp_macs(model);
}

/// Of one sequence, the multiply-accumulates of choices for which experts have no slots.
Wide dropped_macs(const TransformerSpec& model) {
  const Rational& factor = model.capacity_factor;
  if (!model.routes() || factor >= Rational(1)) return 0;
  const Wide all = count(model.layers) * mlp_macs(model) * count(model.sequence);
  return all - all * count(factor.num()) / count(factor.den());
}

/// Multiply-accumulates of one token against `keys` keys (Q K^T) and as many values (A V).
Wide score_macs(const TransformerSpec& model, std::uint64_t keys) { return Wide{2} * count(model.q_width()) * keys; }

/// Multiply-accumulates of the forward pass of one token that sees `keys` tokens of its sequence.
Wide forward_macs(const TransformerSpec& model, std::uint64_t keys) {
  const Wide layers = count(model.layers) * (projection_macs(model) + score_macs(model, keys));
  const Wide head = model.head ? Wide{count(model.hidden)} * count(model.vocab) : 0;
  return layers + head;
}

void require_megatron_scope(const TransformerSpec& model, const ActivationScope& scope) {
  if (!megatron_activations_apply(model)) {
    throw PlanError(
        fmt::format("model '{}': the activation formulas hold for multi-head attention with materialized "
                    "scores and one GELU MLP of width 4 x hidden only",
                    model.name));
  }
  if (scope.tp < 1) throw PlanError(fmt::format("tp: {} is out of range; it must be at least 1", scope.tp));
}

}  // namespace

ParameterCount count_parameters(const TransformerSpec& model) {
  ParameterCount parameters;
  parameters.attention_per_layer = attention_parameters(model);
  parameters.mlp_per_layer = mlps(model) * mlp_parameters(model);
  parameters.router_per_layer = count(model.hidden) * count(model.experts);
  parameters.norms_per_layer = 2 * norm_parameters(model);
  parameters.embedding = embedding_parameters(model);
  if (!model.head) return parameters;
  parameters.final_norm = model.final_norm ? norm_parameters(model) : 0;
  const bool reuses_embedding = model.tied_embeddings && model.embedding;
  parameters.head = reuses_embedding ? 0 : linear_parameters(model.hidden, model.vocab, false);
  return parameters;
}

std::uint64_t expert_capacity(const TransformerSpec& model, std::uint64_t tokens) {
  const Wide share = Wide{count(model.capacity_factor.num())} * tokens * count(model.top_k);
  const Wide parts = Wide{count(model.capacity_factor.den())} * count(model.experts);
  return static_cast<std::uint64_t>((share + parts - 1) / parts);
}

std::uint64_t model_flops(const TransformerSpec& model, std::uint64_t sequences) {
  constexpr Wide passes = 3;  // forward, and the gradients of inputs and of weights in the backward pass
  constexpr Wide flops_per_mac = 2;
  const Wide macs = forward_macs(model, count(model.sequence)) * count(model.sequence) - dropped_macs(model);
  const Wide flops = passes * flops_per_mac * macs * sequences;
  if (flops > std::numeric_limits<std::uint64_t>::max()) {
    throw PlanError(fmt::format("model '{}': the FLOPs of {} sequences of {} tokens do not fit 64 bits",
                                model.name, sequences, model.sequence));
  }
  return static_cast<std::uint64_t>(flops);
}

double full_score_factor(const TransformerSpec& model) {
  if (model.attention == AttentionMask::full) return 1.0;
  const std::uint64_t sequence = count(model.sequence);
  return static_cast<double>(forward_macs(model, sequence)) /
         static_cast<double>(forward_macs(model, (sequence + 2) / 2));
}

bool megatron_activations_apply(const TransformerSpec& model) {
  return !model.routes() && model.kv_heads == model.heads && model.q_width() == model.hidden && model.mlp == Mlp::gelu &&
         model.ffn == 4 * model.hidden && model.attention_kernel == AttentionKernel::materialized;
}

double megatron_activation_bytes_per_layer(const TransformerSpec& model, const ActivationScope& scope) {
  require_megatron_scope(model, scope);
  const std::uint64_t tp = count(scope.tp);
  const std::uint64_t hidden = count(model.hidden);
  const std::uint64_t tokens = scope.microbatch * count(model.sequence);
  if (scope.recompute == Recompute::full) return static_cast<double>(2 * tokens * hidden);
  // 10 bytes of a hidden element lie outside the tensor-parallel regions, 24 inside; SP splits both.
  const std::uint64_t elements = hidden * (scope.sequence_parallel ? 34 : 10 * tp + 24);
  const std::uint64_t scores =
      scope.recompute == Recompute::none ? 5 * count(model.heads) * count(model.sequence) : 0;
  return static_cast<double>(tokens * (elements + scores)) / static_cast<double>(tp);
}

double megatron_activation_bytes_first_stage(const TransformerSpec& model, const ActivationScope& scope,
                                             int pp, int interleave) {
  if (pp < 1 || interleave < 1) {
    throw PlanError(fmt::format("pp: {} stages with {} chunks are out of range; both must be at least 1", pp,
                                interleave));
  }
  const double layers = megatron_activation_bytes_per_layer(model, scope) * model.layers;
  if (interleave == 1) return layers;
  const double chunks = static_cast<double>(pp) * interleave;
  return layers * (chunks + pp - 1) / chunks;
}

}  // namespace wafersim::models
