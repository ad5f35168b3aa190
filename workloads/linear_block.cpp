#include "workloads/linear_block.h"

namespace wafersim::workloads {

namespace {

/// A rank's part of the gradient of k and v blocks that it shares: only its own query heads have gone into it.
/// The addends are numbered head by head, then token by token.
Views shared_kv_writes(StepEmitter& step, const Region& region, std::uint64_t kv_head, const TokenSet& tokens) {
  const Shard& s = step.shard();
  const auto group = static_cast<std::uint64_t>(step.model().heads / step.model().kv_heads);
  Views result;
  for (std::uint64_t head = s.heads.first; head < s.heads.end(); ++head) {
    if (head / group != kv_head) continue;
    const Terms terms{head % group * s.all_tokens + tokens.ordinal, tokens.count(), group * s.all_tokens};
    result = result + with_terms(step.gradients({region}), terms);
  }
  return result;
}

/// That of an expert has addends of the tokens of all ranks that share the experts out.
Views expert_gradient(StepEmitter& step, const std::vector<Region>& regions) {
  const Shard& s = step.shard();
  const Terms terms{s.work.ordinal, s.tokens, s.all_tokens};
  Views result;
  for (int source = 0; source < s.ep; ++source) {
    Views part = with_terms(step.gradients(regions), terms);
    for (View& view : part) view.replica = static_cast<std::int16_t>(source - s.rank.ep);
    result = result + part;
  }
  return result;
}

}  // namespace

WeightSlice weight_slice(const StepEmitter& step, Weight weight, int owner, int chunk, std::uint64_t expert) {
  const ParameterLayout& layout = step.layout();
  return layout.weight(weight, step.shard().rank.tp, owner * layout.chunks() + chunk, expert);
}

std::uint64_t output_width(const StepEmitter& step, Weight weight, int tp) {
  const ParameterLayout& layout = step.layout();
  std::uint64_t total = 0;
  for (int slice = 0; slice < step.shard().tatp * layout.chunks(); ++slice) {
    total += layout.weight(weight, tp, slice).width();
  }
  return total;
}

Views output_views(StepEmitter& step, const WeightSlice& slice, const TensorName& tensor, const TokenSet& tokens) {
  Views views;
  for (const Range& run : slice.columns) {
    if (run.count > 0) views = views + StepEmitter::shifted(step.view(tensor.name, tokens, run), tensor.layer);
  }
  return views;
}

/// Its columns of the input. With parallel residuals the outputs of attention and MLP are one sum.
Terms linear_output_terms(const StepEmitter& step, Weight weight) {
  const ParameterLayout& layout = step.layout();
  if (!layout.row_parallel(weight)) return {};
  const Range own = linear_input_columns(step, weight);
  const std::uint64_t attention = layout.input_width(Weight::attention_output);
  const std::uint64_t mlp = layout.input_width(Weight::mlp_down);
  if (!step.model().parallel_residual) return {own.first, own.count, layout.input_width(weight)};
  return {own.first + (weight == Weight::mlp_down ? attention : 0), own.count, attention + mlp};
}

/// Its columns of the output, counted tp rank by tp rank. The router has its own part in the gradient of the experts'
/// input, its columns come last.
Terms linear_input_terms(const StepEmitter& step, Weight weight) {
  const ParameterLayout& layout = step.layout();
  const int own = step.shard().rank.tp;
  Terms terms{0, output_width(step, weight, own), 0};
  const bool own_alone = layout.row_parallel(weight);
  const int first = own_alone ? own : 0, last = own_alone ? own : step.shard().tp - 1;
  for (int tp = first; tp <= last; ++tp) {
    if (tp < own) terms.first += output_width(step, weight, tp);
    terms.total += output_width(step, weight, tp);
  }
  if (weight == Weight::mlp_up) terms.total += static_cast<std::uint64_t>(step.model().experts);
  return terms;
}

Terms input_terms(const StepEmitter& step, Weight weight, int owner, int chunk) {
  const ParameterLayout& layout = step.layout();
  const int slice = owner * layout.chunks() + chunk;
  Terms terms = linear_input_terms(step, weight);
  terms.count = weight_slice(step, weight, owner, chunk).width();
  for (int before = 0; before < slice; ++before) {
    terms.first += layout.weight(weight, step.shard().rank.tp, before).width();
  }
  return terms;
}

Views gradient_writes(StepEmitter& step, const Product& product, const WeightSlice& slice, const TokenSet& tokens) {
  const Shard& s = step.shard();
  if (product.expert) return expert_gradient(step, slice.regions);
  const Terms terms{tokens.ordinal, tokens.count(), s.all_tokens};
  const bool shared_kv = product.weight == Weight::qkv && !step.layout().replicated_kv(s.rank.tp, s.rank.tatp).empty();
  if (!shared_kv) return with_terms(step.gradients(slice.regions), terms);
  Views result = with_terms(step.gradients({slice.regions.front()}), terms);
  for (std::size_t i = 1; i < slice.regions.size(); ++i) {
    result = result + shared_kv_writes(step, slice.regions[i], s.kv_heads.first + (i - 1) / 2, tokens);
  }
  return result;
}

Traffic scaled(const Traffic& traffic, std::uint64_t part, std::uint64_t whole) {
  const auto cut = [&](Bytes bytes) { return whole == 0 ? 0 : bytes / whole * part + bytes % whole * part / whole; };
  return {cut(traffic.scratch), cut(traffic.saved), cut(traffic.parameters), cut(traffic.gradients),
          cut(traffic.optimizer), cut(traffic.streamed)};
}

Traffic repeated(const Traffic& all, bool first) {
  if (first) return all;
  return {.scratch = all.scratch + all.saved + all.parameters + all.gradients + all.optimizer + all.streamed};
}

}  // namespace wafersim::workloads
