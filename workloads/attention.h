#pragma once

#include "workloads/layer.h"

namespace wafersim::workloads {

/// What a rank's attention works on: the query tokens and the heads. Where heads are exchanged for tokens (ulysses, or
/// `attention: heads` of tensor streams) these are all tokens of the exchanging group and a part of the rank's heads,
/// otherwise the rank's own tokens and all of its heads.
struct AttentionScope {
  explicit AttentionScope(StepEmitter& step);

  StepEmitter& step;
  TokenSet tokens;
  /// Where the tokens stand among all terms: one run for each member of the exchanging group.
  std::vector<Range> ordinals;
  Range heads;
  Range kv_heads;

  std::uint64_t q_width() const { return heads.count * head_dim(); }
  std::uint64_t kv_width() const { return kv_heads.count * head_dim(); }
  std::uint64_t qkv_width() const { return q_width() + 2 * kv_width(); }
  std::uint64_t head_dim() const { return step.shard().head_dim; }
  /// Positions of one sequence among the tokens.
  std::uint64_t positions() const { return tokens.count() / step.shard().sequences; }
  Bytes bytes(std::uint64_t width) const { return tokens.count() * width * step.shard().element; }
  Bytes statistics_bytes() const;    ///< fused: one 4-byte log-sum-exp per query and head
  Bytes saved_scores_bytes() const;  ///< materialized: softmax output, its dropout mask and the dropped output

  Views query(const std::string& tensor) const { return view(tensor, heads.first * head_dim(), q_width()); }
  Views key(const std::string& tensor) const { return key(tensor, tokens); }
  Views value(const std::string& tensor) const { return value(tensor, tokens); }
  Views key(const std::string& tensor, const TokenSet& of) const;
  Views value(const std::string& tensor, const TokenSet& of) const;
  Views qkv(const std::string& tensor) const { return query(tensor) + key(tensor) + value(tensor); }
  /// A score tensor has a column for each head: its cell is a query's row over all keys.
  Views scores(const std::string& tensor) const { return view(tensor, heads.first, heads.count); }

 private:
  Views view(const std::string& tensor, std::uint64_t col, std::uint64_t cols) const {
    return step.view(tensor, tokens, {col, cols});
  }
};

/// Keys in `keys` that a query of `queries` attends to on average, rounded up.
std::uint64_t keys_per_query(const StepEmitter& step, const TokenSet& queries, const TokenSet& keys);

/// Names of the tensors of attention.
namespace tensors {
inline constexpr const char* kQkv = "qkv";
inline constexpr const char* kQkvGradient = "qkv.gradient";
inline constexpr const char* kScores = "attention.scores";
inline constexpr const char* kProbabilities = "attention.probabilities";
inline constexpr const char* kAttention = "attention.output";
inline constexpr const char* kAttentionGradient = "attention.output.gradient";
inline constexpr const char* kDelta = "attention.delta";  ///< row sums of output times its gradient, by head
}  // namespace tensors

/// Attention of the rank's tokens, after their q, k and v are there: position encodings, exchange of heads, scores,
/// softmax and weighted sum of values, exchange back. Takes over the buffer of q, k and v of the rank's tokens;
/// allocates scores (materialized), statistics (fused) and the output, and releases what `keep` does not keep.
Deps emit_attention(StepEmitter& step, const Deps& qkv, const Retention& keep);

/// Its gradient: needs what emit_attention keeps, takes over the buffer of the output's gradient, and returns when the
/// rank's tokens' q, k and v have their gradients, newly allocated.
Deps emit_attention_gradient(StepEmitter& step, const Deps& d_output);

/// Frees q, k and v as emit_attention keeps them.
void release_saved_qkv(StepEmitter& step, const Deps& after);

/// Scores, softmax and the weighted sum of values of a scope whose keys and values are all there; `recompute`
/// allocates the scores only, because the rest was saved.
Deps emit_attention_core(StepEmitter& step, const AttentionScope& scope, const Deps& qkv, const Retention& keep,
                         bool recompute);

/// Whether keys and values of other ranks come by in a stream, over tatp, over a ring of sp ranks, or both.
bool attention_streams(const StepEmitter& step);
/// Forward and backward with such streams (fused kernel): blocks of keys and values are used one by one; their
/// gradients return to the owners as partial sums in fp32. Both allocate their results.
Deps emit_streamed_attention(StepEmitter& step, const AttentionScope& scope, const Deps& qkv, const Retention& keep);
Deps emit_streamed_attention_gradient(StepEmitter& step, const AttentionScope& scope, const Deps& d_output);

/// The group that exchanges heads for tokens; of size 1 when none does.
const Group& exchange_group(const StepEmitter& step);
/// From all heads of the member's tokens to a part of the heads of all tokens of the group, or back: columns of the
/// query heads, of q, k and v, or one 4-byte column for each query head.
enum class Exchange { to_heads, to_tokens };
enum class ExchangedColumns { query, qkv, scalars };
Deps emit_exchange(StepEmitter& step, Exchange direction, ExchangedColumns columns, const std::string& tensor,
                   const Deps& after);

}  // namespace wafersim::workloads
