#pragma once

#include "workloads/step_emitter.h"

namespace wafersim::workloads {

/// The products of a layer with its weights, as one rank does them on the tokens that it works on. Outputs of
/// row-parallel weights and input gradients of column-parallel ones are partial sums over the tensor-parallel
/// ranks.

/// Columns of the input and of the output that the rank has.
Range linear_input_columns(const StepEmitter& step, Weight weight);
/// The output of a column-parallel weight in tensor `name`, one view for each run of columns.
Views linear_output(StepEmitter& step, Weight weight, const std::string& name);

/// What a product reads and writes besides the weight. `traffic` is that of its activations.
struct Product {
  Weight weight = Weight::qkv;
  Views input;
  Views output;
  Traffic traffic;
  Bytes result_bytes = 0;  ///< allocated for the result
  bool adds = false;       ///< to what the result has already
};

/// Y = X W (+ bias).
Deps linear(StepEmitter& step, const Product& product, const Deps& after);
/// dX = dY W^T; `input` is dY, `output` dX.
Deps linear_input_gradient(StepEmitter& step, const Product& product, const Deps& after);
/// dW = X^T dY, added to what earlier microbatches left: the gradient is read and written. `input` is X, `output`
/// dY. The gradient of a row-parallel layer's bias is taken from dY as well.
Deps linear_weight_gradient(StepEmitter& step, const Product& product, const Deps& after);

}  // namespace wafersim::workloads
