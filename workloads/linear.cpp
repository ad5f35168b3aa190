#include "workloads/linear.h"

#include <utility>

#include "workloads/expert_rows.h"
#include "workloads/stream.h"

namespace wafersim::workloads {

namespace {

std::uint64_t input_width(const StepEmitter& step, Weight weight) {
  return linear_input_columns(step, weight).count;
}

WeightSlice slice_of(const StepEmitter& step, const Product& product, int owner, int chunk) {
  const ParameterLayout& layout = step.layout();
  return layout.weight(product.weight, step.shard().rank.tp, owner * layout.chunks() + chunk,
                       product.expert.value_or(0));
}

TokenSet rows_of(const StepEmitter& step, const Product& product) {
  return product.expert ? expert_rows(step.shard(), *product.expert) : step.shard().work;
}

/// Columns of a weight that all tatp ranks of this tp rank have together.
std::uint64_t output_width(const StepEmitter& step, Weight weight, int tp) {
  const ParameterLayout& layout = step.layout();
  std::uint64_t total = 0;
  for (int slice = 0; slice < step.shard().tatp * layout.chunks(); ++slice) {
    total += layout.weight(weight, tp, slice).width();
  }
  return total;
}

}  // namespace

/// Its columns of the input. With parallel residuals the outputs of attention and MLP are one sum.
Terms linear_output_terms(const StepEmitter& step, Weight weight) {
  const ParameterLayout& layout = step.layout();
  if (!layout.row_parallel(weight)) return {};
  const Range own = layout.input_columns(weight, step.shard().rank.tp);
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
  const int first = layout.row_parallel(weight) ? own : 0, last = layout.row_parallel(weight) ? own : step.shard().tp - 1;
  for (int tp = first; tp <= last; ++tp) {
    if (tp < own) terms.first += output_width(step, weight, tp);
    terms.total += output_width(step, weight, tp);
  }
  if (weight == Weight::mlp_up) terms.total += static_cast<std::uint64_t>(step.model().experts);
  return terms;
}

namespace {

/// Those of a slice.
Terms slice_terms(const StepEmitter& step, Weight weight, int owner, int chunk) {
  const ParameterLayout& layout = step.layout();
  const int slice = owner * layout.chunks() + chunk;
  const int own = step.shard().rank.tp;
  Terms terms = linear_input_terms(step, weight);
  terms.count = layout.weight(weight, own, slice).width();
  for (int before = 0; before < slice; ++before) terms.first += layout.weight(weight, own, before).width();
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

Terms token_terms(const Shard& s) { return {s.work.ordinal, s.tokens, s.all_tokens}; }

/// That of an expert has addends of the tokens of all ranks that share the experts out.
Views expert_gradient(StepEmitter& step, const std::vector<Region>& regions) {
  const Shard& s = step.shard();
  Views result;
  for (int source = 0; source < s.ep; ++source) {
    Views part = with_terms(step.gradients(regions), token_terms(s));
    for (View& view : part) view.replica = static_cast<std::int16_t>(source - s.rank.ep);
    result = result + part;
  }
  return result;
}

/// The gradient of a slice, without that of an output bias.
Views gradient_writes(StepEmitter& step, const Product& product, int owner, int chunk) {
  const Shard& s = step.shard();
  const std::vector<Region> regions = slice_of(step, product, owner, chunk).regions;
  if (product.expert) return expert_gradient(step, regions);
  const bool shared_kv = product.weight == Weight::qkv && !step.layout().replicated_kv(s.rank.tp, s.rank.tatp).empty();
  if (!shared_kv) return with_terms(step.gradients(regions), token_terms(s));
  Views result = with_terms(step.gradients({regions.front()}), token_terms(s));
  for (std::size_t i = 1; i < regions.size(); ++i) {
    result = result + shared_kv_writes(step, regions[i], s.kv_heads.first + (i - 1) / 2);
  }
  return result;
}

/// The part of some traffic that `part` of `whole` columns cause.
Traffic scaled(const Traffic& traffic, std::uint64_t part, std::uint64_t whole) {
  const auto cut = [&](Bytes bytes) { return whole == 0 ? 0 : bytes / whole * part + bytes % whole * part / whole; };
  return {cut(traffic.scratch), cut(traffic.saved), cut(traffic.parameters), cut(traffic.gradients),
          cut(traffic.optimizer), cut(traffic.streamed)};
}

std::uint64_t parameters_of(const WeightSlice& slice) { return parameters_in(slice.regions); }

StreamBlocks weight_blocks(StepEmitter& step, const Product& product, bool gradients) {
  const auto parameters = [&step, &product](int owner, int chunk) {
    return parameters_of(slice_of(step, product, owner, chunk));
  };
  return {.chunks = step.layout().chunks(),
          .views =
              [&step, &product, gradients](int owner, int chunk) {
                const std::vector<Region> regions = slice_of(step, product, owner, chunk).regions;
                return gradients ? step.gradients(regions) : step.weights(regions);
              },
          .bytes = [=, element = gradients ? kPartialBytes : step.shard().element](
                       int owner, int chunk) { return parameters(owner, chunk) * element; },
          .elements = parameters};
}

/// Reading a block of a weight: the rank's own lies with its parameters, others in stream buffers.
Traffic block_traffic(const StepEmitter& step, int owner, Bytes bytes) {
  return owner == step.shard().rank.tatp ? Traffic{.parameters = bytes} : Traffic{.streamed = bytes};
}

Views output_views(StepEmitter& step, const WeightSlice& slice, const TensorName& tensor, const TokenSet& rows) {
  Views views;
  for (const Range& run : slice.columns) {
    if (run.count > 0) views = views + StepEmitter::shifted(step.view(tensor.name, rows, run), tensor.layer);
  }
  return views;
}

/// What is read for every block of a stream stays in SRAM between them: after the first one it causes no other traffic.
Traffic input_traffic(const Product& product, bool first) {
  const Traffic& all = product.input_traffic;
  if (first) return all;
  return {.scratch = all.scratch + all.saved + all.parameters + all.gradients + all.optimizer + all.streamed};
}

/// Y[:, slice] = X W[:, slice].
Deps forward_block(StepEmitter& step, const Product& product, int owner, int chunk, bool first, const Deps& ready) {
  const WeightSlice slice = slice_of(step, product, owner, chunk);
  const TokenSet rows = rows_of(step, product);
  const std::uint64_t input = input_width(step, product.weight);
  const std::uint64_t all = output_width(step, product.weight, step.shard().rank.tp);
  const Traffic traffic = input_traffic(product, first) + scaled(product.output_traffic, slice.width(), all) +
                          block_traffic(step, owner, input * slice.width() * step.shard().element);
  return step.gemm({1, rows.count(), slice.width(), input}, traffic, ready,
                   {.kernel = Kernel::linear,
                    .adds = product.adds,
                    .reads = product.input + step.weights(slice.regions),
                    .writes = with_terms(output_views(step, slice, product.output, rows),
                                          linear_output_terms(step, product.weight))});
}

/// dX += dY[:, slice] W[:, slice]^T.
Deps input_block(StepEmitter& step, const Product& product, int owner, int chunk, bool first, const Deps& ready) {
  const WeightSlice slice = slice_of(step, product, owner, chunk);
  const TokenSet rows = rows_of(step, product);
  const std::uint64_t input = input_width(step, product.weight);
  const std::uint64_t all = output_width(step, product.weight, step.shard().rank.tp);
  const bool adds = product.adds || !first;
  const Traffic traffic = scaled(product.output_traffic, slice.width(), all) + product.input_traffic +
                          (adds ? product.input_traffic : Traffic{}) +
                          block_traffic(step, owner, input * slice.width() * step.shard().element);
  return step.gemm({1, rows.count(), input, slice.width()}, traffic, ready,
                   {.kernel = Kernel::linear_input,
                    .adds = adds,
                    .reads = output_views(step, slice, product.output, rows) + step.weights(slice.regions),
                    .writes = with_terms(product.input, slice_terms(step, product.weight, owner, chunk))});
}

/// dW[:, slice] = X^T dY[:, slice]. The owner adds it to the gradient that it holds; others hold their part in a
/// stream buffer.
Deps weight_block(StepEmitter& step, const Product& product, int owner, int chunk, bool first, const Deps& ready) {
  const WeightSlice slice = slice_of(step, product, owner, chunk);
  const TokenSet rows = rows_of(step, product);
  const std::uint64_t input = input_width(step, product.weight);
  const std::uint64_t all = output_width(step, product.weight, step.shard().rank.tp);
  const bool own = owner == step.shard().rank.tatp;
  const Bytes gradient = input * slice.width();
  const Traffic traffic =
      input_traffic(product, first) + scaled(product.output_traffic, slice.width(), all) +
      (own ? Traffic{.gradients = 2 * gradient * step.shard().gradient} : Traffic{.streamed = gradient * kPartialBytes});
  return step.gemm({1, input, slice.width(), rows.count()}, traffic, ready,
                   {.kernel = Kernel::linear_weight,
                    .reads = product.input + output_views(step, slice, product.output, rows),
                    .writes = gradient_writes(step, product, owner, chunk)});
}

}  // namespace

Range linear_input_columns(const StepEmitter& step, Weight weight) {
  return step.layout().input_columns(weight, step.shard().rank.tp);
}

Views linear_output(StepEmitter& step, Weight weight, const std::string& name) {
  return linear_output(step, weight, name, step.shard().work);
}

Views linear_output(StepEmitter& step, Weight weight, const std::string& name, const TokenSet& rows) {
  Views views;
  const ParameterLayout& layout = step.layout();
  for (int slice = 0; slice < step.shard().tatp * layout.chunks(); ++slice) {
    views = views + output_views(step, layout.weight(weight, step.shard().rank.tp, slice), {name}, rows);
  }
  return views;
}

Deps linear(StepEmitter& step, const Product& product, const Deps& after) {
  const Deps ready = step.hold(product.result_bytes, after);
  if (step.shard().tatp == 1) return forward_block(step, product, 0, 0, true, ready);
  const StreamLine line = step.tatp_line();
  bool first = true;
  return stream_outward(step, line, weight_blocks(step, product, false), ready,
                        [&](int owner, int chunk, const Deps& there) -> BlockUse {
                          const Deps done = forward_block(step, product, owner, chunk, std::exchange(first, false),
                                                          join(there, ready));
                          return {done, done};
                        })
      .done;
}

Deps linear_input_gradient(StepEmitter& step, const Product& product, const Deps& after) {
  const Deps ready = step.hold(product.result_bytes, after);
  if (step.shard().tatp == 1) return input_block(step, product, 0, 0, true, ready);
  const StreamLine line = step.tatp_line();
  bool first = true;
  return stream_outward(step, line, weight_blocks(step, product, false), ready,
                        [&](int owner, int chunk, const Deps& there) -> BlockUse {
                          const Deps done = input_block(step, product, owner,
                                                        chunk, std::exchange(first, false), join(there, ready));
                          return {done, done};
                        })
      .done;
}

Deps linear_weight_gradient(StepEmitter& step, const Product& product, const Deps& after) {
  if (step.shard().tatp == 1) return weight_block(step, product, 0, 0, true, after);
  const StreamLine line = step.tatp_line();
  Deps all;
  bool first = true;
  const Deps own = stream_inward(step, line, weight_blocks(step, product, true), after,
                                 [&](int owner, int chunk, const Deps& there) -> BlockUse {
                                   const Deps done = weight_block(step, product, owner, chunk,
                                                                  std::exchange(first, false), join(there, after));
                                   all = join(std::move(all), done);
                                   return {done, done};
                                 });
  return join(std::move(all), own);
}

}  // namespace wafersim::workloads
