#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/transformer.h"
#include "workloads/meaning.h"
#include "workloads/plan.h"
#include "workloads/stream_operand.h"

namespace wafersim::workloads {

/// `total` things dealt to `parts` members: the first (total mod parts) members get one more.
std::uint64_t share(std::uint64_t total, int parts, int member);
/// The first of them.
std::uint64_t share_first(std::uint64_t total, int parts, int member);

struct Range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t end() const { return first + count; }
  bool operator==(const Range&) const = default;
};

/// Which part of 0 .. total - 1 a member gets.
inline Range share_range(std::uint64_t total, int parts, int member) {
  return {share_first(total, parts, member), share(total, parts, member)};
}

/// Tokens of a microbatch: rows of its activations (see Region).
struct TokenSet {
  std::vector<Range> ranges;  ///< ascending
  /// Where the set stands when all members' sets are put one behind the other: their terms in sums over tokens.
  std::uint64_t ordinal = 0;
  std::uint64_t count() const;
  /// The share of member `member`, in order of the ranges.
  TokenSet part(int parts, int member) const;
  bool operator==(const TokenSet&) const = default;
};

/// Sums of a part of the ranks travel in fp32.
inline constexpr Bytes kPartialBytes = 4;

/// The ranks of a tile along the axes that cut a layer.
struct InnerRank {
  int tp = 0;
  int tatp = 0;
  int sp = 0;
  int ep = 0;
  auto operator<=>(const InnerRank&) const = default;
};

/// The part of the transformer that one rank holds, and the tensors of one microbatch as that rank sees them.
/// Widths are in elements, `*_bytes` in bytes of the activation type unless said otherwise.
struct Shard {
  InnerRank rank;
  int tp = 1;
  int tatp = 1;
  int sp = 1;  ///< ranks of a group of its own
  bool sequence_parallel = false;  ///< megatron: the residual stream is cut over tp
  /// Dropout with masks of one byte an element. Kept exactly with materialized attention, the setting of
  /// Korthikanti et al. 2022, so that what a layer saves is their table 2 to the byte; fused attention stands
  /// for recent models, which train without dropout.
  bool dropout = false;
  bool fused_attention = true;

  std::uint64_t sequences = 1;     ///< of a microbatch
  std::uint64_t sequence = 0;      ///< tokens of one
  std::uint64_t all_tokens = 0;    ///< of the microbatch
  TokenSet work;                   ///< that this rank's products work on
  std::vector<TokenSet> line;      ///< those of each tatp rank with the same other ranks
  TokenSet local;                  ///< of them, those of its residual stream: its share with megatron
  /// By pair of products: whether its inputs travel over tatp. Its heads or columns of the MLP are then cut over tatp,
  /// too, and what lies between its products is of all tokens of the line.
  std::array<bool, kPairs> streams_inputs{};
  std::array<TokenSet, kPairs> inner;  ///< tokens between the products of a pair, otherwise `work`
  std::uint64_t tokens = 0;        ///< in `work`
  std::uint64_t local_tokens = 0;  ///< in `local`
  std::uint64_t hidden = 0;
  Range heads;                    ///< query heads
  Range kv_heads;                 ///< that they attend to; on several ranks when tp > kv heads
  std::uint64_t head_dim = 0;
  std::uint64_t q_width = 0;
  std::uint64_t kv_width = 0;  ///< of k, and again of v
  Range ffn;                   ///< columns of the MLP
  std::uint64_t up_width = 0;  ///< their number, or twice it for gate and up
  int ep = 1;                  ///< ranks that share out the experts
  Range experts;               ///< that are this rank's own; none without a router
  std::uint64_t expert_slots = 0;  ///< of each expert for the tokens of each rank, padding included
  Range vocab;                 ///< of the vocabulary padded to a multiple of tp
  Bytes element = 2;
  Bytes gradient = 2;  ///< of a weight's gradient

  std::uint64_t qkv_width() const { return q_width + 2 * kv_width; }
  Bytes token_bytes(std::uint64_t width) const { return tokens * width * element; }
  std::uint64_t inner_tokens(int pair) const { return inner[static_cast<std::size_t>(pair)].count(); }
  /// Of what lies between the products of a pair.
  Bytes inner_bytes(int pair, std::uint64_t width) const { return inner_tokens(pair) * width * element; }
  Bytes stream_bytes() const { return token_bytes(hidden); }  ///< residual stream of the tokens worked on
  /// What this rank holds of it.
  Bytes local_stream_bytes() const { return local_tokens * hidden * element; }

  /// Tensors saved for the backward pass besides the layer's input and norms.
  /// Materialized: softmax output, its dropout mask and the dropped output, of so many queries, heads and keys.
  Bytes saved_scores_bytes(std::uint64_t queries, std::uint64_t head_count, std::uint64_t key_count) const;
  /// Fused: one 4-byte log-sum-exp per query and head.
  Bytes statistics_bytes(std::uint64_t queries, std::uint64_t head_count) const;
  Bytes residual_mask_bytes() const { return dropout ? local_tokens * hidden : 0; }

  bool gathers() const { return sequence_parallel && tp > 1; }
};

/// The tokens that a rank works on. The positions of a sequence are cut over sp, each part over tatp. Where keys and
/// values visit every rank and the mask is causal, each rank gets two runs of positions, the i-th from the front and
/// from the back, so that all have equally many query-key pairs (zig-zag).
TokenSet work_tokens(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan, int sp,
                     int tatp);

/// The tokens whose queries, keys and values a rank has after its product with them: those it works on, or of its whole
/// line where inputs travel.
TokenSet attention_tokens(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                          int sp, int tatp);

/// The shard of `rank`. Ragged heads, tokens and widths go to the first ranks; with no more ranks that cut heads than kv
/// heads, query heads stay with theirs.
Shard make_shard(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                 const InnerRank& rank);

/// Bytes of optimizer state per parameter. Mixed precision: fp32 master weight, and adam's two fp32 moments, of one
/// byte each with adamw_8bit (their scales are not counted); with fp32 weights there is no master copy.
Bytes optimizer_bytes_per_parameter(Optimizer optimizer, Precision precision);

}  // namespace wafersim::workloads
