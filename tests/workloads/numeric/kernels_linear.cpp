#include "tests/workloads/numeric/kernels.h"

namespace wafersim::workloads::numeric::kernels {

namespace {

bool is_bias(Part part) {
  return part == Part::qkv_bias || part == Part::attention_output_bias || part == Part::mlp_up_bias ||
         part == Part::mlp_down_bias;
}

struct Weights {
  Matrix matrix;  ///< inputs x outputs
  Matrix bias;    ///< 1 x outputs; zeros for outputs without one
};

/// The weight between the given inputs and outputs, all of which must be there.
Weights weights(const KernelCall& call, const Index& inputs, const Index& outputs) {
  Weights result{Matrix(inputs.size(), outputs.size()), Matrix(1, outputs.size())};
  std::size_t found = 0;
  for (const Parameter& each : call.parameters()) {
    const std::size_t col = outputs.at(each.id.col);
    if (is_bias(each.id.part)) {
      result.bias(0, col) = each.value;
    } else {
      result.matrix(inputs.at(each.id.row), col) = each.value;
      ++found;
    }
  }
  if (found != result.matrix.data.size()) throw MeaningFault("the weight does not fit its input and output");
  return result;
}

void require_same_rows(const Panel& a, const Panel& b) {
  if (!(a.rows == b.rows)) throw MeaningFault("two matrices have other rows");
}

}  // namespace

/// Y = X W + b.
void linear(KernelCall& call) {
  const Panel x = call.input(0);
  Panel y = call.output();
  require_same_rows(x, y);
  const Weights w = weights(call, x.cols, y.cols);
  y.values = product(x.values, w.matrix);
  add_to_rows(y.values, w.bias);
  call.put(y);
}

/// dX = dY W^T.
void linear_input(KernelCall& call) {
  const Panel dy = call.input(0);
  Panel dx = call.output();
  require_same_rows(dy, dx);
  dx.values = product_with_transposed(dy.values, weights(call, dx.cols, dy.cols).matrix);
  call.put(dx);
}

/// dW = X^T dY; of a bias the sum over the rows of dY.
void linear_weight(KernelCall& call) {
  const Panel x = call.input(0), dy = call.input(1);
  require_same_rows(x, dy);
  const Matrix dw = product_of_transposed(x.values, dy.values);
  const Matrix sums = column_sums(dy.values);
  call.put_gradients([&](const ParameterId& id) {
    const std::size_t col = dy.cols.at(id.col);
    return is_bias(id.part) ? sums(0, col) : dw(x.cols.at(id.row), col);
  });
}

/// The sums over the rows of dY.
void bias_gradient(KernelCall& call) {
  const Panel dy = call.input(0);
  const Matrix sums = column_sums(dy.values);
  call.put_gradients([&](const ParameterId& id) { return sums(0, dy.cols.at(id.col)); });
}

}  // namespace wafersim::workloads::numeric::kernels
