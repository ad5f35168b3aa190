#include "workloads/end_steps.h"

namespace wafersim::workloads {

namespace {

/// Tokens of a microbatch whose embedding a rank holds: an even spread over the vocabulary, rounded up.
std::uint64_t tokens_looked_up(const Shard& s) {
  return ceil_div<std::uint64_t>(s.tokens, static_cast<std::uint64_t>(s.tp));
}

bool learned_positions(const StepEmitter& step) {
  return step.model().positions == models::Positions::learned;
}

Bytes logits_bytes(const Shard& s) { return s.token_bytes(s.vocab); }

/// What the head keeps of its input besides the input itself.
Bytes normed_bytes(const StepEmitter& step) {
  return step.model().final_norm ? step.shard().local_stream_bytes() : 0;
}

/// The input of the logits GEMM: normed where the model has a final norm, and gathered.
Deps gather_head_input(StepEmitter& step, const Deps& after) {
  return step.gather_tokens("head.input.gathered", after);
}

}  // namespace

void emit_embedding_forward(StepEmitter& step) {
  const Shard& s = step.shard();
  const Bytes rows = tokens_looked_up(s) * s.hidden * s.element;
  // Positions are added by one rank to each token, so that the sum over ranks has them once.
  const std::uint64_t position_adds = learned_positions(step) ? tokens_looked_up(s) * s.hidden : 0;
  const Traffic traffic = {.scratch = s.stream_bytes(), .parameters = rows + position_adds * s.element};
  const Deps looked_up = step.vector("embedding.partial", position_adds, traffic, {}, s.stream_bytes());
  const Deps sum = step.reduce_tokens("embedding", looked_up);
  step.release(s.stream_bytes() - s.local_stream_bytes(), sum);
}

void emit_embedding_backward(StepEmitter& step) {
  const Shard& s = step.shard();
  const Deps gradient = step.gather_tokens("embedding.output.gradient.gathered", {});
  const std::uint64_t tables = learned_positions(step) ? 2 : 1;
  const std::uint64_t adds = tables * tokens_looked_up(s) * s.hidden;
  const Deps scattered =
      step.vector("embedding.weight.gradient", adds,
                  {.scratch = adds * s.element, .gradients = 2 * adds * s.element}, gradient);
  step.release_gathered(scattered);
  step.release(s.local_stream_bytes(), scattered);
}

void emit_head_forward(StepEmitter& step) {
  const Shard& s = step.shard();
  const Bytes stream = s.local_stream_bytes();
  Deps input;
  if (step.model().final_norm) {
    input = step.vector("final_norm", norm_flops(step.model()) * s.local_tokens * s.hidden,
                        {.saved = 2 * stream}, {}, stream);
  }
  const Deps gathered = gather_head_input(step, input);
  const Deps logits =
      step.gemm("head.logits", {1, s.tokens, s.vocab, s.hidden},
                {.scratch = s.stream_bytes() + logits_bytes(s), .parameters = s.vocab * s.hidden * s.element},
                gathered, logits_bytes(s));
  step.release_gathered(logits);
  // Softmax with its row operations around the two all-reduces: maximum; exponential and sum; division.
  const std::uint64_t scores = s.tokens * s.vocab;
  const Deps maximum = step.vector("head.maximum", scores, {.scratch = logits_bytes(s)}, logits);
  const Deps all_maxima = step.reduce_token_scalars("head.maximum.all", maximum);
  const Deps exponential = step.vector("head.sum", 4 * scores, {.scratch = 2 * logits_bytes(s)}, all_maxima);
  const Deps all_sums = step.reduce_token_scalars("head.sum.all", exponential);
  step.vector("head.probabilities", scores, {.scratch = logits_bytes(s), .saved = logits_bytes(s)}, all_sums);
}

void emit_head_backward(StepEmitter& step) {
  const Shard& s = step.shard();
  const Bytes stream = s.local_stream_bytes();
  const Bytes weight = s.vocab * s.hidden * s.element;
  const Deps d_logits =
      step.vector("head.logits.gradient", s.tokens * s.vocab, {.saved = 2 * logits_bytes(s)}, {});
  const Deps input = s.gathers() ? gather_head_input(step, {}) : Deps{};
  const Deps partial =
      step.gemm("head.input.gradient.partial", {1, s.tokens, s.hidden, s.vocab},
                {.scratch = s.stream_bytes(), .saved = logits_bytes(s), .parameters = weight}, d_logits,
                s.stream_bytes());
  const Deps sum = step.reduce_tokens("head.input.gradient", partial);
  const Deps d_weight = step.gemm("head.weight.gradient", {1, s.hidden, s.vocab, s.tokens},
                                  {.scratch = s.gathers() ? s.stream_bytes() : 0,
                                   .saved = logits_bytes(s) + (s.gathers() ? 0 : s.stream_bytes()),
                                   .gradients = 2 * weight},
                                  join(d_logits, input));
  step.release_gathered(d_weight);
  step.release(logits_bytes(s), join(partial, d_weight));
  if (!step.model().final_norm) {
    // The reduced sum itself is handed on; the input is not needed any more.
    step.release(s.stream_bytes(), join(sum, d_weight));
    return;
  }
  const Deps result =
      step.vector("head.output.gradient",
                  vector_flops::kNormBackward * norm_flops(step.model()) * s.local_tokens * s.hidden,
                  {.scratch = 2 * stream, .saved = stream}, sum, stream);
  step.release(s.stream_bytes() + stream, result);
  step.release(normed_bytes(step), d_weight);
}

}  // namespace wafersim::workloads
