#include "workloads/attention.h"
#include "workloads/experts.h"
#include "workloads/layer.h"
#include "workloads/linear.h"
#include "workloads/operator_steps.h"
#include "workloads/reshard_step.h"

namespace wafersim::workloads {

namespace {

using models::Mlp;
using models::Recompute;

/// A tensor of the residual stream's shape and whether it stays for the backward step.
struct StreamTensor {
  Views views;
  Deps ready;
  bool saved = false;
};

Deps norm(StepEmitter& step, int which, const StreamTensor& input, const Retention& keep) {
  const Shard& s = step.shard();
  const Bytes bytes = s.local_stream_bytes();
  return step.vector(norm_flops(step.model()) * s.local_tokens * s.hidden,
                     kept(bytes, input.saved) + kept(bytes, keep.layer), input.ready,
                     {.kernel = Kernel::norm,
                      .reads = input.views + step.weights({step.layout().norm(which)}),
                      .writes = step.local(norm_name(which))},
                     bytes);
}

/// The residual addition (with dropout, where there is one) into a new buffer. The partial sums' buffer is
/// free after it.
StreamTensor residual(StepEmitter& step, const StreamTensor& input, const char* sum, const Deps& summed,
                      const std::vector<Region>& biases, Views result_views, const Retention& keep,
                      bool result_saved) {
  const Shard& s = step.shard();
  const Bytes bytes = s.local_stream_bytes();
  const std::uint64_t flops = vector_flops::kResidual + (s.dropout ? vector_flops::kDropout : 0);
  const Traffic traffic = Traffic{.scratch = bytes} + kept(bytes, true) + kept(bytes, result_saved) +
                          kept(s.residual_mask_bytes(), keep.layer);
  const Deps mask = step.hold(s.residual_mask_bytes(), summed);
  Deps result = step.vector(flops * s.local_tokens * s.hidden, traffic, mask,
                            {.kernel = Kernel::residual,
                             .reads = input.views + step.local(sum) + step.weights(biases),
                             .writes = result_views},
                            bytes);
  step.release(s.stream_bytes(), result, step.work(sum));
  if (!keep.layer) step.release(s.residual_mask_bytes(), result);
  return {std::move(result_views), std::move(result), result_saved};
}

/// A product with a row-parallel weight: its result is the full residual stream, a partial sum over the ranks.
/// The first one of a reduction allocates the stream, a second one adds to it.
Deps partial_product(StepEmitter& step, Weight weight, const Views& input, const char* sum, const Deps& after,
                     bool input_saved, bool accumulate) {
  const Shard& s = step.shard();
  return linear(step,
                {.weight = weight,
                 .input = input,
                 .input_traffic = kept(linear_input_bytes(step, weight), input_saved),
                 .output = sum,
                 .output_traffic = {.scratch = (accumulate ? 2 : 1) * s.stream_bytes()},
                 .result_bytes = accumulate ? 0 : s.stream_bytes(),
                 .adds = accumulate},
                after);
}

struct BlockOutput {
  Deps input_used;  ///< the normed (and gathered) input is not needed any more
  Deps partial;
};

BlockOutput attention(StepEmitter& step, const Deps& input, const char* sum, const Retention& keep) {
  const Shard& s = step.shard();
  const Bytes qkv_bytes = s.inner_bytes(0, s.qkv_width());
  const Deps projected = linear(step,
                                {.weight = Weight::qkv,
                                 .input = step.gathered(norm_name(0)),
                                 .input_traffic = kept(s.stream_bytes(), keep.layer && !s.gathers()),
                                 .output = "qkv",
                                 .output_traffic = kept(qkv_bytes, keep.layer),
                                 .result_bytes = qkv_bytes},
                                input);
  const Deps core = emit_attention(step, projected, keep);
  const Views values = step.inner(0, "attention.output", linear_input_columns(step, Weight::attention_output));
  const Deps output = partial_product(step, Weight::attention_output, values, sum, core, keep.layer, false);
  if (!keep.layer) step.release(s.inner_bytes(0, s.q_width), output, values);
  return {projected, output};
}

/// From the norm's output, there after `normed`.
BlockOutput mlp(StepEmitter& step, const Deps& normed, const char* sum, const Retention& keep,
                const Deps& add_to) {
  const Shard& s = step.shard();
  if (step.model().routes()) {
    const Deps gates = emit_router(step, normed, keep);
    const ExpertOutput done = emit_experts(step, step.gather_tokens(norm_name(1), normed), gates, sum, keep, add_to);
    return {done.input_used, done.partial};
  }
  const Deps input = step.gather_tokens(norm_name(1), normed);
  const Bytes up_bytes = s.inner_bytes(1, s.up_width);
  const Bytes activated_bytes = s.inner_bytes(1, s.ffn.count);
  const Views up_views = linear_output(step, Weight::mlp_up, "mlp.up");
  const Deps up = linear(step,
                         {.weight = Weight::mlp_up,
                          .input = step.gathered(norm_name(1)),
                          .input_traffic = kept(s.stream_bytes(), keep.layer && !s.gathers()),
                          .output = "mlp.up",
                          .output_traffic = kept(up_bytes, keep.layer),
                          .result_bytes = up_bytes},
                         input);
  const Views active = step.inner(1, "mlp.activated", s.ffn);
  const Deps activated = step.vector(activation_flops(step.model()) * s.inner_tokens(1) * s.ffn.count,
                                     kept(up_bytes + activated_bytes, keep.layer), up,
                                     {.kernel = Kernel::activation, .reads = up_views, .writes = active},
                                     activated_bytes);
  if (!keep.layer) step.release(up_bytes, activated, up_views);
  const Deps down = partial_product(step, Weight::mlp_down, active, sum, join(activated, add_to), keep.layer,
                                    !add_to.empty());
  if (!keep.layer) step.release(activated_bytes, down, active);
  return {up, down};
}

/// The norm's own output is not needed after the last product that reads it, or its gather.
void release_normed(StepEmitter& step, int which, const Deps& used, const Retention& keep) {
  step.release_gathered(norm_name(which), used);
  if (!keep.layer) step.release(step.shard().local_stream_bytes(), used, step.local(norm_name(which)));
}

Deps parallel_body(StepEmitter& step, const StreamTensor& input, const Retention& keep) {
  const Deps normed = step.gather_tokens(norm_name(0), norm(step, 0, input, keep));
  const BlockOutput first = attention(step, normed, "output.sum", keep);
  release_normed(step, 0, first.input_used, keep);
  const BlockOutput second = mlp(step, norm(step, 1, input, keep), "output.sum", keep, first.partial);
  release_normed(step, 1, second.input_used, keep);
  const Deps sum = step.reduce_tokens(step.work("output.sum"), second.partial);
  return residual(step, input, "output.sum", sum, {step.layout().output_bias(0), step.layout().output_bias(1)},
                  step.stream(1), keep, keep.output)
      .ready;
}

/// The layer's input as attention cuts it. Where that differs from the plan the layer keeps its copy for the backward step, in
/// place of the input itself, or is done with it after the residual addition.
StreamTensor attention_input(StepEmitter& step, const StreamTensor& input, const Retention& keep) {
  const bool moves = step.reshard(Cut::attention) != nullptr;
  Deps ready = emit_reshard(step, Cut::attention, tensors::kStream, 0, keep.layer ? Source::freed : Source::stays, input.ready);
  return {step.stream(0), std::move(ready), moves ? keep.layer : input.saved};
}

void release_attention_input(StepEmitter& step, const Deps& after, const Retention& keep) {
  if (keep.layer || step.reshard(Cut::plan) == nullptr) return;
  step.release(step.shard().local_stream_bytes(), after, rows_outside(step, Cut::plan, tensors::kStream, 0));
}

/// `cut`: that of the MLP behind attention, of the plan behind the MLP.
StreamTensor resharded(StepEmitter& step, const StreamTensor& made, Cut cut, const std::string& tensor, int layer) {
  Deps ready = emit_reshard(step, cut, tensor, layer, Source::freed, made.ready);
  return {StepEmitter::shifted(step.local(tensor), layer), std::move(ready), made.saved};
}

/// The residual stream behind attention. `saved`: it stays for the backward step.
StreamTensor attention_part(StepEmitter& step, const StreamTensor& input, const Retention& keep, bool saved) {
  const Deps normed = step.gather_tokens(norm_name(0), norm(step, 0, input, keep));
  const BlockOutput first = attention(step, normed, "attention.sum", keep);
  release_normed(step, 0, first.input_used, keep);
  const Deps sum = step.reduce_tokens(step.work("attention.sum"), first.partial);
  return residual(step, input, "attention.sum", sum, {step.layout().output_bias(0)}, step.local("middle"), keep, saved);
}

/// The layer's output.
StreamTensor mlp_part(StepEmitter& step, const StreamTensor& middle, const Retention& keep, bool saved) {
  const BlockOutput second = mlp(step, norm(step, 1, middle, keep), "mlp.sum", keep, {});
  release_normed(step, 1, second.input_used, keep);
  const Deps sum2 = step.reduce_tokens(step.work("mlp.sum"), second.partial);
  StreamTensor output =
      residual(step, middle, "mlp.sum", sum2, {step.layout().output_bias(1)}, step.stream(1), keep, saved);
  if (!keep.layer) step.release(step.shard().local_stream_bytes(), output.ready, middle.views);
  return output;
}

Deps sequential_body(StepEmitter& step, const StreamTensor& layer_input, const Retention& keep) {
  const StreamTensor input = attention_input(step, layer_input, keep);
  const StreamTensor attended = attention_part(step, input, keep, keep.layer && step.reshard(Cut::mlp) == nullptr);
  release_attention_input(step, attended.ready, keep);
  StreamTensor middle = resharded(step, attended, Cut::mlp, "middle", 0);
  middle.saved = keep.layer;
  const StreamTensor output = mlp_part(step, middle, keep, keep.output && step.reshard(Cut::plan) == nullptr);
  return resharded(step, output, Cut::plan, tensors::kStream, 1).ready;
}

}  // namespace

const char* norm_name(int which) { return which == 0 ? "norm1" : "norm2"; }

std::uint64_t norm_flops(const models::TransformerSpec& model) {
  return model.norm == models::Norm::layernorm ? vector_flops::kLayerNorm : vector_flops::kRmsNorm;
}

std::uint64_t activation_flops(const models::TransformerSpec& model) {
  return model.mlp == Mlp::swiglu ? vector_flops::kSwiglu : vector_flops::kGelu;
}

std::uint64_t activation_backward_flops(const models::TransformerSpec& model) {
  return model.mlp == Mlp::swiglu ? vector_flops::kSwigluBackward : vector_flops::kGeluBackward;
}

Retention forward_retention(Recompute recompute, const GroupPlace& place) {
  return {.layer = recompute != Recompute::full,
          .scores = recompute == Recompute::none,
          .input = place.first,
          .output = place.last};
}

Deps emit_layer_body(StepEmitter& step, const Deps& input, const Retention& keep) {
  const StreamTensor stream{step.stream(0), input, keep.input};
  return step.model().parallel_residual ? parallel_body(step, stream, keep)
                                        : sequential_body(step, stream, keep);
}

void emit_layer_forward(StepEmitter& step, const LayerEdges& edges, Recompute recompute, const GroupPlace& place) {
  Deps input;
  if (edges.input == EdgeKind::remote) input = step.receive_boundary(Boundary::forward, edges.input_chunk);
  if (edges.input == EdgeKind::open) {
    input = step.hold(step.shard().local_stream_bytes(), {}, {.kernel = Kernel::memory, .writes = step.stream(0)});
  }
  const Deps output = emit_layer_body(step, input, forward_retention(recompute, place));
  if (!place.first) step.release(step.shard().local_stream_bytes(), output, step.stream(0));
  if (edges.output == EdgeKind::remote) step.send_boundary(Boundary::forward, edges.output_chunk, output);
  if (edges.output == EdgeKind::open) {
    step.release(step.shard().local_stream_bytes(), output, step.stream(1));
  }
}

void emit_operator_forward(StepEmitter& step, Cut which) {
  step.enter(which);
  const bool attends = which == Cut::attention;
  const Retention keep = forward_retention(step.training().recompute);
  const Views views = attends ? step.stream(0) : step.local("middle");
  const Bytes bytes = step.shard().local_stream_bytes();
  const StreamTensor input{views, step.hold(bytes, {}, {.kernel = Kernel::memory, .writes = views}), true};
  const StreamTensor output = attends ? attention_part(step, input, keep, true) : mlp_part(step, input, keep, true);
  step.release(bytes, output.ready, output.views);
}

void emit_layer_recompute(StepEmitter& step) { emit_layer_body(step, {}, {}); }

Bytes saved_bytes_per_layer(const models::TransformerSpec& model, const Shard& shard, Recompute recompute) {
  const Retention keep = forward_retention(recompute);
  const Bytes stream = shard.local_stream_bytes();
  Bytes total = stream;
  if (keep.layer) {
    // The norms' outputs, the middle of the layer and the dropout masks; there is no middle with parallel
    // residuals, and one mask.
    total += model.parallel_residual ? 2 * stream + shard.residual_mask_bytes()
                                     : 3 * stream + 2 * shard.residual_mask_bytes();
    total += shard.inner_bytes(0, shard.qkv_width() + shard.q_width) +
             shard.statistics_bytes(shard.inner_tokens(0), shard.heads.count);
    total += model.routes() ? saved_expert_bytes(model, shard) : shard.inner_bytes(1, shard.up_width + shard.ffn.count);
  }
  if (keep.scores) total += shard.saved_scores_bytes(shard.inner_tokens(0), shard.heads.count, shard.sequence);
  return total;
}

}  // namespace wafersim::workloads
