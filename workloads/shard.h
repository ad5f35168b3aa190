#pragma once

#include <cstdint>

#include "models/transformer.h"
#include "workloads/plan.h"

namespace wafersim::workloads {

/// `total` things dealt to `parts` members: the first (total mod parts) members get one more.
std::uint64_t share(std::uint64_t total, int parts, int member);

/// The part of the transformer that one tensor-parallel rank holds, and the tensors of one microbatch as that
/// rank sees them. Widths are in elements, `*_bytes` in bytes of the activation type unless said otherwise.
struct Shard {
  int tp = 1;
  int rank = 0;
  bool sequence_parallel = false;
  /// Dropout with masks of one byte an element. Kept exactly with materialized attention, the setting of
  /// Korthikanti et al. 2022, so that what a layer saves is their table 2 to the byte; fused attention stands
  /// for recent models, which train without dropout.
  bool dropout = false;
  bool fused_attention = true;

  std::uint64_t sequences = 1;  ///< of a microbatch
  std::uint64_t sequence = 0;   ///< tokens of one
  std::uint64_t tokens = 0;     ///< of the microbatch
  std::uint64_t local_tokens =
      0;  ///< of the residual stream on this rank: its share with sequence parallelism
  std::uint64_t hidden = 0;
  std::uint64_t heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t q_width = 0;
  std::uint64_t kv_width =
      0;  ///< of k, and again of v; every rank has one head at least (replicated when tp > kv heads)
  std::uint64_t ffn = 0;
  std::uint64_t up_width = 0;  ///< ffn, or gate and up
  std::uint64_t vocab = 0;     ///< of the vocabulary padded to a multiple of tp
  std::uint64_t keys =
      0;  ///< that a query attends to on average, rounded up: s, or (s + 1) / 2 under the causal mask
  Bytes element = 2;

  std::uint64_t qkv_width() const { return q_width + 2 * kv_width; }
  Bytes token_bytes(std::uint64_t width) const { return tokens * width * element; }
  Bytes stream_bytes() const { return token_bytes(hidden); }  ///< residual stream of all tokens
  /// What this rank holds of it.
  Bytes local_stream_bytes() const { return local_tokens * hidden * element; }
  Bytes scores_bytes() const { return sequences * heads * sequence * sequence * element; }

  /// Tensors saved for the backward pass besides the layer's input and norms.
  Bytes saved_scores_bytes()
      const;                       ///< materialized: softmax output, its dropout mask and the dropped output
  Bytes statistics_bytes() const;  ///< fused: one 4-byte log-sum-exp per query and head
  Bytes residual_mask_bytes() const { return dropout ? local_tokens * hidden : 0; }

  bool gathers() const { return sequence_parallel && tp > 1; }
};

/// The shard of `rank`. Ragged heads, tokens and widths go to the first ranks.
Shard make_shard(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                 int rank);

/// Parameters that a rank holds; what tensor parallelism does not cut (norms, output biases, positions)
/// counts on every rank.
std::uint64_t layer_parameters(const models::TransformerSpec& model, const Shard& shard);
std::uint64_t token_embedding_parameters(const Shard& shard);
std::uint64_t embedding_parameters(const models::TransformerSpec& model, const Shard& shard);
/// Final norm and LM head. With tied embeddings the head has a weight of its own only where
/// `separate_weight`: the embedding lives on another stage, or the model has none.
std::uint64_t head_parameters(const models::TransformerSpec& model, const Shard& shard, bool separate_weight);

/// Bytes of optimizer state per parameter. Mixed precision: fp32 master weight, and adam's two fp32 moments;
/// with fp32 weights there is no master copy.
Bytes optimizer_bytes_per_parameter(Optimizer optimizer, Precision precision);

}  // namespace wafersim::workloads
