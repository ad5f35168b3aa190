#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/rational.h"

namespace wafersim::models {

enum class Mlp { gelu, swiglu };
enum class Norm { layernorm, rmsnorm };      ///< layernorm has weight and bias, rmsnorm weight only
enum class Positions { learned, rotary, none };
enum class AttentionMask { causal, full };
enum class AttentionKernel { fused, materialized };

/// A decoder-only transformer and the sequence it is trained on.
struct TransformerSpec {
  std::string name;
  int layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;       ///< hidden / heads unless the model says otherwise
  std::int64_t ffn = 0;            ///< width of the MLP
  std::int64_t vocab = 0;          ///< as counted in the parameters, not padded
  std::int64_t context = 0;        ///< positions of a learned position embedding; longest sequence otherwise
  std::int64_t sequence = 0;       ///< tokens of a training sequence
  Mlp mlp = Mlp::gelu;
  Norm norm = Norm::layernorm;
  Positions positions = Positions::learned;
  bool linear_bias = true;         ///< MLP and output projections (and qkv unless qkv_bias says otherwise) have a bias
  std::optional<bool> qkv_bias;
  bool parallel_residual = false;  ///< attention and MLP read the same input (GPT-NeoX)
  bool final_norm = true;
  bool tied_embeddings = false;    ///< the LM head reuses the token embedding
  bool embedding = true;           ///< false: no token/position embedding at all (studies of the layers alone)
  bool head = true;                ///< false: no final norm, LM head and loss
  AttentionMask attention = AttentionMask::causal;
  AttentionKernel attention_kernel = AttentionKernel::fused;
  /// Mixture of experts: so many MLPs in every layer, of which a token passes `top_k`; 0: one MLP for all tokens.
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  Rational capacity_factor = 1;    ///< slots of an expert, in terms of an even share of the choices

  bool routes() const { return experts > 0; }
  std::int64_t q_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  bool has_qkv_bias() const { return qkv_bias.value_or(linear_bias); }
};

/// Exact parameter counts, unpadded.
struct ParameterCount {
  std::uint64_t attention_per_layer = 0;  ///< q, k, v, output projections with biases
  std::uint64_t mlp_per_layer = 0;        ///< of all experts
  std::uint64_t router_per_layer = 0;     ///< hidden x experts
  std::uint64_t norms_per_layer = 0;
  std::uint64_t embedding = 0;            ///< token and learned position embeddings
  std::uint64_t final_norm = 0;
  std::uint64_t head = 0;                 ///< 0 when tied
  std::uint64_t per_layer() const { return attention_per_layer + mlp_per_layer + router_per_layer + norms_per_layer; }
  std::uint64_t total(int layers) const {
    return per_layer() * static_cast<std::uint64_t>(layers) + embedding + final_norm + head;
  }
};
ParameterCount count_parameters(const TransformerSpec& model);

/// Slots that each expert has for the tokens of one rank: ceil(capacity_factor x tokens x top_k / experts). Choices
/// beyond them are dropped, slots beyond the choices padded. A factor of experts / top_k, the largest that is of use,
/// makes a slot for every token.
std::uint64_t expert_capacity(const TransformerSpec& model, std::uint64_t tokens);

/// Model FLOPs of one training iteration over `sequences` sequences: GEMMs only, forward + backward (3x forward), full
/// s x s scores whatever the mask (the convention of Narayanan et al. 2021, eq. 3, and of "MFU"), no recompute.
/// Of experts the router and the `top_k` that a token passes; with a capacity factor below 1 only so many of these, with one
/// above 1 no padding. For MHA with a 4h GELU MLP this is 72 B s L h^2 (1 + s/(6h) + V/(12 L h)). Returned as an exact
/// integer; throws PlanError when it does not fit 64 bits (it is proportional to `sequences`, so the count of one can be scaled).
std::uint64_t model_flops(const TransformerSpec& model, std::uint64_t sequences);

/// FLOPs with full scores / FLOPs with the scores that the mask leaves (a causal row has (s+1)/2 of s, rounded up): what
/// executed FLOPs are multiplied by to be counted like model_flops. 1 without a mask.
double full_score_factor(const TransformerSpec& model);

/// How many bytes one layer keeps for its backward pass, by the formulas of Korthikanti et al. 2022 (arXiv 2205.05198,
/// table 2), for one microbatch on one tile of a tensor-parallel group: 16-bit activations, dropout masks of one byte.
enum class Recompute { none, selective, full };
struct ActivationScope {
  std::uint64_t microbatch = 1;
  int tp = 1;
  bool sequence_parallel = false;
  Recompute recompute = Recompute::none;
};
/// Whether a model is in the scope in which the paper states its formulas: MHA, a 4h GELU MLP, materialized attention.
bool megatron_activations_apply(const TransformerSpec& model);
/// sbh(10 + 24/t + 5as/(ht)), with SP sbh/t (34 + 5as/h), selective drops the 5as/h term, full keeps 2sbh with or without
/// SP. The exact rational as double. Throws PlanError outside the scope or for tp < 1.
double megatron_activation_bytes_per_layer(const TransformerSpec& model, const ActivationScope& scope);
/// Stage 0 of p stages: L/p layers times p microbatches in flight for v = 1 (1F1B); with v > 1 interleaved chunks that
/// times (1 + (p-1)/(p v)). Throws PlanError outside the scope or for a degree below 1.
double megatron_activation_bytes_first_stage(const TransformerSpec& model, const ActivationScope& scope, int pp,
                                             int interleave);

}  // namespace wafersim::models
