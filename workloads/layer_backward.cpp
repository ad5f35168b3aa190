#include "workloads/layer.h"

namespace wafersim::workloads {

namespace {

using models::Recompute;

/// The operations that a backward step waits for besides the ones on the way to its result: weight gradients.
struct Backward {
  StepEmitter& step;
  Deps weight_gradients;
  const Shard& shard() const { return step.shard(); }
};

/// dW of a weight of `rows` x `columns`, from its input of tokens x rows and the gradient of its output.
/// Added to what earlier microbatches left: the gradient is read and written.
Deps weight_gradient(Backward& b, const std::string& name, std::uint64_t rows, std::uint64_t columns,
                     bool input_saved, const Deps& after) {
  const Shard& s = b.shard();
  const Bytes input = s.token_bytes(rows);
  const Traffic traffic = Traffic{.scratch = s.token_bytes(columns) + (input_saved ? 0 : input),
                                  .saved = input_saved ? input : 0,
                                  .gradients = 2 * rows * columns * s.element};
  Deps done = b.step.gemm(name, {1, rows, columns, s.tokens}, traffic, after);
  b.weight_gradients = join(std::move(b.weight_gradients), done);
  return done;
}

/// dX = dY W^T for a weight of `rows` x `columns`: columns is the width of dY.
Deps input_gradient(Backward& b, const std::string& name, std::uint64_t rows, std::uint64_t columns,
                    const Deps& after, Bytes result_bytes, bool accumulate = false) {
  const Shard& s = b.shard();
  const Traffic traffic = {.scratch = s.token_bytes(columns) + (accumulate ? 2 : 1) * s.token_bytes(rows),
                           .parameters = rows * columns * s.element};
  return b.step.gemm(name, {1, s.tokens, rows, columns}, traffic, after, result_bytes);
}

/// The gradient of a dropped-out tensor, in a buffer of its own because the residual path needs the gradient
/// as it is.
Deps dropout_gradient(Backward& b, const std::string& name, const Deps& gradient) {
  const Shard& s = b.shard();
  if (!s.dropout) return gradient;
  const Bytes bytes = s.local_stream_bytes();
  return b.step.vector(name, vector_flops::kDropout * s.local_tokens * s.hidden,
                       {.scratch = 2 * bytes, .saved = s.residual_mask_bytes()}, gradient, bytes);
}

/// Frees the mask and the buffer that dropout_gradient() took.
void release_dropout_gradient(Backward& b, const Deps& after) {
  if (!b.shard().dropout) return;
  b.step.release(b.shard().residual_mask_bytes() + b.shard().local_stream_bytes(), after);
}

/// A block's input gradients before they are summed over the ranks, and what its weight gradients need.
struct BlockGradient {
  Deps partial;      ///< dX of the normed input, a partial sum
  Deps output_used;  ///< dY has been read by the input gradients
  Deps inner;        ///< d(up), or d(q, k, v): an allocated temporary
};

BlockGradient mlp_input_gradient(Backward& b, const Deps& gradient) {
  const Shard& s = b.shard();
  const Bytes activated = s.token_bytes(s.ffn);
  const Bytes up = s.token_bytes(s.up_width);
  const Deps d_activated = input_gradient(b, "mlp.activation.gradient", s.ffn, s.hidden, gradient, activated);
  const std::uint64_t flops =
      b.step.model().mlp == models::Mlp::swiglu ? vector_flops::kSwigluBackward : vector_flops::kGeluBackward;
  const Deps d_up = b.step.vector("mlp.up.gradient", flops * s.tokens * s.ffn,
                                  {.scratch = activated + up, .saved = up}, d_activated, up);
  b.step.release(activated, d_up);
  const Deps partial =
      input_gradient(b, "norm2.gradient.partial", s.hidden, s.up_width, d_up, s.stream_bytes());
  return {partial, d_activated, d_up};
}

void mlp_weight_gradients(Backward& b, const Deps& gradient, const Deps& input, const BlockGradient& block) {
  const Shard& s = b.shard();
  const Deps down = weight_gradient(b, "mlp.down.weight.gradient", s.ffn, s.hidden, true, gradient);
  const Deps up = weight_gradient(b, "mlp.up.weight.gradient", s.hidden, s.up_width, !s.gathers(),
                                  join(input, block.inner));
  b.step.release(s.token_bytes(s.ffn + s.up_width), join(down, block.inner));
  b.step.release(s.token_bytes(s.up_width), join(up, block.partial));
}

/// dP, dV, dS, dQ, dK: four products, and with a fused kernel the scores once more (Dao et al. 2022,
/// algorithm 4), because it saved their row statistics only. Returns when q, k and v have their gradients,
/// newly allocated.
Deps attention_core_gradient(Backward& b, const Deps& d_output) {
  StepEmitter& step = b.step;
  const Shard& s = b.shard();
  const std::uint64_t batch = s.sequences * s.heads;
  const std::uint64_t scores = batch * s.sequence * s.keys;
  const bool fused = s.fused_attention;
  const Bytes scores_bytes = fused ? 0 : scores * s.element;
  const Bytes whole_scores = fused ? 0 : s.scores_bytes();
  const Bytes q = s.token_bytes(s.q_width);
  const Bytes kv = s.token_bytes(s.kv_width);

  Deps ready = step.hold(s.token_bytes(s.qkv_width()), d_output);
  if (fused) {
    const Deps again =
        step.gemm("attention.scores", {batch, s.sequence, s.keys, s.head_dim}, {.saved = q + kv}, ready);
    ready = step.vector("attention.softmax", vector_flops::kSoftmaxFromStatistics * scores,
                        {.saved = s.statistics_bytes()}, again);
  }
  const Deps d_value = step.gemm("attention.value.gradient", {batch, s.keys, s.head_dim, s.sequence},
                                 {.scratch = q + kv, .saved = scores_bytes}, ready);
  const Deps d_softmax = step.gemm("attention.softmax.gradient", {batch, s.sequence, s.keys, s.head_dim},
                                   {.scratch = q + scores_bytes, .saved = kv}, ready, whole_scores);
  const std::uint64_t flops = vector_flops::kSoftmaxBackward + (s.dropout ? vector_flops::kDropout : 0);
  const Bytes mask = s.dropout ? scores : 0;
  const Deps d_scores =
      step.vector("attention.scores.gradient", flops * scores,
                  {.scratch = 2 * scores_bytes, .saved = (fused ? q : scores_bytes) + mask}, d_softmax);
  const Deps d_query = step.gemm("attention.query.gradient", {batch, s.sequence, s.head_dim, s.keys},
                                 {.scratch = scores_bytes + q, .saved = kv}, d_scores);
  const Deps d_key = step.gemm("attention.key.gradient", {batch, s.keys, s.head_dim, s.sequence},
                               {.scratch = scores_bytes + kv, .saved = q}, d_scores);
  Deps done = join(join(d_value, d_query), d_key);
  step.release(whole_scores, join(d_query, d_key));
  step.release(s.saved_scores_bytes() + s.statistics_bytes(), join(d_value, d_scores));
  if (step.model().positions != models::Positions::rotary) return done;
  const std::uint64_t rotated = s.q_width + s.kv_width;
  return step.vector("rotary.gradient", vector_flops::kRotary * s.tokens * rotated,
                     {.scratch = 2 * s.token_bytes(rotated)}, done);
}

/// `add_to`: the partial sum of the block before, with parallel residual.
BlockGradient attention_input_gradient(Backward& b, const Deps& gradient, const Deps& scores,
                                       const Deps& add_to) {
  const Shard& s = b.shard();
  const Bytes q = s.token_bytes(s.q_width);
  const Deps d_output =
      input_gradient(b, "attention.output.gradient", s.q_width, s.hidden, join(gradient, scores), q);
  const Deps d_qkv = attention_core_gradient(b, d_output);
  b.step.release(q, d_qkv);
  const bool accumulate = !add_to.empty();
  const Deps partial = input_gradient(b, "norm1.gradient.partial", s.hidden, s.qkv_width(),
                                      join(d_qkv, add_to), accumulate ? 0 : s.stream_bytes(), accumulate);
  return {partial, d_output, d_qkv};
}

void attention_weight_gradients(Backward& b, const Deps& gradient, const Deps& input,
                                const BlockGradient& block) {
  const Shard& s = b.shard();
  const Deps output =
      weight_gradient(b, "attention.output.weight.gradient", s.q_width, s.hidden, true, gradient);
  const Deps qkv = weight_gradient(b, "qkv.weight.gradient", s.hidden, s.qkv_width(), !s.gathers(),
                                   join(input, block.inner));
  b.step.release(s.token_bytes(s.q_width + s.qkv_width()), join(output, block.inner));
  b.step.release(s.token_bytes(s.qkv_width()), join(qkv, block.partial));
}

/// Gradient through a norm, plus the residual path's, into a new buffer. Frees the partial sums, the norm's
/// saved input and the gradient that came in.
Deps norm_gradient(Backward& b, const std::string& name, const Deps& sum, const Deps& residual) {
  const Shard& s = b.shard();
  const Bytes bytes = s.local_stream_bytes();
  const std::uint64_t flops =
      vector_flops::kNormBackward * norm_flops(b.step.model()) + vector_flops::kResidual;
  Deps result = b.step.vector(name, flops * s.local_tokens * s.hidden, {.scratch = 3 * bytes, .saved = bytes},
                              join(sum, residual), bytes);
  b.step.release(s.stream_bytes() + 2 * bytes, result);
  return result;
}

/// The saved output of a norm as the weight gradients need it: gathered again after `after`, so that it does
/// not compete with the gather that the input gradients wait for.
Deps gather_saved_input(Backward& b, const std::string& name, const Deps& after) {
  return b.shard().gathers() ? b.step.gather_tokens(name, after) : Deps{};
}

/// Frees the gathered gradient, the input that was gathered again and its saved shard.
void release_block(Backward& b, const Deps& gradient_used) {
  b.step.release_gathered(gradient_used);
  b.step.release_gathered(b.weight_gradients);
  b.step.release(b.shard().local_stream_bytes(), b.weight_gradients);
}

Deps sequential_backward(Backward& b, const Deps& gradient, const Deps& scores) {
  const Deps d_mlp = dropout_gradient(b, "mlp.dropout.gradient", gradient);
  const Deps d_mlp_all = b.step.gather_tokens("mlp.output.gradient.gathered", d_mlp);
  const Deps norm2 = gather_saved_input(b, "norm2.gathered", d_mlp_all);
  const BlockGradient mlp = mlp_input_gradient(b, d_mlp_all);
  const Deps d_norm2 = b.step.reduce_tokens("norm2.gradient", mlp.partial);
  mlp_weight_gradients(b, d_mlp_all, norm2, mlp);
  release_dropout_gradient(b, join(mlp.output_used, b.weight_gradients));
  release_block(b, join(mlp.output_used, b.weight_gradients));
  const Deps d_middle = norm_gradient(b, "middle.gradient", d_norm2, gradient);

  const Deps d_attention = dropout_gradient(b, "attention.dropout.gradient", d_middle);
  const Deps d_attention_all = b.step.gather_tokens("attention.output.gradient.gathered", d_attention);
  const Deps norm1 = gather_saved_input(b, "norm1.gathered", d_attention_all);
  const BlockGradient attention = attention_input_gradient(b, d_attention_all, scores, {});
  const Deps d_norm1 = b.step.reduce_tokens("norm1.gradient", attention.partial);
  attention_weight_gradients(b, d_attention_all, norm1, attention);
  release_dropout_gradient(b, join(attention.output_used, b.weight_gradients));
  release_block(b, join(attention.output_used, b.weight_gradients));
  return norm_gradient(b, "input.gradient", d_norm1, d_middle);
}

Deps parallel_backward(Backward& b, const Deps& gradient, const Deps& scores) {
  const Deps dropped = dropout_gradient(b, "dropout.gradient", gradient);
  const Deps all = b.step.gather_tokens("output.gradient.gathered", dropped);
  const Deps norm = gather_saved_input(b, "norm.gathered", all);
  const BlockGradient mlp = mlp_input_gradient(b, all);
  const BlockGradient attention = attention_input_gradient(b, all, scores, mlp.partial);
  const Deps d_norm = b.step.reduce_tokens("norm.gradient", attention.partial);
  mlp_weight_gradients(b, all, norm, mlp);
  attention_weight_gradients(b, all, norm, attention);
  const Deps used = join(join(mlp.output_used, attention.output_used), b.weight_gradients);
  release_dropout_gradient(b, used);
  release_block(b, used);
  return norm_gradient(b, "input.gradient", d_norm, gradient);
}

/// What the forward step did not leave is made again. Returns when the scores are there.
Deps recompute_forward(StepEmitter& step, Recompute recompute) {
  if (recompute == Recompute::full) {
    const Deps output = emit_layer_body(step, {}, {});
    step.release(step.shard().local_stream_bytes(), output);
    return output;
  }
  if (recompute == Recompute::selective && !step.shard().fused_attention)
    return emit_attention_core(step, {}, {}, true);
  return {};
}

}  // namespace

void emit_layer_backward(StepEmitter& step, const LayerEdges& edges, Recompute recompute) {
  const Bytes stream = step.shard().local_stream_bytes();
  Deps gradient;
  if (edges.output == EdgeKind::remote) gradient = step.receive_boundary(Boundary::backward);
  if (edges.output == EdgeKind::open) gradient = step.hold(stream, {});
  const Deps again = recompute_forward(step, recompute);

  Backward backward{step, {}};
  const Deps start = recompute == Recompute::full ? join(gradient, again) : gradient;
  const Deps result = step.model().parallel_residual ? parallel_backward(backward, start, again)
                                                     : sequential_backward(backward, start, again);
  const Deps finished = join(result, backward.weight_gradients);
  if (edges.input == EdgeKind::remote) step.send_boundary(Boundary::backward, finished);
  if (edges.input == EdgeKind::open) step.release(stream, finished);
}

}  // namespace wafersim::workloads
