#include <algorithm>
#include <utility>

#include "workloads/linear_block.h"
#include "workloads/stream.h"

namespace wafersim::workloads {

namespace {

/// Views of the same columns as `named`, of those of its rows that are of `tokens`.
Views rows_of(const Views& named, const TokenSet& tokens) {
  Views result;
  for (const View& view : named) {
    for (const Range& run : tokens.ranges) {
      const std::uint64_t first = std::max(run.first, view.region.row);
      const std::uint64_t end = std::min(run.end(), view.region.row_end());
      if (first >= end) continue;
      View part = view;
      part.region.row = first;
      part.region.rows = end - first;
      result.push_back(part);
    }
  }
  return result;
}

/// A product whose inputs travel, on one rank: its part of the weight times the rows of every rank of the line.
class InputStream {
 public:
  InputStream(StepEmitter& step, const Product& product)
      : step_(step),
        product_(product),
        shard_(step.shard()),
        pair_(pair_of(product.weight)),
        slice_(weight_slice(step, product.weight, shard_.rank.tatp, 0)),
        input_(linear_input_columns(step, product.weight).count),
        pieces_(step.layout().chunks()),
        second_(step.layout().row_parallel(product.weight)) {}

  /// The product, or its input's gradient.
  Deps product(bool backward, const Deps& ready) {
    const Use use = [this, backward](const Block& b, const Deps& there) { return multiply(b, backward, there); };
    return makes_sums(backward) ? inward(ready, use) : outward(ready, use);
  }

  Deps weight_gradient(const Deps& ready) {
    return outward(ready, [this](const Block& b, const Deps& there) {
      return weight_gradient_of(b, product_.input, product_.input_traffic, block_traffic(b, shard_.element), there);
    });
  }

  ProductGradients gradients(const Views& input, const Traffic& input_traffic, const Deps& ready) {
    ProductGradients made;
    outward(ready, [&](const Block& b, const Deps& there) {
      const Deps of_input = multiply(b, true, there);
      const Traffic again = repeated(block_traffic(b, shard_.element), false);
      const Deps of_weight = weight_gradient_of(b, input, input_traffic, again, there);
      made.input = join(std::move(made.input), of_input);
      made.weight = join(std::move(made.weight), of_weight);
      return join(of_input, of_weight);
    });
    return made;
  }

 private:
  /// Some rows of a rank of the line.
  struct Block {
    int owner = 0;
    TokenSet tokens;
    std::uint64_t rows = 0;
  };
  using Use = std::function<Deps(const Block& block, const Deps& there)>;

  Block block(int owner, int piece) const {
    const TokenSet tokens = shard_.line[static_cast<std::size_t>(owner)].part(pieces_, piece);
    return {owner, tokens, tokens.count()};
  }
  bool own(const Block& b) const { return b.owner == shard_.rank.tatp; }

  /// The operand that has the residual stream's width, of any rank's rows.
  Views wide(const Block& b) const {
    if (second_) {
      const TensorName& name = product_.output;
      return StepEmitter::shifted(step_.view(name.name, b.tokens, {0, shard_.hidden}), name.layer);
    }
    Views views;
    for (const Range& rows : b.tokens.ranges) {
      View view = product_.input.front();
      view.region = {rows.first, rows.count, 0, shard_.hidden};
      views.push_back(view);
    }
    return views;
  }
  const Traffic& wide_traffic() const { return second_ ? product_.output_traffic : product_.input_traffic; }
  /// The other one, which has the columns of the rank's part of the weight.
  Views narrow(const Block& b) const {
    return second_ ? rows_of(product_.input, b.tokens) : output_views(step_, slice_, product_.output, b.tokens);
  }
  Traffic narrow_traffic(const Block& b) const {
    return inner(second_ ? product_.input_traffic : product_.output_traffic, b);
  }
  Traffic inner(const Traffic& all, const Block& b) const { return scaled(all, b.rows, shard_.inner_tokens(pair_)); }

  /// Reading a block that visits, or writing a part that leaves: the rank's own lies where the step put it, others in
  /// stream buffers.
  Traffic block_traffic(const Block& b, Bytes element) const {
    if (own(b)) return scaled(wide_traffic(), b.rows, shard_.tokens);
    return {.streamed = b.rows * shard_.hidden * element};
  }
  Traffic weight_traffic() {
    return repeated({.parameters = input_ * slice_.width() * shard_.element}, std::exchange(fresh_weight_, false));
  }

  std::uint64_t elements(int owner, int piece) const { return block(owner, piece).rows * shard_.hidden; }
  StreamBlocks blocks(Bytes element) const {
    return {.chunks = pieces_,
            .views = [this](int owner, int piece) { return wide(block(owner, piece)); },
            .bytes = [this, element](int owner, int piece) { return elements(owner, piece) * element; },
            .elements = [this](int owner, int piece) { return elements(owner, piece); }};
  }

  Deps outward(const Deps& ready, const Use& use) {
    return stream_outward(step_, step_.tatp_line(), blocks(shard_.element), ready,
                          [&](int owner, int piece, const Deps& there) -> BlockUse {
                            const Deps done = use(block(owner, piece), join(there, ready));
                            return {done, done};
                          })
        .done;
  }

  /// The result is there when the rank has made its last part, too: what the parts were made from is not read any more.
  Deps inward(const Deps& ready, const Use& make) {
    Deps all;
    const Deps sum = stream_inward(step_, step_.tatp_line(), blocks(kPartialBytes), ready,
                                   [&](int owner, int piece, const Deps& there) -> BlockUse {
                                     const Deps done = make(block(owner, piece), join(there, ready));
                                     all = join(std::move(all), done);
                                     return {done, done};
                                   });
    return join(std::move(all), sum);
  }

  /// The second product and the first one's input gradient make parts of the wide operand, for every rank's rows.
  bool makes_sums(bool backward) const { return second_ != backward; }

  /// Y_i = X_i W, Z_i += A_i W, or backward dA_i = dZ_i W^T, dX_i += dY_i W^T. Others' sums begin with the rank's part.
  Deps multiply(const Block& b, bool backward, const Deps& there) {
    const bool sums = makes_sums(backward);
    const std::uint64_t width = slice_.width();
    const Terms terms = backward ? input_terms(step_, product_.weight, shard_.rank.tatp, 0)
                                 : linear_output_terms(step_, product_.weight);
    return step_.gemm({1, b.rows, backward ? input_ : width, backward ? width : input_},
                      block_traffic(b, sums ? kPartialBytes : shard_.element) + narrow_traffic(b) + weight_traffic(),
                      there,
                      {.kernel = backward ? Kernel::linear_input : Kernel::linear,
                       .adds = product_.adds && (own(b) || !sums),
                       .reads = (sums ? narrow(b) : wide(b)) + step_.weights(slice_.regions),
                       .writes = sums ? with_terms(wide(b), terms) : narrow(b)});
  }

  /// dW += X_i^T dY_i, of the rank's part of the weight. `input` is that of a second product, `visiting` the traffic of
  /// the block.
  Deps weight_gradient_of(const Block& b, const Views& input, const Traffic& input_traffic, const Traffic& visiting,
                          const Deps& there) {
    const Views read = second_ ? rows_of(input, b.tokens) + wide(b) : wide(b) + narrow(b);
    const Bytes gradient = input_ * slice_.width() * shard_.gradient;
    const Traffic traffic = visiting + (second_ ? inner(input_traffic, b) : narrow_traffic(b)) +
                            repeated({.gradients = 2 * gradient}, std::exchange(fresh_gradient_, false));
    return step_.gemm({1, input_, slice_.width(), b.rows}, traffic, there,
                      {.kernel = Kernel::linear_weight,
                       .reads = read,
                       .writes = gradient_writes(step_, product_, slice_, b.tokens)});
  }

  StepEmitter& step_;
  const Product& product_;
  const Shard& shard_;
  int pair_;
  WeightSlice slice_;
  std::uint64_t input_;  ///< rows of the rank's part of the weight
  int pieces_;
  bool second_;  ///< of the pair
  bool fresh_weight_ = true;
  bool fresh_gradient_ = true;
};

}  // namespace

Deps linear_of_inputs(StepEmitter& step, const Product& product, const Deps& after) {
  return InputStream(step, product).product(false, after);
}

Deps input_gradient_of_inputs(StepEmitter& step, const Product& product, const Deps& after) {
  return InputStream(step, product).product(true, after);
}

Deps weight_gradient_of_inputs(StepEmitter& step, const Product& product, const Deps& after) {
  return InputStream(step, product).weight_gradient(after);
}

ProductGradients linear_gradients_of_inputs(StepEmitter& step, const Product& product, const Views& input,
                                            const Traffic& input_traffic, const Deps& after) {
  return InputStream(step, product).gradients(input, input_traffic, step.hold(product.result_bytes, after));
}

}  // namespace wafersim::workloads
