#include "workloads/attention.h"

namespace wafersim::workloads {

namespace {

/// The tensors of attention as the rank sees them. A score tensor has a column for each head: its cell is a
/// query's row over all keys.
class Tensors {
 public:
  explicit Tensors(StepEmitter& step) : step_(step) {}
  Views heads(const char* name) const {
    const Shard& s = step_.shard();
    return step_.work(name, s.heads);
  }
  Views query(const char* name) const { return step_.work(name, q()); }
  Views key(const char* name) const { return kv(name, width(step_.model().q_width())); }
  Views value(const char* name) const {
    return kv(name, width(step_.model().q_width()) + width(step_.model().kv_width()));
  }
  Range q() const { return {step_.shard().heads.first * step_.shard().head_dim, step_.shard().q_width}; }
  Views kv(const char* name, std::uint64_t first) const {
    const Shard& s = step_.shard();
    return step_.work(name, {first + s.kv_heads.first * s.head_dim, s.kv_width});
  }
  static std::uint64_t width(std::int64_t value) { return static_cast<std::uint64_t>(value); }

 private:
  StepEmitter& step_;
};

constexpr const char* kQkv = "qkv";
constexpr const char* kQkvGradient = "qkv.gradient";
constexpr const char* kScores = "attention.scores";
constexpr const char* kProbabilities = "attention.probabilities";
constexpr const char* kOutput = "attention.output";
constexpr const char* kOutputGradient = "attention.output.gradient";
constexpr const char* kProbabilityGradient = "attention.probabilities.gradient";
constexpr const char* kScoreGradient = "attention.scores.gradient";

}  // namespace

Deps emit_rotary(StepEmitter& step, const Deps& qkv, const Retention& keep) {
  const Shard& s = step.shard();
  if (step.model().positions != models::Positions::rotary) return qkv;
  const Tensors t(step);
  const std::uint64_t width = s.q_width + s.kv_width;
  const Views turned = t.query(kQkv) + t.key(kQkv);
  return step.vector(vector_flops::kRotary * s.tokens * width, kept(2 * s.token_bytes(width), keep.layer), qkv,
                     {.kernel = Kernel::rotary, .reads = turned, .writes = turned});
}

Deps emit_attention_core(StepEmitter& step, const Deps& qkv, const Retention& keep, bool recompute) {
  const Shard& s = step.shard();
  const Tensors t(step);
  const Bytes q_bytes = s.token_bytes(s.q_width);
  const Bytes kv_bytes = s.token_bytes(s.kv_width);
  const std::uint64_t batch = s.sequences * s.heads.count;
  const std::uint64_t scores = batch * s.sequence * s.keys;
  // A fused kernel keeps its scores next to the engines: they never pass through SRAM.
  const Bytes scores_bytes = s.fused_attention ? 0 : scores * s.element;
  const Bytes softmax_bytes = s.fused_attention ? s.statistics_bytes() : 2 * scores_bytes;
  const Bytes mask_bytes = s.dropout ? scores + scores_bytes : 0;
  const bool keep_softmax = s.fused_attention ? keep.layer : keep.scores;

  const Traffic score_traffic = kept(q_bytes + kv_bytes, keep.layer) + Traffic{.scratch = scores_bytes};
  const Deps product = step.gemm({batch, s.sequence, s.keys, s.head_dim}, score_traffic, qkv,
                                 {.kernel = Kernel::scores,
                                  .reads = t.query(kQkv) + t.key(kQkv),
                                  .writes = t.heads(kScores)},
                                 s.saved_scores_bytes());
  const std::uint64_t flops = vector_flops::kSoftmax + (s.dropout ? vector_flops::kDropout : 0);
  const Deps softmax = step.vector(flops * scores, kept(softmax_bytes + mask_bytes, keep_softmax), product,
                                   {.kernel = Kernel::softmax,
                                    .reads = t.heads(kScores),
                                    .writes = t.heads(kProbabilities),
                                    .discards = t.heads(kScores)},
                                   recompute ? 0 : s.statistics_bytes());
  const Traffic value_traffic = kept(scores_bytes, keep_softmax) + kept(kv_bytes + q_bytes, keep.layer);
  return step.gemm({batch, s.sequence, s.head_dim, s.keys}, value_traffic, softmax,
                   {.kernel = Kernel::values,
                    .reads = t.heads(kProbabilities) + t.value(kQkv),
                    .writes = t.query(kOutput),
                    .discards = s.fused_attention ? t.heads(kProbabilities) : Views{}},
                   recompute ? 0 : q_bytes);
}

Deps emit_attention_core_gradient(StepEmitter& step, const Deps& d_output, bool keep) {
  const Shard& s = step.shard();
  const Tensors t(step);
  const std::uint64_t batch = s.sequences * s.heads.count;
  const std::uint64_t scores = batch * s.sequence * s.keys;
  const bool fused = s.fused_attention;
  const Bytes scores_bytes = fused ? 0 : scores * s.element;
  const Bytes whole_scores = fused ? 0 : s.scores_bytes();
  const Bytes q = s.token_bytes(s.q_width);
  const Bytes kv = s.token_bytes(s.kv_width);

  Deps ready = step.hold(s.token_bytes(s.qkv_width()), d_output);
  if (fused) {
    const Deps again = step.gemm({batch, s.sequence, s.keys, s.head_dim}, {.saved = q + kv}, ready,
                                 {.kernel = Kernel::scores,
                                  .reads = t.query(kQkv) + t.key(kQkv),
                                  .writes = t.heads(kScores)});
    ready = step.vector(vector_flops::kSoftmaxFromStatistics * scores, {.saved = s.statistics_bytes()}, again,
                        {.kernel = Kernel::softmax,
                         .reads = t.heads(kScores),
                         .writes = t.heads(kProbabilities),
                         .discards = t.heads(kScores)});
  }
  const Deps d_value = step.gemm({batch, s.keys, s.head_dim, s.sequence},
                                 Traffic{.scratch = q, .saved = scores_bytes} + kept(kv, keep), ready,
                                 {.kernel = Kernel::value_gradient,
                                  .reads = t.heads(kProbabilities) + t.query(kOutputGradient),
                                  .writes = t.value(kQkvGradient)});
  const Deps d_softmax = step.gemm({batch, s.sequence, s.keys, s.head_dim},
                                   {.scratch = q + scores_bytes, .saved = kv}, ready,
                                   {.kernel = Kernel::softmax_gradient,
                                    .reads = t.query(kOutputGradient) + t.value(kQkv),
                                    .writes = t.heads(kProbabilityGradient)},
                                   whole_scores);
  const std::uint64_t flops = vector_flops::kSoftmaxBackward + (s.dropout ? vector_flops::kDropout : 0);
  const Bytes mask = s.dropout ? scores : 0;
  const Deps d_scores =
      step.vector(flops * scores,
                  {.scratch = 2 * scores_bytes, .saved = (fused ? q : scores_bytes) + mask}, d_softmax,
                  {.kernel = Kernel::score_gradient,
                   .reads = t.heads(kProbabilities) + t.heads(kProbabilityGradient),
                   .writes = t.heads(kScoreGradient),
                   .discards = t.heads(kProbabilityGradient)});
  const Deps d_query = step.gemm({batch, s.sequence, s.head_dim, s.keys},
                                 Traffic{.scratch = scores_bytes, .saved = kv} + kept(q, keep), d_scores,
                                 {.kernel = Kernel::query_gradient,
                                  .reads = t.heads(kScoreGradient) + t.key(kQkv),
                                  .writes = t.query(kQkvGradient)});
  const Deps d_key = step.gemm({batch, s.keys, s.head_dim, s.sequence},
                               Traffic{.scratch = scores_bytes, .saved = q} + kept(kv, keep), d_scores,
                               {.kernel = Kernel::key_gradient,
                                .reads = t.heads(kScoreGradient) + t.query(kQkv),
                                .writes = t.key(kQkvGradient),
                                .discards = fused ? t.heads(kScoreGradient) : Views{}});
  Deps done = join(join(d_value, d_query), d_key);
  step.release(whole_scores, join(d_query, d_key), t.heads(kScoreGradient));
  step.release(s.saved_scores_bytes() + s.statistics_bytes(), join(d_value, d_scores), t.heads(kProbabilities));
  if (step.model().positions != models::Positions::rotary) return done;
  const std::uint64_t rotated = s.q_width + s.kv_width;
  const Views turned = t.query(kQkvGradient) + t.key(kQkvGradient);
  return step.vector(vector_flops::kRotary * s.tokens * rotated, kept(2 * s.token_bytes(rotated), keep), done,
                     {.kernel = Kernel::rotary_backward, .reads = turned, .writes = turned});
}

}  // namespace wafersim::workloads
