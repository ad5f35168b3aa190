#pragma once

#include <optional>

#include "workloads/step_emitter.h"

namespace wafersim::workloads {

/// The products of a layer with its weights, as one rank does them on the tokens that it works on. Outputs of
/// row-parallel weights and input gradients of column-parallel ones are partial sums over the tensor-parallel
/// ranks.

/// Columns of the input and of the output that the rank has.
Range linear_input_columns(const StepEmitter& step, Weight weight);
/// Bytes of the input of which the rank has these columns.
Bytes linear_input_bytes(const StepEmitter& step, Weight weight);
/// The output of a column-parallel weight in tensor `name`, one view for each run of columns: of the rank's tokens, or
/// of other rows.
Views linear_output(StepEmitter& step, Weight weight, const std::string& name);
Views linear_output(StepEmitter& step, Weight weight, const std::string& name, const TokenSet& rows);

/// Which addends the rank has of a row-parallel weight's output, and of the gradient of a column-parallel one's input.
Terms linear_output_terms(const StepEmitter& step, Weight weight);
Terms linear_input_terms(const StepEmitter& step, Weight weight);

/// A product with a weight: its input (or the input's gradient) and its output (or the output's gradient).
struct Product {
  Weight weight = Weight::qkv;
  std::optional<std::uint64_t> expert{};  ///< of an MLP's weights: whose, with the rows that are dispatched to it
  Views input;        ///< all tokens of the rank, or the expert's rows; its columns of the input
  Traffic input_traffic;
  TensorName output;  ///< its columns are those of the weight
  Traffic output_traffic;
  Bytes result_bytes = 0;  ///< allocated for the result
  bool adds = false;       ///< to what the result has already
};

/// With tensor streams either operand travels block by block, see stream.h.
/// Weights: their columns flow outward and visit every rank in the first two functions; in the third each rank makes a
/// part of every block's gradient, in fp32, and the parts flow inward to the owners.
/// Inputs: a rank has its part of the weight, and what lies between the two products of a pair is of all tokens of the
/// line. The rows of the residual stream (the first product's input, the gradient of the second one's output) flow
/// outward and visit every rank; each rank makes a part, in fp32, of the second product's output and of the gradient of
/// the first one's input for every rank's tokens, and the parts flow inward to the owners. Gradients of weights stay.

/// Y = X W (+ bias).
Deps linear(StepEmitter& step, const Product& product, const Deps& after);
/// dX = dY W^T.
Deps linear_input_gradient(StepEmitter& step, const Product& product, const Deps& after);
/// dW = X^T dY, added to what earlier microbatches left: the gradient is read and written.
Deps linear_weight_gradient(StepEmitter& step, const Product& product, const Deps& after);

/// Both gradients of the second product of a pair whose inputs travel, from one visit of the output's gradient.
/// `product` is as for linear_input_gradient(); `input` and its traffic are those of linear_weight_gradient().
struct ProductGradients {
  Deps input;
  Deps weight;
};
ProductGradients linear_gradients_of_inputs(StepEmitter& step, const Product& product, const Views& input,
                                            const Traffic& input_traffic, const Deps& after);

}  // namespace wafersim::workloads
