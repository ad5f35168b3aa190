#include "workloads/end_steps.h"

namespace wafersim::workloads {

namespace {

/// Tokens of a microbatch whose embedding a rank holds: an even spread over the vocabulary, rounded up.
std::uint64_t tokens_looked_up(const Shard& s) {
  return ceil_div<std::uint64_t>(s.tokens, static_cast<std::uint64_t>(s.tp));
}

bool learned_positions(const StepEmitter& step) { return step.model().positions == models::Positions::learned; }

Bytes logits_bytes(const Shard& s) { return s.token_bytes(s.vocab.count); }

/// One fp32 for each token.
Bytes scalars_bytes(const Shard& s) { return 4 * s.tokens; }

/// Parameters of the embedding step's own layer, seen from anywhere.
constexpr int kEmbeddingLayer = -1;

/// What the head keeps of its input besides the input itself.
Bytes normed_bytes(const StepEmitter& step) { return step.model().final_norm ? step.shard().local_stream_bytes() : 0; }

/// A head step's tensors. Its parameters are those of the layer after the last; the table may be the
/// embedding's.
class HeadTensors {
 public:
  explicit HeadTensors(StepEmitter& step)
      : step_(step), layers_(step.model().layers), tied_(step.model().tied_embeddings && step.model().embedding) {}

  /// The output of the last layer, and the gradient that the head makes of it.
  Views input() const { return StepEmitter::of_layer(step_.local(tensors::kStream), layers_); }
  Views input_gradient() const { return StepEmitter::of_layer(step_.local(tensors::kStreamGradient), layers_); }
  /// What the logits are made from.
  Views source() const {
    if (step_.shard().gathers()) return step_.work("head.input.gathered");
    return step_.model().final_norm ? step_.local("head.input") : input();
  }
  Views logits(const char* name) const { return step_.work(name, step_.shard().vocab); }
  Views scalars(const char* name) const { return step_.work(name, {0, 1}); }
  Views norm(bool gradient) const {
    const std::vector<Region> regions = {step_.layout().final_norm()};
    return StepEmitter::of_layer(gradient ? step_.gradients(regions) : step_.weights(regions), layers_);
  }
  Views table(bool gradient) const {
    const InnerRank& rank = step_.shard().rank;
    const std::vector<Region> regions = {step_.layout().table(!tied_, rank.tp, rank.tatp)};
    return StepEmitter::of_layer(gradient ? step_.gradients(regions) : step_.weights(regions),
                                 tied_ ? kEmbeddingLayer : layers_);
  }
  /// The embedding's and the head's contributions to a tied table come one after the other.
  Terms table_terms() const {
    const Shard& s = step_.shard();
    if (!tied_) return {s.work.ordinal, s.tokens, s.all_tokens};
    return {s.all_tokens + s.work.ordinal, s.tokens, 2 * s.all_tokens};
  }

 private:
  StepEmitter& step_;
  int layers_;
  bool tied_;
};

Terms embedding_terms(const StepEmitter& step) {
  const Shard& s = step.shard();
  const bool tied = step.model().tied_embeddings && step.model().head;
  return {s.work.ordinal, s.tokens, (tied ? 2 : 1) * s.all_tokens};
}

/// The input of the logits GEMM, gathered where the rank holds a part of its tokens only.
Deps gather_head_input(StepEmitter& step, const Deps& after) {
  const Shard& s = step.shard();
  if (!s.gathers()) return after;
  const HeadTensors t(step);
  const Views source = step.model().final_norm ? step.local("head.input") : t.input();
  return step.gather(source, "head.input.gathered", after);
}

}  // namespace

void emit_embedding_forward(StepEmitter& step) {
  const Shard& s = step.shard();
  const Bytes rows = tokens_looked_up(s) * s.hidden * s.element;
  // Positions are added by one rank to each token, so that the sum over ranks has them once.
  const std::uint64_t position_adds = learned_positions(step) ? tokens_looked_up(s) * s.hidden : 0;
  const Traffic traffic = {.scratch = s.stream_bytes(), .parameters = rows + position_adds * s.element};
  const ParameterLayout& layout = step.layout();
  const Range vocabulary = layout.vocabulary(s.rank.tp, s.rank.tatp);
  const Terms terms = {vocabulary.first, vocabulary.count,
                       s.vocab.count * static_cast<std::uint64_t>(s.tp)};
  const Views stream = StepEmitter::shifted(step.work(tensors::kStream), 1);
  const Deps looked_up = step.vector(
      position_adds, traffic, {},
      {.kernel = learned_positions(step) ? Kernel::embed_positions : Kernel::embed,
       .reads = step.weights({layout.positions(), layout.table(false, s.rank.tp, s.rank.tatp)}),
       .writes = with_terms(stream, terms)},
      s.stream_bytes());
  const Deps sum = step.reduce_tokens(stream, looked_up);
  if (s.gathers()) step.release(s.stream_bytes() - s.local_stream_bytes(), sum, step.others(stream));
}

void emit_embedding_backward(StepEmitter& step) {
  const Shard& s = step.shard();
  const Views own = step.stream_gradient(1);
  const Deps gathered =
      s.gathers() ? step.gather(own, "embedding.output.gradient.gathered", {}) : Deps{};
  const Views gradient = s.gathers() ? step.work("embedding.output.gradient.gathered") : own;
  // Every rank has all tokens' gradients for the positions, which it holds all of.
  const std::uint64_t adds = (tokens_looked_up(s) + (learned_positions(step) ? s.tokens : 0)) * s.hidden;
  const ParameterLayout& layout = step.layout();
  const Views written =
      with_terms(step.gradients({layout.positions()}), {s.work.ordinal, s.tokens, s.all_tokens}) +
      with_terms(step.gradients({layout.table(false, s.rank.tp, s.rank.tatp)}), embedding_terms(step));
  const Deps scattered =
      step.vector(adds, {.scratch = adds * s.element, .gradients = 2 * adds * s.element}, gathered,
                  {.kernel = Kernel::embed_backward, .reads = gradient, .writes = written});
  if (s.gathers()) step.release(s.stream_bytes(), scattered, gradient);
  step.release(s.local_stream_bytes(), scattered, own);
}

void emit_head_forward(StepEmitter& step) {
  const Shard& s = step.shard();
  const HeadTensors t(step);
  const Bytes stream = s.local_stream_bytes();
  Deps input;
  if (step.model().final_norm) {
    input = step.vector(
        norm_flops(step.model()) * s.local_tokens * s.hidden, {.saved = 2 * stream}, {},
        {.kernel = Kernel::norm, .reads = t.input() + t.norm(false), .writes = step.local("head.input")}, stream);
  }
  const Deps gathered = gather_head_input(step, input);
  const Deps logits =
      step.gemm({1, s.tokens, s.vocab.count, s.hidden},
                {.scratch = s.stream_bytes() + logits_bytes(s), .parameters = s.vocab.count * s.hidden * s.element},
                gathered,
                {.kernel = Kernel::logits, .reads = t.source() + t.table(false), .writes = t.logits("head.logits")},
                logits_bytes(s));
  if (s.gathers()) step.release(s.stream_bytes(), logits, t.source());
  // Softmax with its row operations around the two all-reduces: maximum; exponential and sum; division.
  const std::uint64_t scores = s.tokens * s.vocab.count;
  const Terms terms = {s.vocab.first, s.vocab.count, s.vocab.count * static_cast<std::uint64_t>(s.tp)};
  const Views maxima = t.scalars("head.maximum"), sums = t.scalars("head.sum");
  const Deps maximum = step.vector(
      scores, {.scratch = logits_bytes(s)}, logits,
      {.kernel = Kernel::row_maximum, .reads = t.logits("head.logits"), .writes = with_terms(maxima, terms)},
      scalars_bytes(s));
  const Deps all_maxima = step.reduce_token_scalars("head.maximum", Kernel::maximum, maximum);
  const Deps exponential = step.vector(4 * scores, {.scratch = 2 * logits_bytes(s)}, all_maxima,
                                       {.kernel = Kernel::row_sum,
                                        .reads = t.logits("head.logits") + maxima,
                                        .writes = with_terms(sums, terms)},
                                       scalars_bytes(s));
  const Deps all_sums = step.reduce_token_scalars("head.sum", Kernel::add, exponential);
  const Deps probabilities =
      step.vector(scores, {.scratch = logits_bytes(s), .saved = logits_bytes(s)}, all_sums,
                  {.kernel = Kernel::probabilities,
                   .reads = t.logits("head.logits") + maxima + sums,
                   .writes = t.logits("head.probabilities"),
                   .discards = t.logits("head.logits")});
  step.release(2 * scalars_bytes(s), probabilities, maxima + sums);
}

void emit_head_backward(StepEmitter& step) {
  const Shard& s = step.shard();
  const HeadTensors t(step);
  const Bytes stream = s.local_stream_bytes();
  const Bytes weight = s.vocab.count * s.hidden * s.element;
  const Views d_logits_views = t.logits("head.logits.gradient");
  const Deps d_logits = step.vector(s.tokens * s.vocab.count, {.saved = 2 * logits_bytes(s)}, {},
                                    {.kernel = Kernel::loss_gradient,
                                     .reads = t.logits("head.probabilities"),
                                     .writes = d_logits_views,
                                     .discards = t.logits("head.probabilities")});
  const Deps input = s.gathers() ? gather_head_input(step, {}) : Deps{};
  const Terms terms = {s.vocab.first, s.vocab.count, s.vocab.count * static_cast<std::uint64_t>(s.tp)};
  // Without a final norm the sum itself is the gradient of the residual stream.
  const Views sum_views = step.model().final_norm
                              ? step.work("head.input.gradient")
                              : StepEmitter::of_layer(step.work(tensors::kStreamGradient), step.model().layers);
  const Deps partial = step.gemm(
      {1, s.tokens, s.hidden, s.vocab.count},
      {.scratch = s.stream_bytes(), .saved = logits_bytes(s), .parameters = weight}, d_logits,
      {.kernel = Kernel::logits_input, .reads = d_logits_views + t.table(false), .writes = with_terms(sum_views, terms)},
      s.stream_bytes());
  const Deps sum = step.reduce_tokens(sum_views, partial);
  const Deps d_weight = step.gemm({1, s.hidden, s.vocab.count, s.tokens},
                                  {.scratch = s.gathers() ? s.stream_bytes() : 0,
                                   .saved = logits_bytes(s) + (s.gathers() ? 0 : s.stream_bytes()),
                                   .gradients = 2 * weight},
                                  join(d_logits, input),
                                  {.kernel = Kernel::logits_weight,
                                   .reads = t.source() + d_logits_views,
                                   .writes = with_terms(t.table(true), t.table_terms())});
  if (s.gathers()) step.release(s.stream_bytes(), d_weight, t.source());
  step.release(logits_bytes(s), join(partial, d_weight), d_logits_views);
  if (!step.model().final_norm) {
    // The reduced sum itself is handed on; the input is not needed any more, nor what the reduction left of other
    // ranks' tokens.
    step.release(s.stream_bytes(), join(sum, d_weight), t.input() + step.others(sum_views));
    return;
  }
  const Deps result = step.vector(
      vector_flops::kNormBackward * norm_flops(step.model()) * s.local_tokens * s.hidden,
      {.scratch = 2 * stream, .saved = stream}, sum,
      {.kernel = Kernel::norm_backward,
       .reads = step.local("head.input.gradient") + t.input() + t.norm(false),
       .writes = t.input_gradient() +
                 with_terms(t.norm(true), {s.local.ordinal, s.local_tokens, s.all_tokens})},
      stream);
  step.release(s.stream_bytes() + stream, result, step.work("head.input.gradient") + t.input());
  step.release(normed_bytes(step), d_weight, step.local("head.input"));
}

}  // namespace wafersim::workloads
