#include "workloads/attention.h"

#include <algorithm>

namespace wafersim::workloads {

using tensors::kAttention;
using tensors::kAttentionGradient;
using tensors::kProbabilities;
using tensors::kQkv;
using tensors::kQkvGradient;
using tensors::kScores;

namespace {

constexpr const char* kProbabilityGradient = "attention.probabilities.gradient";
constexpr const char* kScoreGradient = "attention.scores.gradient";

/// Position encodings of q and k of the rank's tokens, in place, where the model has rotary ones.
Deps rotary(StepEmitter& step, Kernel kernel, const char* tensor, const Traffic& traffic, const Deps& after) {
  const Shard& s = step.shard();
  if (step.model().positions != models::Positions::rotary) return after;
  const std::uint64_t d = s.head_dim;
  const auto q = static_cast<std::uint64_t>(step.model().q_width());
  const Views turned = step.inner(0, tensor, {s.heads.first * d, s.q_width}) +
                       step.inner(0, tensor, {q + s.kv_heads.first * d, s.kv_width});
  return step.vector(vector_flops::kRotary * s.inner_tokens(0) * (s.q_width + s.kv_width), traffic, after,
                     {.kernel = kernel, .reads = turned, .writes = turned});
}

/// Sum over positions q of `queries` of the keys k <= q in `keys`.
std::uint64_t causal_pairs(const Range& queries, const Range& keys) {
  std::uint64_t pairs = 0;
  // Queries behind the last key see all of them, those within see a triangle.
  const std::uint64_t behind = std::max(queries.first, std::min(queries.end(), keys.end()));
  pairs += (queries.end() - std::min(queries.end(), behind)) * keys.count;
  const std::uint64_t from = std::max(queries.first, keys.first), to = std::min(queries.end(), keys.end());
  if (from < to) {
    const std::uint64_t first = from - keys.first + 1, last = to - keys.first;
    pairs += (first + last) * (to - from) / 2;
  }
  return pairs;
}

Deps core_gradient(StepEmitter& step, const AttentionScope& scope, const Deps& d_output) {
  const Shard& s = step.shard();
  const std::uint64_t positions = scope.positions(), keys = keys_per_query(step, scope.tokens, scope.tokens);
  const std::uint64_t batch = s.sequences * scope.heads.count;
  const std::uint64_t scores = batch * positions * keys;
  const bool fused = s.fused_attention;
  const Bytes scores_bytes = fused ? 0 : scores * s.element;
  const Bytes whole_scores = fused ? 0 : scope.tokens.count() * scope.heads.count * positions * s.element;
  const Bytes q = scope.bytes(scope.q_width());
  const Bytes kv = scope.bytes(scope.kv_width());

  Deps ready = step.hold(scope.bytes(scope.qkv_width()), d_output);
  if (fused) {
    const Deps again = step.gemm({batch, positions, keys, s.head_dim}, {.saved = q + kv}, ready,
                                 {.kernel = Kernel::scores,
                                  .reads = scope.query(kQkv) + scope.key(kQkv),
                                  .writes = scope.scores(kScores)});
    ready = step.vector(vector_flops::kSoftmaxFromStatistics * scores, {.saved = scope.statistics_bytes()}, again,
                        {.kernel = Kernel::softmax,
                         .reads = scope.scores(kScores),
                         .writes = scope.scores(kProbabilities),
                         .discards = scope.scores(kScores)});
  }
  const Deps d_value = step.gemm({batch, keys, s.head_dim, positions}, {.scratch = q + kv, .saved = scores_bytes},
                                 ready,
                                 {.kernel = Kernel::value_gradient,
                                  .reads = scope.scores(kProbabilities) + scope.query(kAttentionGradient),
                                  .writes = scope.value(kQkvGradient)});
  const Deps d_softmax = step.gemm({batch, positions, keys, s.head_dim}, {.scratch = q + scores_bytes, .saved = kv},
                                   ready,
                                   {.kernel = Kernel::softmax_gradient,
                                    .reads = scope.query(kAttentionGradient) + scope.value(kQkv),
                                    .writes = scope.scores(kProbabilityGradient)},
                                   whole_scores);
  const std::uint64_t flops = vector_flops::kSoftmaxBackward + (s.dropout ? vector_flops::kDropout : 0);
  const Bytes mask = s.dropout ? scores : 0;
  const Deps d_scores =
      step.vector(flops * scores, {.scratch = 2 * scores_bytes, .saved = (fused ? q : scores_bytes) + mask}, d_softmax,
                  {.kernel = Kernel::score_gradient,
                   .reads = scope.scores(kProbabilities) + scope.scores(kProbabilityGradient),
                   .writes = scope.scores(kScoreGradient),
                   .discards = scope.scores(kProbabilityGradient)});
  const Deps d_query = step.gemm({batch, positions, s.head_dim, keys}, {.scratch = scores_bytes + q, .saved = kv},
                                 d_scores,
                                 {.kernel = Kernel::query_gradient,
                                  .reads = scope.scores(kScoreGradient) + scope.key(kQkv),
                                  .writes = scope.query(kQkvGradient)});
  const Deps d_key = step.gemm({batch, keys, s.head_dim, positions}, {.scratch = scores_bytes + kv, .saved = q},
                               d_scores,
                               {.kernel = Kernel::key_gradient,
                                .reads = scope.scores(kScoreGradient) + scope.query(kQkv),
                                .writes = scope.key(kQkvGradient),
                                .discards = fused ? scope.scores(kScoreGradient) : Views{}});
  step.release(whole_scores, join(d_query, d_key), scope.scores(kScoreGradient));
  step.release(scope.saved_scores_bytes() + scope.statistics_bytes(), join(d_value, d_scores),
               scope.scores(kProbabilities));
  return join(join(d_value, d_query), d_key);
}

/// Row sums of the output times its gradient, which every block's gradient needs.
Deps row_products(StepEmitter& step, const Deps& d_output) {
  const Shard& s = step.shard();
  const Range columns{s.heads.first * s.head_dim, s.q_width};
  const std::uint64_t tokens = s.inner_tokens(0);
  const Bytes output = s.inner_bytes(0, s.q_width);
  const Deps made = step.vector(2 * tokens * s.q_width, {.scratch = output, .saved = output}, d_output,
                                {.kernel = Kernel::row_products,
                                 .reads = step.inner(0, kAttention, columns) +
                                          step.inner(0, kAttentionGradient, columns),
                                 .writes = step.inner(0, tensors::kDelta, s.heads)},
                                tokens * s.heads.count * 4);
  return join(emit_exchange(step, Exchange::to_heads, ExchangedColumns::scalars, tensors::kDelta, made), made);
}

}  // namespace

Bytes AttentionScope::statistics_bytes() const { return step.shard().statistics_bytes(tokens.count(), heads.count); }

Bytes AttentionScope::saved_scores_bytes() const {
  return step.shard().saved_scores_bytes(tokens.count(), heads.count, positions());
}

Views AttentionScope::key(const std::string& tensor, const TokenSet& of) const {
  const auto q = static_cast<std::uint64_t>(step.model().q_width());
  return step.view(tensor, of, {q + kv_heads.first * head_dim(), kv_width()});
}

Views AttentionScope::value(const std::string& tensor, const TokenSet& of) const {
  const auto q = static_cast<std::uint64_t>(step.model().q_width());
  const auto kv = static_cast<std::uint64_t>(step.model().kv_width());
  return step.view(tensor, of, {q + kv + kv_heads.first * head_dim(), kv_width()});
}

std::uint64_t keys_per_query(const StepEmitter& step, const TokenSet& queries, const TokenSet& keys) {
  const std::uint64_t sequences = step.shard().sequences;
  if (step.model().attention == models::AttentionMask::full) return keys.count() / sequences;
  std::uint64_t pairs = 0;
  for (const Range& q : queries.ranges) {
    for (const Range& k : keys.ranges) {
      pairs += causal_pairs({q.first / sequences, q.count / sequences}, {k.first / sequences, k.count / sequences});
    }
  }
  return ceil_div<std::uint64_t>(pairs, std::max<std::uint64_t>(queries.count() / sequences, 1));
}

Deps emit_attention_core(StepEmitter& step, const AttentionScope& scope, const Deps& qkv, const Retention& keep,
                         bool recompute) {
  const Shard& s = step.shard();
  const Bytes q_bytes = scope.bytes(scope.q_width());
  const Bytes kv_bytes = scope.bytes(scope.kv_width());
  const std::uint64_t positions = scope.positions(), keys = keys_per_query(step, scope.tokens, scope.tokens);
  const std::uint64_t batch = s.sequences * scope.heads.count;
  const std::uint64_t scores = batch * positions * keys;
  // A fused kernel keeps its scores next to the engines: they never pass through SRAM.
  const Bytes scores_bytes = s.fused_attention ? 0 : scores * s.element;
  const Bytes softmax_bytes = s.fused_attention ? scope.statistics_bytes() : 2 * scores_bytes;
  const Bytes mask_bytes = s.dropout ? scores + scores_bytes : 0;
  const bool keep_softmax = s.fused_attention ? keep.layer : keep.scores;

  const Traffic score_traffic = kept(q_bytes + kv_bytes, keep.layer) + Traffic{.scratch = scores_bytes};
  const Deps product = step.gemm({batch, positions, keys, s.head_dim}, score_traffic, qkv,
                                 {.kernel = Kernel::scores,
                                  .reads = scope.query(kQkv) + scope.key(kQkv),
                                  .writes = scope.scores(kScores)},
                                 scope.saved_scores_bytes());
  const std::uint64_t flops = vector_flops::kSoftmax + (s.dropout ? vector_flops::kDropout : 0);
  const Deps softmax = step.vector(flops * scores, kept(softmax_bytes + mask_bytes, keep_softmax), product,
                                   {.kernel = Kernel::softmax,
                                    .reads = scope.scores(kScores),
                                    .writes = scope.scores(kProbabilities),
                                    .discards = scope.scores(kScores)},
                                   recompute ? 0 : scope.statistics_bytes());
  const Traffic value_traffic = kept(scores_bytes, keep_softmax) + kept(kv_bytes + q_bytes, keep.layer);
  // The output was saved: making it again is work, and changes nothing.
  const Meaning values = recompute ? Meaning{}
                                   : Meaning{.kernel = Kernel::values,
                                             .reads = scope.scores(kProbabilities) + scope.value(kQkv),
                                             .writes = scope.query(kAttention),
                                             .discards = s.fused_attention ? scope.scores(kProbabilities) : Views{}};
  return step.gemm({batch, positions, s.head_dim, keys}, value_traffic, softmax, values, recompute ? 0 : q_bytes);
}

Deps emit_attention(StepEmitter& step, const Deps& qkv, const Retention& keep) {
  const Shard& s = step.shard();
  const AttentionScope scope(step);
  const Deps turned =
      rotary(step, Kernel::rotary, kQkv, kept(2 * s.inner_bytes(0, s.q_width + s.kv_width), keep.layer), qkv);
  const Deps ready = emit_exchange(step, Exchange::to_heads, ExchangedColumns::qkv, kQkv, turned);
  const Deps core = attention_streams(step) ? emit_streamed_attention(step, scope, ready, keep)
                                            : emit_attention_core(step, scope, ready, keep, false);
  if (!keep.layer) step.release(scope.bytes(scope.qkv_width()) + scope.statistics_bytes(), core, scope.qkv(kQkv));
  if (!keep.scores) step.release(scope.saved_scores_bytes(), core, scope.scores(kProbabilities));
  return emit_exchange(step, Exchange::to_tokens, ExchangedColumns::query, kAttention, core);
}

Deps emit_attention_gradient(StepEmitter& step, const Deps& d_output) {
  const Shard& s = step.shard();
  const AttentionScope scope(step);
  const Deps delta = attention_streams(step) ? row_products(step, d_output) : d_output;
  const Deps ready = emit_exchange(step, Exchange::to_heads, ExchangedColumns::query, kAttentionGradient, delta);
  const Deps core = attention_streams(step) ? emit_streamed_attention_gradient(step, scope, ready)
                                            : core_gradient(step, scope, ready);
  step.release(scope.bytes(scope.q_width()), core, scope.query(kAttentionGradient));
  const Deps own = emit_exchange(step, Exchange::to_tokens, ExchangedColumns::qkv, kQkvGradient, core);
  return rotary(step, Kernel::rotary_backward, kQkvGradient,
                {.scratch = 2 * s.inner_bytes(0, s.q_width + s.kv_width)}, own);
}

void release_saved_qkv(StepEmitter& step, const Deps& after) {
  const AttentionScope scope(step);
  step.release(scope.bytes(scope.qkv_width()), after, scope.qkv(kQkv));
}

}  // namespace wafersim::workloads
