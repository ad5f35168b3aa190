#include <optional>
#include <utility>

#include "workloads/attention.h"
#include "workloads/experts.h"
#include "workloads/layer.h"
#include "workloads/layer_weight.h"
#include "workloads/linear.h"
#include "workloads/operator_steps.h"
#include "workloads/reshard_step.h"

namespace wafersim::workloads {

namespace {

using models::Recompute;

/// The backward step of a layer.
struct Backward {
  StepEmitter& step;
  /// The weight gradients have a step of their own: what they read stays.
  bool split = false;
  /// The operations that the step waits for besides the ones on the way to its result.
  Deps weight_gradients{};
  const Shard& shard() const { return step.shard(); }
  bool routes() const { return step.model().routes(); }
  /// The gradient of a block's output stays for the weight gradients' step, unless experts have it in rows of their own.
  bool keeps_gradient(int which) const {
    return split && (which == 0 || !routes() || step.model().parallel_residual);
  }
};

/// dX of a weight into a new buffer; `output_traffic` is that of dY.
Product input_gradient(Backward& b, Weight weight, const TensorName& d_output, const Views& d_input,
                       const Traffic& output_traffic) {
  const Bytes bytes = linear_input_bytes(b.step, weight);
  return {.weight = weight,
          .input = d_input,
          .input_traffic = {.scratch = bytes},
          .output = d_output,
          .output_traffic = output_traffic,
          .result_bytes = bytes};
}

/// The gradient that comes into a block: a tensor of the residual stream's shape, by name.
struct StreamGradient {
  std::string name;
  Views views;
  Deps ready;
  bool kept = false;  ///< stays for the weight gradients' step
};

/// The gradient of a dropped-out tensor, in a buffer of its own because the residual path needs the gradient
/// as it is.
StreamGradient dropout_gradient(Backward& b, int which, const StreamGradient& gradient) {
  const Shard& s = b.shard();
  if (!s.dropout) return gradient;
  const std::string name = block_gradient_name(b.step, which);
  const Bytes bytes = s.local_stream_bytes();
  Views dropped = b.step.local(name);
  Deps ready = b.step.vector(vector_flops::kDropout * s.local_tokens * s.hidden,
                             Traffic{.scratch = bytes, .saved = s.residual_mask_bytes()} +
                                 kept(bytes, b.keeps_gradient(which)),
                             gradient.ready, {.kernel = Kernel::copy, .reads = gradient.views, .writes = dropped},
                             bytes);
  return {name, std::move(dropped), std::move(ready), b.keeps_gradient(which)};
}

/// Frees the mask and the buffer that dropout_gradient() took, or the mask alone.
void release_dropout_gradient(Backward& b, const StreamGradient& gradient, const Deps& after) {
  if (!b.shard().dropout) return;
  b.step.release(b.shard().residual_mask_bytes() + (gradient.kept ? 0 : b.shard().local_stream_bytes()), after,
                 gradient.kept ? Views{} : b.step.local(gradient.name));
}

/// A block's input gradients before they are summed over the ranks, and what its weight gradients need.
struct BlockGradient {
  Deps partial;      ///< dX of the normed input, a partial sum
  Deps output_used;  ///< dY has been read by the input gradients
  Deps inner;        ///< d(up), or d(q, k, v): an allocated temporary
  std::optional<Deps> second{};  ///< the second product's weight gradient, when made with its input gradient
};

/// The input gradient of a block's second product, into `d_input`. Where inputs travel the output's gradient visits once
/// for the weight gradient, too, unless that has a step of its own.
struct SecondGradient {
  Deps input;
  std::optional<Deps> weight{};
  Deps output_used() const { return weight ? join(input, *weight) : input; }
};
SecondGradient second_gradient(Backward& b, Weight weight, const StreamGradient& gradient, const Views& d_input,
                               const char* input, const Deps& after) {
  StepEmitter& step = b.step;
  const Shard& s = b.shard();
  const Product product = input_gradient(b, weight, step.gathered_name(gradient.name), d_input,
                                         kept(s.stream_bytes(), gradient.kept && !s.gathers()));
  if (b.split || !step.layout().streams_inputs(weight)) return {linear_input_gradient(step, product, after)};
  const Views saved = step.inner(pair_of(weight), input, linear_input_columns(step, weight));
  ProductGradients made =
      linear_gradients_of_inputs(step, product, saved, {.saved = linear_input_bytes(step, weight)}, after);
  return {std::move(made.input), std::move(made.weight)};
}

std::string partial_name(int which) { return which == 0 ? "norm1.gradient" : "norm2.gradient"; }

BlockGradient mlp_input_gradient(Backward& b, const StreamGradient& gradient) {
  StepEmitter& step = b.step;
  const Shard& s = b.shard();
  if (b.routes()) {
    const ExpertGradient made =
        emit_expert_input_gradients(step, gradient.name, kept(s.stream_bytes(), gradient.kept && !s.gathers()),
                                    gradient.ready, partial_name(1), b.split);
    b.weight_gradients = join(std::move(b.weight_gradients), made.router);
    return {made.partial, made.output_used, made.inner};
  }
  const Bytes activated = s.inner_bytes(1, s.ffn.count);
  const Bytes up = s.inner_bytes(1, s.up_width);
  const Views d_active = step.inner(1, "mlp.activated.gradient", s.ffn);
  const Views d_up_views = linear_output(step, Weight::mlp_up, "mlp.up.gradient");
  const SecondGradient d_activated =
      second_gradient(b, Weight::mlp_down, gradient, d_active, "mlp.activated", gradient.ready);
  const Views up_views = linear_output(step, Weight::mlp_up, "mlp.up");
  const Deps d_up = step.vector(activation_backward_flops(step.model()) * s.inner_tokens(1) * s.ffn.count,
                                Traffic{.scratch = activated, .saved = up} + kept(up, b.split), d_activated.input,
                                {.kernel = Kernel::activation_backward,
                                 .reads = d_active + up_views,
                                 .writes = d_up_views},
                                up);
  step.release(activated + up, d_up, d_active + up_views);
  const Deps partial = linear_input_gradient(
      step, input_gradient(b, Weight::mlp_up, "mlp.up.gradient", step.work(partial_name(1)), kept(up, b.split)), d_up);
  return {partial, d_activated.output_used(), d_up, d_activated.weight};
}

/// `scores`: when what the forward step did not leave is there again.
BlockGradient attention_input_gradient(Backward& b, const StreamGradient& gradient, const Deps& scores) {
  StepEmitter& step = b.step;
  const Shard& s = b.shard();
  const Views d_values =
      step.inner(0, "attention.output.gradient", linear_input_columns(step, Weight::attention_output));
  const SecondGradient d_output = second_gradient(b, Weight::attention_output, gradient, d_values, "attention.output",
                                                  join(gradient.ready, scores));
  const Deps d_qkv = emit_attention_gradient(step, d_output.input);
  release_saved_qkv(step, d_qkv);
  // Attention makes it as a temporary; it goes where it stays when it is read here.
  const Bytes d_qkv_bytes = s.inner_bytes(0, s.qkv_width());
  const Traffic d_qkv_traffic = Traffic{.scratch = b.split ? 0 : d_qkv_bytes, .saved = b.split ? 2 * d_qkv_bytes : 0};
  const Deps partial = linear_input_gradient(
      step, input_gradient(b, Weight::qkv, "qkv.gradient", step.work(partial_name(0)), d_qkv_traffic), d_qkv);
  return {partial, d_output.output_used(), d_qkv, d_output.weight};
}

/// The weight gradients of the MLP (1) or of attention (0), unless they have a step of their own. `input`: when the
/// norm's output is there.
void weight_gradients(Backward& b, int which, const StreamGradient& gradient, const Deps& input,
                      const BlockGradient& block) {
  if (b.split) return;
  const auto emit = which == 1 ? emit_mlp_weight_gradients : emit_attention_weight_gradients;
  b.weight_gradients = join(std::move(b.weight_gradients),
                            emit(b.step, {.output = gradient.ready,
                                          .input = input,
                                          .inner = block.inner,
                                          .inner_used = block.partial,
                                          .second = block.second}));
}

/// The gradients of the output biases of the MLP (1) or of attention (0), or with parallel residuals of both,
/// unless they have a step of their own.
void bias_gradients(Backward& b, int which, const StreamGradient& gradient) {
  if (b.split) return;
  b.weight_gradients = join(std::move(b.weight_gradients), emit_bias_gradients(b.step, which, gradient.ready, false));
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
  const Traffic traffic = Traffic{.scratch = bytes, .saved = bytes} + kept(2 * bytes, residual.kept);
  Deps result = step.vector(flops * s.local_tokens * s.hidden, traffic,
                            join(sum, residual.ready),
                            {.kernel = Kernel::norm_backward,
                             .reads = step.local(partial_name(which)) + input.views + step.weights(gain) + residual.views,
                             .writes = result_views + d_gain},
                            bytes);
  step.release(s.stream_bytes(), result, step.work(partial_name(which)));
  if (!residual.kept) step.release(bytes, result, residual.views);
  if (input.last_use) step.release(bytes, result, input.views);
  return {name, result_views, std::move(result)};
}

/// The saved output of a norm as the weight gradients need it: gathered again after `after`, so that it does
/// not compete with the gather that the input gradients wait for. Experts have kept their rows of it.
Deps gather_saved_input(Backward& b, int which, const Deps& after) {
  const bool needed = !b.split && (which == 0 || !b.routes());
  return b.shard().gathers() && needed ? b.step.gather_tokens(norm_name(which), after) : Deps{};
}

StreamGradient gathered(Backward& b, const StreamGradient& gradient) {
  return {gradient.name, gradient.views, b.step.gather_tokens(gradient.name, gradient.ready), gradient.kept};
}

/// Where experts took its place, that of the second norm is gone already.
void release_normed(Backward& b, int which) {
  if (!b.split && (which == 0 || !b.routes())) release_saved_norm(b.step, which, b.weight_gradients);
}

/// A gradient of the residual stream, `layer` layers on, as another cut has it.
StreamGradient resharded(Backward& b, const StreamGradient& gradient, Cut cut, int layer) {
  Deps ready = emit_reshard(b.step, cut, gradient.name, layer, Source::freed, gradient.ready);
  return {gradient.name, StepEmitter::shifted(b.step.local(gradient.name), layer), std::move(ready), gradient.kept};
}

/// From the gradient of the layer's output to that of the residual stream behind attention.
StreamGradient mlp_part(Backward& b, const StreamGradient& gradient) {
  const StreamGradient d_mlp_own = dropout_gradient(b, 1, gradient);
  const StreamGradient d_mlp = gathered(b, d_mlp_own);
  const Deps norm2 = gather_saved_input(b, 1, d_mlp.ready);
  const BlockGradient mlp = mlp_input_gradient(b, d_mlp);
  const Deps d_norm2 = b.step.reduce_tokens(b.step.work(partial_name(1)), mlp.partial);
  weight_gradients(b, 1, d_mlp, norm2, mlp);
  bias_gradients(b, 1, d_mlp_own);
  const Deps mlp_done = join(mlp.output_used, b.weight_gradients);
  release_dropout_gradient(b, d_mlp, mlp_done);
  b.step.release_gathered(d_mlp.name, mlp_done);
  release_normed(b, 1);
  return norm_gradient(b, 1, d_norm2, gradient, {b.step.local("middle")}, "middle.gradient", b.step.local("middle.gradient"));
}

/// From there to the gradient of the layer's input.
StreamGradient attention_part(Backward& b, const StreamGradient& d_middle, const Deps& scores) {
  const StreamGradient d_attention_own = dropout_gradient(b, 0, d_middle);
  const StreamGradient d_attention = gathered(b, d_attention_own);
  const Deps norm1 = gather_saved_input(b, 0, d_attention.ready);
  const BlockGradient attention = attention_input_gradient(b, d_attention, scores);
  const Deps d_norm1 = b.step.reduce_tokens(b.step.work(partial_name(0)), attention.partial);
  weight_gradients(b, 0, d_attention, norm1, attention);
  bias_gradients(b, 0, d_attention_own);
  const Deps attention_done = join(attention.output_used, b.weight_gradients);
  release_dropout_gradient(b, d_attention, attention_done);
  b.step.release_gathered(d_attention.name, attention_done);
  release_normed(b, 0);
  return norm_gradient(b, 0, d_norm1, d_middle, {b.step.stream(0)}, tensors::kStreamGradient, b.step.stream_gradient(0));
}

StreamGradient sequential_backward(Backward& b, const StreamGradient& gradient, const Deps& scores) {
  StreamGradient d_middle = resharded(b, mlp_part(b, resharded(b, gradient, Cut::mlp, 1)), Cut::attention, 0);
  d_middle.kept = b.keeps_gradient(0) && !b.shard().dropout;
  return resharded(b, attention_part(b, d_middle, scores), Cut::plan, 0);
}

/// The two blocks read the same input through norms of their own; the second norm's gradient is added to the
/// first's result.
StreamGradient parallel_backward(Backward& b, const StreamGradient& gradient, const Deps& scores) {
  const StreamGradient d_output_own = dropout_gradient(b, 1, gradient);
  const StreamGradient d_output = gathered(b, d_output_own);
  const Deps norm2 = gather_saved_input(b, 1, d_output.ready);
  const BlockGradient mlp = mlp_input_gradient(b, d_output);
  const Deps d_norm2 = b.step.reduce_tokens(b.step.work(partial_name(1)), mlp.partial);
  weight_gradients(b, 1, d_output, norm2, mlp);
  const Deps norm1 = gather_saved_input(b, 0, mlp.partial);
  const BlockGradient attention = attention_input_gradient(b, d_output, scores);
  const Deps d_norm1 = b.step.reduce_tokens(b.step.work(partial_name(0)), attention.partial);
  weight_gradients(b, 0, d_output, norm1, attention);
  bias_gradients(b, 1, d_output_own);
  const Deps used = join(join(mlp.output_used, attention.output_used), b.weight_gradients);
  release_dropout_gradient(b, d_output, used);
  b.step.release_gathered(d_output.name, used);
  release_normed(b, 1);
  release_normed(b, 0);
  const StreamGradient first = norm_gradient(b, 1, d_norm2, gradient, {b.step.stream(0), false}, "mlp.input.gradient",
                                             b.step.local("mlp.input.gradient"));
  return norm_gradient(b, 0, d_norm1, first, {b.step.stream(0)}, tensors::kStreamGradient, b.step.stream_gradient(0));
}

/// Those that `selective` does not keep, in attention's cut.
Deps recompute_scores(StepEmitter& step, Recompute recompute) {
  if (recompute != Recompute::selective || step.shard().fused_attention) return {};
  return emit_attention_core(step, AttentionScope(step), {}, {}, true);
}

/// What the forward step did not leave is made again. Returns when the scores are there.
Deps recompute_forward(StepEmitter& step, Recompute recompute) {
  if (recompute == Recompute::full) {
    const Deps output = emit_layer_body(step, {}, {});
    step.release(step.shard().local_stream_bytes(), output, step.stream(1));
    return output;
  }
  step.enter(Cut::attention);
  Deps scores = recompute_scores(step, recompute);
  step.enter(Cut::plan);
  return scores;
}

}  // namespace

void emit_layer_backward(StepEmitter& step, const LayerEdges& edges, Recompute recompute, WeightGradients weights) {
  const Bytes stream = step.shard().local_stream_bytes();
  Deps gradient;
  if (edges.output == EdgeKind::remote) gradient = step.receive_boundary(Boundary::backward, edges.output_chunk);
  if (edges.output == EdgeKind::open) {
    gradient = step.hold(stream, {}, {.kernel = Kernel::memory, .writes = step.stream_gradient(1)});
  }
  const Deps again = recompute_forward(step, recompute);

  Backward backward{step, weights == WeightGradients::own_step};
  // What dropout leaves of it has a buffer of its own, which the weight gradients read.
  const bool stays = backward.keeps_gradient(1) && !step.shard().dropout;
  const StreamGradient start{tensors::kStreamGradient, step.stream_gradient(1),
                             recompute == Recompute::full ? join(gradient, again) : gradient, stays};
  const StreamGradient result = step.model().parallel_residual ? parallel_backward(backward, start, again)
                                                               : sequential_backward(backward, start, again);
  const Deps finished = join(result.ready, backward.weight_gradients);
  if (edges.input == EdgeKind::remote) step.send_boundary(Boundary::backward, edges.input_chunk, finished);
  if (edges.input == EdgeKind::open) step.release(stream, finished, step.stream_gradient(0));
}

void emit_operator_backward(StepEmitter& step, Cut which, Recompute recompute) {
  step.enter(which);
  const bool attends = which == Cut::attention;
  const std::string name = attends ? "middle.gradient" : tensors::kStreamGradient;
  const Views views = attends ? step.local(name) : step.stream_gradient(1);
  const Bytes bytes = step.shard().local_stream_bytes();
  Backward backward{step};
  const Deps scores = attends ? recompute_scores(step, recompute) : Deps{};
  const StreamGradient given{name, views, step.hold(bytes, {}, {.kernel = Kernel::memory, .writes = views})};
  const StreamGradient result = attends ? attention_part(backward, given, scores) : mlp_part(backward, given);
  step.release(bytes, join(result.ready, backward.weight_gradients), result.views);
}

}  // namespace wafersim::workloads
