#include "workloads/linear.h"

#include <utility>

#include "workloads/expert_rows.h"
#include "workloads/linear_block.h"
#include "workloads/stream.h"

namespace wafersim::workloads {

namespace {

WeightSlice slice_of(const StepEmitter& step, const Product& product, int owner, int chunk) {
  return weight_slice(step, product.weight, owner, chunk, product.expert.value_or(0));
}

/// The tokens of a product: those that the rank works on, or the slots of an expert.
TokenSet rows_of(const StepEmitter& step, const Product& product) {
  return product.expert ? expert_rows(step.shard(), *product.expert) : step.shard().work;
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

/// Y[:, slice] = X W[:, slice].
Deps forward_block(StepEmitter& step, const Product& product, int owner, int chunk, bool first, const Deps& ready) {
  const WeightSlice slice = slice_of(step, product, owner, chunk);
  const TokenSet rows = rows_of(step, product);
  const std::uint64_t input = linear_input_columns(step, product.weight).count;
  const std::uint64_t all = output_width(step, product.weight, step.shard().rank.tp);
  const Traffic traffic = repeated(product.input_traffic, first) + scaled(product.output_traffic, slice.width(), all) +
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
  const std::uint64_t input = linear_input_columns(step, product.weight).count;
  const std::uint64_t all = output_width(step, product.weight, step.shard().rank.tp);
  const bool adds = product.adds || !first;
  const Traffic traffic = scaled(product.output_traffic, slice.width(), all) + product.input_traffic +
                          (adds ? product.input_traffic : Traffic{}) +
                          block_traffic(step, owner, input * slice.width() * step.shard().element);
  return step.gemm({1, rows.count(), input, slice.width()}, traffic, ready,
                   {.kernel = Kernel::linear_input,
                    .adds = adds,
                    .reads = output_views(step, slice, product.output, rows) + step.weights(slice.regions),
                    .writes = with_terms(product.input, input_terms(step, product.weight, owner, chunk))});
}

/// dW[:, slice] = X^T dY[:, slice]. The owner adds it to the gradient that it holds; others hold their part in a
/// stream buffer.
Deps weight_block(StepEmitter& step, const Product& product, int owner, int chunk, bool first, const Deps& ready) {
  const WeightSlice slice = slice_of(step, product, owner, chunk);
  const TokenSet rows = rows_of(step, product);
  const std::uint64_t input = linear_input_columns(step, product.weight).count;
  const std::uint64_t all = output_width(step, product.weight, step.shard().rank.tp);
  const bool own = owner == step.shard().rank.tatp;
  const Bytes gradient = input * slice.width();
  const Traffic traffic =
      repeated(product.input_traffic, first) + scaled(product.output_traffic, slice.width(), all) +
      (own ? Traffic{.gradients = 2 * gradient * step.shard().gradient} : Traffic{.streamed = gradient * kPartialBytes});
  return step.gemm({1, input, slice.width(), rows.count()}, traffic, ready,
                   {.kernel = Kernel::linear_weight,
                    .reads = product.input + output_views(step, slice, product.output, rows),
                    .writes = gradient_writes(step, product, slice, rows)});
}

}  // namespace

Range linear_input_columns(const StepEmitter& step, Weight weight) {
  return step.layout().input_columns(weight, step.shard().rank.tp, step.shard().rank.tatp);
}

Bytes linear_input_bytes(const StepEmitter& step, Weight weight) {
  if (!step.layout().row_parallel(weight)) return step.shard().stream_bytes();
  return step.shard().inner_bytes(pair_of(weight), linear_input_columns(step, weight).count);
}

Views linear_output(StepEmitter& step, Weight weight, const std::string& name) {
  const Shard& s = step.shard();
  if (!step.layout().streams_inputs(weight)) return linear_output(step, weight, name, s.work);
  return output_views(step, weight_slice(step, weight, s.rank.tatp, 0), {name},
                      s.inner[static_cast<std::size_t>(pair_of(weight))]);
}

Views linear_output(StepEmitter& step, Weight weight, const std::string& name, const TokenSet& rows) {
  Views views;
  for (int tatp = 0; tatp < step.shard().tatp; ++tatp) {
    for (int chunk = 0; chunk < step.layout().chunks(); ++chunk) {
      views = views + output_views(step, weight_slice(step, weight, tatp, chunk), {name}, rows);
    }
  }
  return views;
}

Deps linear(StepEmitter& step, const Product& product, const Deps& after) {
  const Deps ready = step.hold(product.result_bytes, after);
  if (step.shard().tatp == 1) return forward_block(step, product, 0, 0, true, ready);
  if (step.layout().streams_inputs(product.weight)) return linear_of_inputs(step, product, ready);
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
  if (step.layout().streams_inputs(product.weight)) return input_gradient_of_inputs(step, product, ready);
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
  if (step.layout().streams_inputs(product.weight)) return weight_gradient_of_inputs(step, product, after);
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
