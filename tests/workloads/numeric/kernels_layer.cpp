#include "tests/workloads/numeric/kernels.h"
#include "tests/workloads/numeric/row_math.h"
#include "workloads/step_emitter.h"

namespace wafersim::workloads::numeric::kernels {

namespace {

bool is_gain(Part part) { return part == Part::gain1 || part == Part::gain2 || part == Part::final_gain; }
bool is_shift(Part part) { return part == Part::shift1 || part == Part::shift2 || part == Part::final_shift; }

/// The sum of the vectors among the operation's parameters for which `wanted` holds, in order of the columns;
/// empty when there are none.
std::vector<double> vector_of(const KernelCall& call, const Index& cols, bool (*wanted)(Part)) {
  std::vector<double> result;
  for (const Parameter& each : call.parameters()) {
    if (!wanted(each.id.part)) continue;
    result.resize(cols.size());
    result[cols.at(each.id.col)] += each.value;
  }
  return result;
}

std::vector<double> gain_of(const KernelCall& call, const Index& cols) {
  std::vector<double> gain = vector_of(call, cols, is_gain);
  if (gain.size() != cols.size()) throw MeaningFault("a norm without its gain");
  return gain;
}

void require_same_shape(const Panel& a, const Panel& b) {
  if (!(a.rows == b.rows) || !(a.cols == b.cols)) throw MeaningFault("two matrices have another shape");
}

}  // namespace

void norm(KernelCall& call) {
  const Panel x = call.input(0);
  Panel y = call.output();
  require_same_shape(x, y);
  const std::vector<double> gain = gain_of(call, x.cols), shift = vector_of(call, x.cols, is_shift);
  for (std::size_t i = 0; i < x.rows.size(); ++i) {
    norm_row(call.model().norm, x.values.row(i), gain, shift, y.values.row(i));
  }
  call.put(y);
}

/// Inputs: dY, X and the gradient of the residual path, when there is one.
void norm_backward(KernelCall& call) {
  const Panel dy = call.input(0), x = call.input(1);
  Panel dx = call.output();
  require_same_shape(dy, x);
  require_same_shape(dx, x);
  const std::vector<double> gain = gain_of(call, x.cols);
  std::vector<double> d_gain(gain.size()), d_shift(gain.size());
  for (std::size_t i = 0; i < x.rows.size(); ++i) {
    norm_row_backward(call.model().norm, x.values.row(i), gain, dy.values.row(i), dx.values.row(i), d_gain,
                      d_shift);
  }
  if (call.inputs() > 2) {
    const Panel other = call.input(2);
    require_same_shape(other, x);
    add(dx.values, other.values);
  }
  call.put(dx);
  call.put_gradients(
      [&](const ParameterId& id) { return (is_gain(id.part) ? d_gain : d_shift)[x.cols.at(id.col)]; });
}

/// Columns from the width of the MLP on are those of the gate.
void activation(KernelCall& call) {
  const Panel up = call.input(0);
  Panel y = call.output();
  const auto ffn = static_cast<std::uint64_t>(call.model().ffn);
  for (std::size_t i = 0; i < y.rows.size(); ++i) {
    const std::size_t row = up.rows.at(y.rows[i]);
    for (std::size_t j = 0; j < y.cols.size(); ++j) {
      const double value = up(row, up.cols.at(y.cols[j]));
      y(i, j) = call.model().mlp == models::Mlp::gelu ? gelu(value)
                                                      : value * silu(up(row, up.cols.at(ffn + y.cols[j])));
    }
  }
  call.put(y);
}

/// Inputs: dA and up with gate.
void activation_backward(KernelCall& call) {
  const Panel da = call.input(0), up = call.input(1);
  Panel d_up = call.output();
  require_same_shape(d_up, up);
  const auto ffn = static_cast<std::uint64_t>(call.model().ffn);
  for (std::size_t i = 0; i < up.rows.size(); ++i) {
    for (std::size_t j = 0; j < up.cols.size(); ++j) {
      const std::uint64_t col = up.cols[j];
      const double gradient = da(da.rows.at(up.rows[i]), da.cols.at(col % ffn));
      if (call.model().mlp == models::Mlp::gelu) {
        d_up(i, j) = gradient * gelu_derivative(up(i, j));
      } else if (col < ffn) {
        d_up(i, j) = gradient * silu(up(i, up.cols.at(ffn + col)));
      } else {
        d_up(i, j) = gradient * up(i, up.cols.at(col - ffn)) * silu_derivative(up(i, j));
      }
    }
  }
  call.put(d_up);
}

/// Inputs: X and the block's sum; all parameters are biases.
void residual(KernelCall& call) {
  const Panel x = call.input(0), sum = call.input(1);
  Panel y = call.output();
  require_same_shape(x, y);
  require_same_shape(sum, y);
  const std::vector<double> bias = vector_of(call, y.cols, [](Part) { return true; });
  y.values = x.values;
  add(y.values, sum.values);
  for (std::size_t i = 0; i < y.rows.size(); ++i) {
    for (std::size_t j = 0; j < bias.size(); ++j) y(i, j) += bias[j];
  }
  call.put(y);
}

/// Dropout drops nothing here.
void copy(KernelCall& call) {
  const Panel x = call.input(0);
  Panel y = call.output();
  require_same_shape(x, y);
  y.values = x.values;
  call.put(y);
}

void external(KernelCall& call) {
  Panel y = call.output();
  if (y.views.empty()) return;
  const bool gradient = call.step().name(y.views.front()) == tensors::kStreamGradient;
  const Batch batch = call.batch();
  for (std::size_t i = 0; i < y.rows.size(); ++i) {
    const std::uint64_t sequence = call.sequence(y.rows[i]), position = call.position(y.rows[i]);
    for (std::size_t j = 0; j < y.cols.size(); ++j) {
      y(i, j) = gradient ? batch.output_gradient(sequence, position, y.cols[j])
                         : batch.input(sequence, position, y.cols[j]);
    }
  }
  call.put(y);
}

}  // namespace wafersim::workloads::numeric::kernels
