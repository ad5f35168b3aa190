#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tests/workloads/numeric/kernels.h"

namespace wafersim::workloads::numeric::kernels {

namespace {

/// Rows of a table: tokens x hidden columns, all of which must be there.
Matrix table_of(const KernelCall& call, const Index& tokens, const Index& cols) {
  Matrix result(tokens.size(), cols.size());
  std::size_t found = 0;
  for (const Parameter& each : call.parameters()) {
    result(tokens.at(each.id.row), cols.at(each.id.col)) = each.value;
    ++found;
  }
  if (found != result.data.size()) throw MeaningFault("the table does not fit its input and output");
  return result;
}

}  // namespace

/// The rows of the tokens whose part of the table is there; with their positions.
void embed(KernelCall& call, bool with_positions) {
  Panel y = call.output();
  const std::vector<Parameter> parameters = call.parameters();
  std::set<std::uint64_t> held;
  for (const Parameter& each : parameters) {
    if (each.id.part == Part::table) held.insert(each.id.row);
  }
  for (std::size_t i = 0; i < y.rows.size(); ++i) {
    const std::uint64_t token = call.token(y.rows[i]), position = call.position(y.rows[i]);
    if (!held.contains(token)) continue;
    for (const Parameter& each : parameters) {
      const bool is_table = each.id.part == Part::table;
      if (!is_table && !with_positions) throw MeaningFault("positions that are not added");
      if (each.id.row == (is_table ? token : position)) y(i, y.cols.at(each.id.col)) += each.value;
    }
  }
  call.put(y);
}

/// Of the table's rows or of the positions.
void embed_backward(KernelCall& call) {
  const Panel dy = call.input(0);
  call.put_gradients([&](const ParameterId& id) {
    double sum = 0;
    for (std::size_t i = 0; i < dy.rows.size(); ++i) {
      const std::uint64_t row = id.part == Part::table ? call.token(dy.rows[i]) : call.position(dy.rows[i]);
      if (row == id.row) sum += dy(i, dy.cols.at(id.col));
    }
    return sum;
  });
}

/// Y = X table^T. Padding of the vocabulary is minus infinity: it has no part in the softmax.
void logits(KernelCall& call) {
  const Panel x = call.input(0);
  Panel y = call.output();
  if (!(x.rows == y.rows)) throw MeaningFault("two matrices have other rows");
  y.values = product_with_transposed(x.values, table_of(call, y.cols, x.cols));
  for (std::size_t j = 0; j < y.cols.size(); ++j) {
    if (y.cols[j] < static_cast<std::uint64_t>(call.model().vocab)) continue;
    for (std::size_t i = 0; i < y.rows.size(); ++i) y(i, j) = -std::numeric_limits<double>::infinity();
  }
  call.put(y);
}

/// dX = dY table.
void logits_input(KernelCall& call) {
  const Panel dy = call.input(0);
  Panel dx = call.output();
  if (!(dx.rows == dy.rows)) throw MeaningFault("two matrices have other rows");
  dx.values = product(dy.values, table_of(call, dy.cols, dx.cols));
  call.put(dx);
}

/// dtable = dY^T X; inputs: X and dY.
void logits_weight(KernelCall& call) {
  const Panel x = call.input(0), dy = call.input(1);
  if (!(x.rows == dy.rows)) throw MeaningFault("two matrices have other rows");
  const Matrix d_table = product_of_transposed(dy.values, x.values);
  call.put_gradients([&](const ParameterId& id) { return d_table(dy.cols.at(id.row), x.cols.at(id.col)); });
}

void row_maximum(KernelCall& call) {
  const Panel x = call.input(0);
  Panel y = call.output();
  for (std::size_t i = 0; i < y.rows.size(); ++i) {
    const auto row = x.values.row(x.rows.at(y.rows[i]));
    y(i, 0) = *std::max_element(row.begin(), row.end());
  }
  call.put(y);
}

/// Inputs: logits and maxima.
void row_sum(KernelCall& call) {
  const Panel x = call.input(0), maxima = call.input(1);
  Panel y = call.output();
  for (std::size_t i = 0; i < y.rows.size(); ++i) {
    const double top = maxima(maxima.rows.at(y.rows[i]), 0);
    for (const double value : x.values.row(x.rows.at(y.rows[i]))) y(i, 0) += std::exp(value - top);
  }
  call.put(y);
}

/// Inputs: logits, maxima and sums. Also the loss of each token whose label is among the columns.
void probabilities(KernelCall& call) {
  const Panel x = call.input(0), maxima = call.input(1), sums = call.input(2);
  Panel y = call.output();
  for (std::size_t i = 0; i < y.rows.size(); ++i) {
    const std::uint64_t row = y.rows[i];
    const double top = maxima(maxima.rows.at(row), 0), sum = sums(sums.rows.at(row), 0);
    for (std::size_t j = 0; j < y.cols.size(); ++j) {
      const double value = x(x.rows.at(row), x.cols.at(y.cols[j]));
      y(i, j) = std::exp(value - top) / sum;
      if (y.cols[j] == call.label(row)) call.put_loss(row, std::log(sum) + top - value);
    }
  }
  call.put(y);
}

/// (P - 1 at the label) / tokens of the global batch.
void loss_gradient(KernelCall& call) {
  const Panel p = call.input(0);
  Panel y = call.output();
  y.values = p.values;
  for (std::size_t i = 0; i < y.rows.size(); ++i) {
    const auto label = y.cols.find(call.label(y.rows[i]));
    if (label) y(i, *label) -= 1;
    for (double& value : y.values.row(i)) value /= static_cast<double>(call.problem().tokens());
  }
  call.put(y);
}

}  // namespace wafersim::workloads::numeric::kernels
