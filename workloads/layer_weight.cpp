#include "workloads/layer_weight.h"

#include "workloads/experts.h"
#include "workloads/linear.h"

namespace wafersim::workloads {

namespace {

/// One of a block's products.
struct BlockProduct {
  Weight weight = Weight::qkv;
  Views input;
  TensorName d_output;
  Bytes output_bytes = 0;
  bool input_saved = false;   ///< as the forward step left it, not gathered again
  bool output_saved = false;  ///< as an earlier step left it
};

Deps weight_gradient(StepEmitter& step, const BlockProduct& product, const Deps& after) {
  return linear_weight_gradient(
      step,
      {.weight = product.weight,
       .input = product.input,
       .input_traffic = kept(linear_input_bytes(step, product.weight), product.input_saved),
       .output = product.d_output,
       .output_traffic = kept(product.output_bytes, product.output_saved)},
      after);
}

struct Block {
  int which = 0;
  Weight first = Weight::qkv;
  Weight second = Weight::attention_output;
  Views second_input;
  std::string d_inner;
  std::uint64_t second_input_width = 0;
  std::uint64_t inner_width = 0;
};

Deps block_weight_gradients(StepEmitter& step, const Block& block, const WeightOperands& ready) {
  const Shard& s = step.shard();
  const TensorName d_output = step.gathered_name(block_gradient_name(step, block.which));
  const Bytes inner = s.inner_bytes(block.which, block.inner_width);
  const Deps second =
      ready.second ? *ready.second
                   : weight_gradient(step,
                                     {block.second, block.second_input, d_output, s.stream_bytes(), true,
                                      ready.kept && !s.gathers()},
                                     ready.output);
  const Deps first = weight_gradient(step,
                                     {block.first, step.gathered(norm_name(block.which)), block.d_inner, inner,
                                      !s.gathers(), ready.kept},
                                     join(ready.input, ready.inner));
  step.release(s.inner_bytes(block.which, block.second_input_width), second, block.second_input);
  step.release(inner, join(first, ready.inner_used),
               linear_output(step, block.first, block.d_inner));
  return join(second, first);
}

/// The weight gradients of both blocks read one gradient, which is gathered once.
bool shares_gradient(const StepEmitter& step) { return step.model().parallel_residual; }

/// The rank's own rows of it.
Views block_gradient(StepEmitter& step, int which) {
  const std::string name = block_gradient_name(step, which);
  return name == tensors::kStreamGradient ? step.stream_gradient(1) : step.local(name);
}

void release_block_gradient(StepEmitter& step, int which, const Deps& gathered_used, const Deps& used) {
  step.release_gathered(block_gradient_name(step, which), gathered_used);
  step.release(step.shard().local_stream_bytes(), join(gathered_used, used), block_gradient(step, which));
}

}  // namespace

std::string block_gradient_name(const StepEmitter& step, int which) {
  const bool of_output = which == 1 || step.model().parallel_residual;
  if (!step.shard().dropout) return of_output ? tensors::kStreamGradient : "middle.gradient";
  if (step.model().parallel_residual) return "output.sum.gradient";
  return which == 1 ? "mlp.output.gradient" : "attention.sum.gradient";
}

Deps emit_mlp_weight_gradients(StepEmitter& step, const WeightOperands& ready) {
  const Shard& s = step.shard();
  if (step.model().routes()) return emit_expert_weight_gradients(step, ready);
  return block_weight_gradients(step,
                                {1, Weight::mlp_up, Weight::mlp_down, step.inner(1, "mlp.activated", s.ffn),
                                 "mlp.up.gradient", s.ffn.count, s.up_width},
                                ready);
}

Deps emit_attention_weight_gradients(StepEmitter& step, const WeightOperands& ready) {
  const Shard& s = step.shard();
  const Views values = step.inner(0, "attention.output", linear_input_columns(step, Weight::attention_output));
  return block_weight_gradients(step,
                                {0, Weight::qkv, Weight::attention_output, values,
                                 "qkv.gradient", s.q_width, s.qkv_width()},
                                ready);
}

Deps emit_bias_gradients(StepEmitter& step, int which, const Deps& after, bool gradient_kept) {
  const Shard& s = step.shard();
  if (!step.model().linear_bias) return {};
  std::vector<Region> biases = {step.layout().output_bias(which)};
  if (step.model().parallel_residual) biases = {step.layout().output_bias(0), step.layout().output_bias(1)};
  const Views written = step.gradients(biases);
  const std::uint64_t values = s.local_tokens * s.hidden;
  return step.vector(values,
                     kept(values * s.element, gradient_kept) +
                         Traffic{.gradients = 2 * total_rows(written) * s.gradient},
                     after,
                     {.kernel = Kernel::bias_gradient,
                      .reads = block_gradient(step, which),
                      .writes = with_terms(written, {s.local.ordinal, s.local_tokens, s.all_tokens})});
}

void release_saved_norm(StepEmitter& step, int which, const Deps& after) {
  step.release_gathered(norm_name(which), after);
  step.release(step.shard().local_stream_bytes(), after, step.local(norm_name(which)));
}

namespace {

/// The MLP's part of a weight step, after which attention may gather.
struct MlpWeights {
  Deps gathered;
  Deps done;
};

/// Experts have their operands in rows of their own: nothing is gathered for them.
MlpWeights mlp_weight_gradients(StepEmitter& step) {
  if (step.model().routes()) return {{}, emit_mlp_weight_gradients(step, {.kept = true})};
  const Deps gradient = step.gather_tokens(block_gradient_name(step, 1), {});
  const Deps norm = step.gather_tokens(norm_name(1), gradient);
  const Deps done = emit_mlp_weight_gradients(step, {.output = gradient, .input = norm, .kept = true});
  return {norm, done};
}

}  // namespace

void emit_layer_weight(StepEmitter& step) {
  // One gather after the other, so that those which are needed first do not share their links with the rest.
  const bool routes = step.model().routes();
  step.enter(Cut::mlp);
  const MlpWeights mlp = mlp_weight_gradients(step);
  step.enter(Cut::attention);
  const Deps d_attention = shares_gradient(step) && !routes ? mlp.gathered
                                                            : step.gather_tokens(block_gradient_name(step, 0), mlp.gathered);
  const Deps norm1 = step.gather_tokens(norm_name(0), d_attention);
  const Deps attention =
      emit_attention_weight_gradients(step, {.output = d_attention, .input = norm1, .kept = true});
  step.enter(Cut::mlp);
  if (!routes) release_saved_norm(step, 1, mlp.done);
  step.enter(Cut::attention);
  release_saved_norm(step, 0, attention);
  if (shares_gradient(step)) {
    release_block_gradient(step, 1, join(mlp.done, attention), emit_bias_gradients(step, 1, {}, true));
    return;
  }
  step.enter(Cut::mlp);
  if (!routes) release_block_gradient(step, 1, mlp.done, emit_bias_gradients(step, 1, {}, true));
  step.enter(Cut::attention);
  release_block_gradient(step, 0, attention, emit_bias_gradients(step, 0, {}, true));
}

Bytes weight_bytes_per_layer(const models::TransformerSpec& model, const Shard& shard) {
  const Bytes attention = shard.inner_bytes(0, shard.q_width + shard.qkv_width());
  if (model.routes()) return 2 * shard.local_stream_bytes() + attention + weight_expert_bytes(shard);
  const std::uint64_t streams = model.parallel_residual ? 3 : 4;  // norms' outputs, gradients of the blocks' outputs
  return streams * shard.local_stream_bytes() + attention + shard.inner_bytes(1, shard.ffn.count + shard.up_width);
}

}  // namespace wafersim::workloads
