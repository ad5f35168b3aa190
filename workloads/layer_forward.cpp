#include "workloads/layer.h"

namespace wafersim::workloads {

namespace {

using models::AttentionKernel;
using models::Mlp;
using models::Recompute;

/// Bytes that are saved for the backward step, or used up in this one.
Traffic kept(Bytes bytes, bool keep) { return keep ? Traffic{.saved = bytes} : Traffic{.scratch = bytes}; }

Deps norm(StepEmitter& step, const std::string& name, const Deps& input, bool input_saved,
          const Retention& keep) {
  const Shard& s = step.shard();
  const Bytes bytes = s.local_stream_bytes();
  return step.vector(name, norm_flops(step.model()) * s.local_tokens * s.hidden,
                     kept(bytes, input_saved) + kept(bytes, keep.layer), input, bytes);
}

/// The residual addition (with dropout, where there is one) into a new buffer. The partial sums' buffer is
/// free after it.
Deps residual(StepEmitter& step, const std::string& name, const Deps& sum, const Retention& keep,
              bool result_saved) {
  const Shard& s = step.shard();
  const Bytes bytes = s.local_stream_bytes();
  const std::uint64_t flops = vector_flops::kResidual + (s.dropout ? vector_flops::kDropout : 0);
  const Traffic traffic = Traffic{.scratch = bytes} + kept(bytes, true) + kept(bytes, result_saved) +
                          kept(s.residual_mask_bytes(), keep.layer);
  const Deps mask = step.hold(s.residual_mask_bytes(), sum);
  Deps result = step.vector(name, flops * s.local_tokens * s.hidden, traffic, mask, bytes);
  step.release(s.stream_bytes(), result);
  if (!keep.layer) step.release(s.residual_mask_bytes(), result);
  return result;
}

/// A product with a weight of `rows` x `columns` whose result is the full residual stream, a partial sum over
/// the ranks. The first one of a reduction allocates the stream, a second one adds to it.
Deps partial_product(StepEmitter& step, const std::string& name, std::uint64_t rows, const Deps& input,
                     bool input_saved, bool accumulate) {
  const Shard& s = step.shard();
  const Traffic traffic =
      kept(s.token_bytes(rows), input_saved) +
      Traffic{.scratch = (accumulate ? 2 : 1) * s.stream_bytes(), .parameters = rows * s.hidden * s.element};
  return step.gemm(name, {1, s.tokens, s.hidden, rows}, traffic, input, accumulate ? 0 : s.stream_bytes());
}

struct BlockOutput {
  Deps input_used;  ///< the normed (and gathered) input is not needed any more
  Deps partial;
};

Deps rotary(StepEmitter& step, const Deps& qkv, const Retention& keep) {
  const Shard& s = step.shard();
  if (step.model().positions != models::Positions::rotary) return qkv;
  const std::uint64_t width = s.q_width + s.kv_width;
  return step.vector("rotary", vector_flops::kRotary * s.tokens * width,
                     kept(2 * s.token_bytes(width), keep.layer), qkv);
}

BlockOutput attention(StepEmitter& step, const Deps& input, const Retention& keep) {
  const Shard& s = step.shard();
  const Bytes qkv_bytes = s.token_bytes(s.qkv_width());
  const Traffic traffic = kept(s.stream_bytes(), keep.layer && !s.gathers()) + kept(qkv_bytes, keep.layer) +
                          Traffic{.parameters = s.hidden * s.qkv_width() * s.element};
  const Deps projected = step.gemm("qkv", {1, s.tokens, s.qkv_width(), s.hidden}, traffic, input, qkv_bytes);
  const Deps core = emit_attention_core(step, rotary(step, projected, keep), keep, false);
  if (!keep.layer) step.release(qkv_bytes + s.statistics_bytes(), core);
  if (!keep.scores) step.release(s.saved_scores_bytes(), core);
  const Deps output = partial_product(step, "attention.output", s.q_width, core, keep.layer, false);
  if (!keep.layer) step.release(s.token_bytes(s.q_width), output);
  return {projected, output};
}

BlockOutput mlp(StepEmitter& step, const Deps& input, const Retention& keep, const Deps& add_to) {
  const Shard& s = step.shard();
  const Bytes up_bytes = s.token_bytes(s.up_width);
  const Bytes activated_bytes = s.token_bytes(s.ffn);
  const Traffic traffic = kept(s.stream_bytes(), keep.layer && !s.gathers()) + kept(up_bytes, keep.layer) +
                          Traffic{.parameters = s.hidden * s.up_width * s.element};
  const Deps up = step.gemm("mlp.up", {1, s.tokens, s.up_width, s.hidden}, traffic, input, up_bytes);
  const std::uint64_t flops = step.model().mlp == Mlp::swiglu ? vector_flops::kSwiglu : vector_flops::kGelu;
  const Deps activated = step.vector("mlp.activation", flops * s.tokens * s.ffn,
                                     kept(up_bytes + activated_bytes, keep.layer), up, activated_bytes);
  if (!keep.layer) step.release(up_bytes, activated);
  const Deps down =
      partial_product(step, "mlp.down", s.ffn, join(activated, add_to), keep.layer, !add_to.empty());
  if (!keep.layer) step.release(activated_bytes, down);
  return {up, down};
}

/// The norm's own output is not needed after the last product that reads it, or its gather.
void release_normed(StepEmitter& step, const Deps& used, const Retention& keep) {
  step.release_gathered(used);
  if (!keep.layer) step.release(step.shard().local_stream_bytes(), used);
}

Deps parallel_body(StepEmitter& step, const Deps& input, const Retention& keep) {
  const Deps normed = step.gather_tokens("norm.gathered", norm(step, "norm", input, true, keep));
  const BlockOutput first = attention(step, normed, keep);
  const BlockOutput second = mlp(step, normed, keep, first.partial);
  release_normed(step, join(first.input_used, second.input_used), keep);
  return residual(step, "output", step.reduce_tokens("output.sum", second.partial), keep, true);
}

Deps sequential_body(StepEmitter& step, const Deps& input, const Retention& keep) {
  const Deps normed = step.gather_tokens("norm1.gathered", norm(step, "norm1", input, true, keep));
  const BlockOutput first = attention(step, normed, keep);
  release_normed(step, first.input_used, keep);
  const Deps middle =
      residual(step, "middle", step.reduce_tokens("attention.sum", first.partial), keep, keep.layer);
  const Deps normed2 = step.gather_tokens("norm2.gathered", norm(step, "norm2", middle, keep.layer, keep));
  const BlockOutput second = mlp(step, normed2, keep, {});
  release_normed(step, second.input_used, keep);
  const Deps output = residual(step, "output", step.reduce_tokens("mlp.sum", second.partial), keep, true);
  if (!keep.layer) step.release(step.shard().local_stream_bytes(), output);
  return output;
}

}  // namespace

std::uint64_t norm_flops(const models::TransformerSpec& model) {
  return model.norm == models::Norm::layernorm ? vector_flops::kLayerNorm : vector_flops::kRmsNorm;
}

Retention forward_retention(Recompute recompute) {
  return {.layer = recompute != Recompute::full, .scores = recompute == Recompute::none};
}

Deps emit_attention_core(StepEmitter& step, const Deps& qkv, const Retention& keep, bool recompute) {
  const Shard& s = step.shard();
  const Bytes q_bytes = s.token_bytes(s.q_width);
  const Bytes kv_bytes = s.token_bytes(s.kv_width);
  const std::uint64_t batch = s.sequences * s.heads;
  const std::uint64_t scores = batch * s.sequence * s.keys;
  // A fused kernel keeps its scores next to the engines: they never pass through SRAM.
  const Bytes scores_bytes = s.fused_attention ? 0 : scores * s.element;
  const Bytes softmax_bytes = s.fused_attention ? s.statistics_bytes() : 2 * scores_bytes;
  const Bytes mask_bytes = s.dropout ? scores + scores_bytes : 0;
  const bool keep_softmax = s.fused_attention ? keep.layer : keep.scores;

  const Traffic score_traffic = kept(q_bytes + kv_bytes, keep.layer) + Traffic{.scratch = scores_bytes};
  const Deps product = step.gemm("attention.scores", {batch, s.sequence, s.keys, s.head_dim}, score_traffic,
                                 qkv, s.saved_scores_bytes());
  const std::uint64_t flops = vector_flops::kSoftmax + (s.dropout ? vector_flops::kDropout : 0);
  const Deps softmax =
      step.vector("attention.softmax", flops * scores, kept(softmax_bytes + mask_bytes, keep_softmax),
                  product, recompute ? 0 : s.statistics_bytes());
  const Traffic value_traffic = kept(scores_bytes, keep_softmax) + kept(kv_bytes + q_bytes, keep.layer);
  return step.gemm("attention.values", {batch, s.sequence, s.head_dim, s.keys}, value_traffic, softmax,
                   recompute ? 0 : q_bytes);
}

Deps emit_layer_body(StepEmitter& step, const Deps& input, const Retention& keep) {
  return step.model().parallel_residual ? parallel_body(step, input, keep)
                                        : sequential_body(step, input, keep);
}

void emit_layer_forward(StepEmitter& step, const LayerEdges& edges, Recompute recompute) {
  Deps input;
  if (edges.input == EdgeKind::remote) input = step.receive_boundary(Boundary::forward);
  if (edges.input == EdgeKind::open) input = step.hold(step.shard().local_stream_bytes(), {});
  const Deps output = emit_layer_body(step, input, forward_retention(recompute));
  if (edges.output == EdgeKind::remote) step.send_boundary(Boundary::forward, output);
  if (edges.output == EdgeKind::open) step.release(step.shard().local_stream_bytes(), output);
}

Bytes saved_bytes_per_layer(const models::TransformerSpec& model, const Shard& shard, Recompute recompute) {
  const Retention keep = forward_retention(recompute);
  const Bytes stream = shard.local_stream_bytes();
  Bytes total = stream;
  if (keep.layer) {
    // The norms' outputs, the middle of the layer and the dropout masks; one each with parallel residual.
    total += model.parallel_residual ? stream + shard.residual_mask_bytes()
                                     : 3 * stream + 2 * shard.residual_mask_bytes();
    total += shard.token_bytes(shard.qkv_width() + shard.q_width) + shard.statistics_bytes();
    total += shard.token_bytes(shard.up_width + shard.ffn);
  }
  if (keep.scores) total += shard.saved_scores_bytes();
  return total;
}

}  // namespace wafersim::workloads
