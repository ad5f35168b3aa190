#include "workloads/attention.h"
#include "workloads/layer.h"
#include "workloads/linear.h"

namespace wafersim::workloads {

namespace {

using models::Recompute;

/// The operations that a backward step waits for besides the ones on the way to its result: weight gradients.
struct Backward {
  StepEmitter& step;
  Deps weight_gradients;
  const Shard& shard() const { return step.shard(); }
};

/// dW of a weight from its input and the gradient of its output.
Deps weight_gradient(Backward& b, Weight weight, const Views& input, const TensorName& d_output,
                     std::uint64_t output_width, bool input_saved, const Deps& after) {
  const Shard& s = b.shard();
  Deps done = linear_weight_gradient(
      b.step,
      {.weight = weight,
       .input = input,
       .input_traffic = kept(s.token_bytes(linear_input_columns(b.step, weight).count), input_saved),
       .output = d_output,
       .output_traffic = {.scratch = s.token_bytes(output_width)}},
      after);
  b.weight_gradients = join(std::move(b.weight_gradients), done);
  return done;
}

/// dX of a weight; `output_width` is the width of dY.
Deps input_gradient(Backward& b, Weight weight, const TensorName& d_output, const Views& d_input,
                    std::uint64_t output_width, const Deps& after, Bytes result_bytes) {
  const Shard& s = b.shard();
  return linear_input_gradient(
      b.step,
      {.weight = weight,
       .input = d_input,
       .input_traffic = {.scratch = s.token_bytes(linear_input_columns(b.step, weight).count)},
       .output = d_output,
       .output_traffic = {.scratch = s.token_bytes(output_width)},
       .result_bytes = result_bytes},
      after);
}

/// The gradient that comes into a block: a tensor of the residual stream's shape, by name.
struct StreamGradient {
  std::string name;
  Views views;
  Deps ready;
};

/// The gradient of a dropped-out tensor, in a buffer of its own because the residual path needs the gradient
/// as it is.
StreamGradient dropout_gradient(Backward& b, const std::string& name, const StreamGradient& gradient) {
  const Shard& s = b.shard();
  if (!s.dropout) return gradient;
  const Bytes bytes = s.local_stream_bytes();
  Views dropped = b.step.local(name);
  Deps ready = b.step.vector(vector_flops::kDropout * s.local_tokens * s.hidden,
                             {.scratch = 2 * bytes, .saved = s.residual_mask_bytes()}, gradient.ready,
                             {.kernel = Kernel::copy, .reads = gradient.views, .writes = dropped}, bytes);
  return {name, std::move(dropped), std::move(ready)};
}

/// The gradients of output biases, from the tokens of the rank's residual stream.
void bias_gradient(Backward& b, const std::vector<Region>& biases, const StreamGradient& gradient) {
  const Shard& s = b.shard();
  if (!b.step.model().linear_bias) return;
  const Views written = b.step.gradients(biases);
  const std::uint64_t values = s.local_tokens * s.hidden;
  b.weight_gradients = join(
      std::move(b.weight_gradients),
      b.step.vector(values, {.scratch = values * s.element, .gradients = 2 * total_rows(written) * s.gradient},
                    gradient.ready,
                    {.kernel = Kernel::bias_gradient,
                     .reads = gradient.views,
                     .writes = with_terms(written, {s.local.ordinal, s.local_tokens, s.all_tokens})}));
}

/// Frees the mask and the buffer that dropout_gradient() took.
void release_dropout_gradient(Backward& b, const std::string& name, const Deps& after) {
  if (!b.shard().dropout) return;
  b.step.release(b.shard().residual_mask_bytes() + b.shard().local_stream_bytes(), after, b.step.local(name));
}

/// A block's input gradients before they are summed over the ranks, and what its weight gradients need.
struct BlockGradient {
  Deps partial;      ///< dX of the normed input, a partial sum
  Deps output_used;  ///< dY has been read by the input gradients
  Deps inner;        ///< d(up), or d(q, k, v): an allocated temporary
};

std::string partial_name(int which) { return which == 0 ? "norm1.gradient" : "norm2.gradient"; }

BlockGradient mlp_input_gradient(Backward& b, const StreamGradient& gradient) {
  StepEmitter& step = b.step;
  const Shard& s = b.shard();
  const Bytes activated = s.token_bytes(s.ffn.count);
  const Bytes up = s.token_bytes(s.up_width);
  const Views d_active = step.work("mlp.activated.gradient", s.ffn);
  const Views d_up_views = linear_output(step, Weight::mlp_up, "mlp.up.gradient");
  const Deps d_activated = input_gradient(b, Weight::mlp_down, step.gathered_name(gradient.name), d_active, s.hidden,
                                          gradient.ready, activated);
  const std::uint64_t flops =
      step.model().mlp == models::Mlp::swiglu ? vector_flops::kSwigluBackward : vector_flops::kGeluBackward;
  const Deps d_up = step.vector(flops * s.tokens * s.ffn.count, {.scratch = activated + up, .saved = up}, d_activated,
                                {.kernel = Kernel::activation_backward,
                                 .reads = d_active + linear_output(step, Weight::mlp_up, "mlp.up"),
                                 .writes = d_up_views},
                                up);
  step.release(activated, d_up, d_active);
  const Deps partial = input_gradient(b, Weight::mlp_up, "mlp.up.gradient", step.work(partial_name(1)), s.up_width, d_up,
                                      s.stream_bytes());
  return {partial, d_activated, d_up};
}

void mlp_weight_gradients(Backward& b, const StreamGradient& gradient, const Deps& input, const BlockGradient& block) {
  StepEmitter& step = b.step;
  const Shard& s = b.shard();
  const Views active = step.work("mlp.activated", s.ffn);
  const Views up_views = linear_output(step, Weight::mlp_up, "mlp.up");
  const Views d_up = linear_output(step, Weight::mlp_up, "mlp.up.gradient");
  const Deps down = weight_gradient(b, Weight::mlp_down, active, step.gathered_name(gradient.name), s.hidden, true,
                                    gradient.ready);
  const Deps up = weight_gradient(b, Weight::mlp_up, step.gathered(norm_name(1)), "mlp.up.gradient", s.up_width, !s.gathers(),
                                  join(input, block.inner));
  step.release(s.token_bytes(s.ffn.count + s.up_width), join(down, block.inner), active + up_views);
  step.release(s.token_bytes(s.up_width), join(up, block.partial), d_up);
}

/// `scores`: when what the forward step did not leave is there again.
BlockGradient attention_input_gradient(Backward& b, const StreamGradient& gradient, const Deps& scores) {
  StepEmitter& step = b.step;
  const Shard& s = b.shard();
  const Bytes q = s.token_bytes(s.q_width);
  const Views d_values =
      step.work("attention.output.gradient", linear_input_columns(step, Weight::attention_output));
  const Deps d_output = input_gradient(b, Weight::attention_output, step.gathered_name(gradient.name), d_values, s.hidden,
                                       join(gradient.ready, scores), q);
  const Deps d_qkv = emit_attention_gradient(step, d_output);
  const Deps partial = input_gradient(b, Weight::qkv, "qkv.gradient", step.work(partial_name(0)), s.qkv_width(), d_qkv, s.stream_bytes());
  return {partial, d_output, d_qkv};
}

void attention_weight_gradients(Backward& b, const StreamGradient& gradient, const Deps& input,
                                const BlockGradient& block) {
  StepEmitter& step = b.step;
  const Shard& s = b.shard();
  const Views values = step.work("attention.output", linear_input_columns(step, Weight::attention_output));
  const Views d_qkv = linear_output(step, Weight::qkv, "qkv.gradient");
  const Deps output = weight_gradient(b, Weight::attention_output, values, step.gathered_name(gradient.name), s.hidden, true,
                                      gradient.ready);
  const Deps qkv = weight_gradient(b, Weight::qkv, step.gathered(norm_name(0)), "qkv.gradient", s.qkv_width(), !s.gathers(),
                                   join(input, block.inner));
  step.release(s.token_bytes(s.q_width), join(output, block.inner), values);
  release_saved_qkv(step, block.inner);
  step.release(s.token_bytes(s.qkv_width()), join(qkv, block.partial), d_qkv);
}

/// A norm's saved input, and whether nobody needs it after the norm's gradient.
struct NormInput {
  Views views;
  bool last_use = true;
};

/// Gradient through a norm, plus the residual path's, into a new buffer. Frees the partial sums, the gradient
/// that came in and, after its last use, the norm's saved input.
StreamGradient norm_gradient(Backward& b, int which, const Deps& sum, const StreamGradient& residual,
                             const NormInput& input, const std::string& name, const Views& result_views) {
  StepEmitter& step = b.step;
  const Shard& s = b.shard();
  const Bytes bytes = s.local_stream_bytes();
  const std::uint64_t flops = vector_flops::kNormBackward * norm_flops(step.model()) + vector_flops::kResidual;
  const std::vector<Region> gain = {step.layout().norm(which)};
  const Views d_gain =
      with_terms(step.gradients(gain), {s.local.ordinal, s.local_tokens, s.all_tokens});
  Deps result = step.vector(flops * s.local_tokens * s.hidden, {.scratch = 3 * bytes, .saved = bytes},
                            join(sum, residual.ready),
                            {.kernel = Kernel::norm_backward,
                             .reads = step.local(partial_name(which)) + input.views + step.weights(gain) + residual.views,
                             .writes = result_views + d_gain},
                            bytes);
  step.release(s.stream_bytes(), result, step.work(partial_name(which)));
  step.release(bytes, result, residual.views);
  if (input.last_use) step.release(bytes, result, input.views);
  return {name, result_views, std::move(result)};
}

/// The saved output of a norm as the weight gradients need it: gathered again after `after`, so that it does
/// not compete with the gather that the input gradients wait for.
Deps gather_saved_input(Backward& b, int which, const Deps& after) {
  return b.shard().gathers() ? b.step.gather_tokens(norm_name(which), after) : Deps{};
}

StreamGradient gathered(Backward& b, const StreamGradient& gradient) {
  return {gradient.name, gradient.views, b.step.gather_tokens(gradient.name, gradient.ready)};
}

/// Frees the norm's output that was gathered again and its saved shard.
void release_normed(Backward& b, int which) {
  b.step.release_gathered(norm_name(which), b.weight_gradients);
  b.step.release(b.shard().local_stream_bytes(), b.weight_gradients, b.step.local(norm_name(which)));
}

StreamGradient sequential_backward(Backward& b, const StreamGradient& gradient, const Deps& scores) {
  const StreamGradient d_mlp_own = dropout_gradient(b, "mlp.output.gradient", gradient);
  const StreamGradient d_mlp = gathered(b, d_mlp_own);
  const Deps norm2 = gather_saved_input(b, 1, d_mlp.ready);
  const BlockGradient mlp = mlp_input_gradient(b, d_mlp);
  const Deps d_norm2 = b.step.reduce_tokens(b.step.work(partial_name(1)), mlp.partial);
  mlp_weight_gradients(b, d_mlp, norm2, mlp);
  bias_gradient(b, {b.step.layout().output_bias(1)}, d_mlp_own);
  const Deps mlp_done = join(mlp.output_used, b.weight_gradients);
  release_dropout_gradient(b, d_mlp.name, mlp_done);
  b.step.release_gathered(d_mlp.name, mlp_done);
  release_normed(b, 1);
  const StreamGradient d_middle = norm_gradient(b, 1, d_norm2, gradient, {b.step.local("middle")}, "middle.gradient",
                                                b.step.local("middle.gradient"));

  const StreamGradient d_attention_own = dropout_gradient(b, "attention.sum.gradient", d_middle);
  const StreamGradient d_attention = gathered(b, d_attention_own);
  const Deps norm1 = gather_saved_input(b, 0, d_attention.ready);
  const BlockGradient attention = attention_input_gradient(b, d_attention, scores);
  const Deps d_norm1 = b.step.reduce_tokens(b.step.work(partial_name(0)), attention.partial);
  attention_weight_gradients(b, d_attention, norm1, attention);
  bias_gradient(b, {b.step.layout().output_bias(0)}, d_attention_own);
  const Deps attention_done = join(attention.output_used, b.weight_gradients);
  release_dropout_gradient(b, d_attention.name, attention_done);
  b.step.release_gathered(d_attention.name, attention_done);
  release_normed(b, 0);
  return norm_gradient(b, 0, d_norm1, d_middle, {b.step.stream(0)}, tensors::kStreamGradient, b.step.stream_gradient(0));
}

/// The two blocks read the same input through norms of their own; the second norm's gradient is added to the
/// first's result.
StreamGradient parallel_backward(Backward& b, const StreamGradient& gradient, const Deps& scores) {
  const StreamGradient d_output_own = dropout_gradient(b, "output.sum.gradient", gradient);
  const StreamGradient d_output = gathered(b, d_output_own);
  const Deps norm2 = gather_saved_input(b, 1, d_output.ready);
  const BlockGradient mlp = mlp_input_gradient(b, d_output);
  const Deps d_norm2 = b.step.reduce_tokens(b.step.work(partial_name(1)), mlp.partial);
  mlp_weight_gradients(b, d_output, norm2, mlp);
  const Deps norm1 = gather_saved_input(b, 0, mlp.partial);
  const BlockGradient attention = attention_input_gradient(b, d_output, scores);
  const Deps d_norm1 = b.step.reduce_tokens(b.step.work(partial_name(0)), attention.partial);
  attention_weight_gradients(b, d_output, norm1, attention);
  bias_gradient(b, {b.step.layout().output_bias(0), b.step.layout().output_bias(1)}, d_output_own);
  const Deps used = join(join(mlp.output_used, attention.output_used), b.weight_gradients);
  release_dropout_gradient(b, d_output.name, used);
  b.step.release_gathered(d_output.name, used);
  release_normed(b, 1);
  release_normed(b, 0);
  const StreamGradient first = norm_gradient(b, 1, d_norm2, gradient, {b.step.stream(0), false}, "mlp.input.gradient",
                                             b.step.local("mlp.input.gradient"));
  return norm_gradient(b, 0, d_norm1, first, {b.step.stream(0)}, tensors::kStreamGradient, b.step.stream_gradient(0));
}

/// What the forward step did not leave is made again. Returns when the scores are there.
Deps recompute_forward(StepEmitter& step, Recompute recompute) {
  if (recompute == Recompute::full) {
    const Deps output = emit_layer_body(step, {}, {});
    step.release(step.shard().local_stream_bytes(), output, step.stream(1));
    return output;
  }
  if (recompute == Recompute::selective && !step.shard().fused_attention)
    return emit_attention_core(step, AttentionScope(step), {}, {}, true);
  return {};
}

}  // namespace

void emit_layer_backward(StepEmitter& step, const LayerEdges& edges, Recompute recompute) {
  const Bytes stream = step.shard().local_stream_bytes();
  Deps gradient;
  if (edges.output == EdgeKind::remote) gradient = step.receive_boundary(Boundary::backward);
  if (edges.output == EdgeKind::open) {
    gradient = step.hold(stream, {}, {.kernel = Kernel::memory, .writes = step.stream_gradient(1)});
  }
  const Deps again = recompute_forward(step, recompute);

  Backward backward{step, {}};
  const StreamGradient start{tensors::kStreamGradient, step.stream_gradient(1),
                             recompute == Recompute::full ? join(gradient, again) : gradient};
  const StreamGradient result = step.model().parallel_residual ? parallel_backward(backward, start, again)
                                                               : sequential_backward(backward, start, again);
  const Deps finished = join(result.ready, backward.weight_gradients);
  if (edges.input == EdgeKind::remote) step.send_boundary(Boundary::backward, finished);
  if (edges.input == EdgeKind::open) step.release(stream, finished, step.stream_gradient(0));
}

}  // namespace wafersim::workloads
