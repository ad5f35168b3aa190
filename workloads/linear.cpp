#include "workloads/linear.h"

namespace wafersim::workloads {

namespace {

/// Input and output width of the part that the rank holds.
struct Widths {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
};

Widths widths(const StepEmitter& step, Weight weight) {
  const InnerRank& rank = step.shard().rank;
  return {step.layout().input_columns(weight, rank.tp).count, step.layout().weight(weight, rank.tp, rank.tatp).width()};
}

std::vector<Region> regions(const StepEmitter& step, Weight weight) {
  return step.layout().weight(weight, step.shard().rank.tp, step.shard().rank.tatp).regions;
}

/// Which addends of the output the rank has: its columns of the input. With parallel residuals the outputs of
/// attention and MLP are one sum.
Terms output_terms(const StepEmitter& step, Weight weight) {
  const ParameterLayout& layout = step.layout();
  if (!layout.row_parallel(weight)) return {};
  const Range own = layout.input_columns(weight, step.shard().rank.tp);
  const std::uint64_t attention = layout.input_width(Weight::attention_output);
  const std::uint64_t mlp = layout.input_width(Weight::mlp_down);
  if (!step.model().parallel_residual) return {own.first, own.count, layout.input_width(weight)};
  return {own.first + (weight == Weight::mlp_down ? attention : 0), own.count, attention + mlp};
}

/// Which addends of the input's gradient: its columns of the output, rank by rank.
Terms input_terms(const StepEmitter& step, Weight weight) {
  const ParameterLayout& layout = step.layout();
  if (layout.row_parallel(weight)) return {};
  Terms terms{0, 0, 0};
  for (int tp = 0; tp < step.shard().tp; ++tp) {
    const std::uint64_t width = layout.weight(weight, tp, step.shard().rank.tatp).width();
    if (tp < step.shard().rank.tp) terms.first += width;
    if (tp == step.shard().rank.tp) terms.count = width;
    terms.total += width;
  }
  return terms;
}

/// A rank's part of the gradient of k and v blocks that it shares: only its own query heads have gone into it.
/// The addends are numbered head by head, then token by token.
Views shared_kv_writes(StepEmitter& step, const Region& region, std::uint64_t kv_head) {
  const Shard& s = step.shard();
  const auto group = static_cast<std::uint64_t>(step.model().heads / step.model().kv_heads);
  Views result;
  for (std::uint64_t head = s.heads.first; head < s.heads.end(); ++head) {
    if (head / group != kv_head) continue;
    const Terms terms{head % group * s.all_tokens + s.work.ordinal, s.tokens, group * s.all_tokens};
    result = result + with_terms(step.gradients({region}), terms);
  }
  return result;
}

Views gradient_writes(StepEmitter& step, Weight weight) {
  const Shard& s = step.shard();
  const ParameterLayout& layout = step.layout();
  std::vector<Region> own = regions(step, weight);
  const bool shared_kv = weight == Weight::qkv && !layout.replicated_kv(s.rank.tp, s.rank.tatp).empty();
  std::vector<Region> kv;
  if (shared_kv) {
    kv.assign(own.begin() + 1, own.end());
    own.resize(1);
  }
  if (layout.row_parallel(weight)) own.push_back(layout.output_bias(weight == Weight::mlp_down ? 1 : 0));
  Views result = with_terms(step.gradients(own), {s.work.ordinal, s.tokens, s.all_tokens});
  for (std::size_t i = 0; i < kv.size(); ++i) {
    result = result + shared_kv_writes(step, kv[i], s.kv_heads.first + i / 2);
  }
  return result;
}

Traffic weight_traffic(const StepEmitter& step, const Widths& width) {
  return {.parameters = width.input * width.output * step.shard().element};
}

}  // namespace

Range linear_input_columns(const StepEmitter& step, Weight weight) {
  return step.layout().input_columns(weight, step.shard().rank.tp);
}

Views linear_output(StepEmitter& step, Weight weight, const std::string& name) {
  Views views;
  for (const Range& run : step.layout().weight(weight, step.shard().rank.tp, step.shard().rank.tatp).columns) {
    views = views + step.work(name, run);
  }
  return views;
}

Deps linear(StepEmitter& step, const Product& product, const Deps& after) {
  const Widths width = widths(step, product.weight);
  return step.gemm({1, step.shard().tokens, width.output, width.input},
                   product.traffic + weight_traffic(step, width), after,
                   {.kernel = Kernel::linear,
                    .adds = product.adds,
                    .reads = product.input + step.weights(regions(step, product.weight)),
                    .writes = with_terms(product.output, output_terms(step, product.weight))},
                   product.result_bytes);
}

Deps linear_input_gradient(StepEmitter& step, const Product& product, const Deps& after) {
  const Widths width = widths(step, product.weight);
  return step.gemm({1, step.shard().tokens, width.input, width.output},
                   product.traffic + weight_traffic(step, width), after,
                   {.kernel = Kernel::linear_input,
                    .adds = product.adds,
                    .reads = product.input + step.weights(regions(step, product.weight)),
                    .writes = with_terms(product.output, input_terms(step, product.weight))},
                   product.result_bytes);
}

Deps linear_weight_gradient(StepEmitter& step, const Product& product, const Deps& after) {
  const Shard& s = step.shard();
  const Widths width = widths(step, product.weight);
  const Traffic gradient = {.gradients = 2 * width.input * width.output * s.element};
  return step.gemm({1, width.input, width.output, s.tokens}, product.traffic + gradient, after,
                   {.kernel = Kernel::linear_weight,
                    .reads = product.input + product.output,
                    .writes = gradient_writes(step, product.weight)});
}

}  // namespace wafersim::workloads
