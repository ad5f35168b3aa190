#pragma once

#include <optional>

#include "workloads/step_emitter.h"

namespace wafersim::workloads {

/// The products of a layer with its weights, as one rank does them on the tokens that it works on. Outputs of
/// row-parallel weights and input gradients of column-parallel ones are partial sums over the tensor-parallel
/// ranks.

/// Columns of the input and of the output that the rank has.
Range linear_input_columns(const StepEmitter& step, Weight weight);
/// The output of a column-parallel weight in tensor `name`, one view for each run of columns: of the tokens that the
/// rank works on, or of other rows.
Views linear_output(StepEmitter& step, Weight weight, const std::string& name);
Views linear_output(StepEmitter& step, Weight weight, const std::string& name, const TokenSet& rows);

/// Which addends the rank has of a row-parallel weight's output, and of the gradient of a column-parallel one's input.
Terms linear_output_terms(const StepEmitter& step, Weight weight);
Terms linear_input_terms(const StepEmitter& step, Weight weight);

/// A product with a weight: its input (or the input's gradient) and its output (or the output's gradient).
struct Product {
  Weight weight = Weight::qkv;
  std::optional<std::uint64_t> expert{};  ///< of an MLP's weights: whose, with the rows that are dispatched to it
  Views input;        ///< all tokens that the rank works on, or the expert's rows; its columns of the input
  Traffic input_traffic;
  TensorName output;  ///< its columns are those of the weight
  Traffic output_traffic;
  Bytes result_bytes = 0;  ///< allocated for the result
  bool adds = false;       ///< to what the result has already
};

/// With tensor streams the columns of the weight travel block by block, see stream.h: in the first two functions they
/// flow outward and visit every rank; in the third each rank makes a part of every block's gradient, in fp32, and
/// the parts flow inward to the owners.

/// Y = X W (+ bias).
Deps linear(StepEmitter& step, const Product& product, const Deps& after);
/// dX = dY W^T.
Deps linear_input_gradient(StepEmitter& step, const Product& product, const Deps& after);
/// dW = X^T dY, added to what earlier microbatches left: the gradient is read and written.
Deps linear_weight_gradient(StepEmitter& step, const Product& product, const Deps& after);

}  // namespace wafersim::workloads
