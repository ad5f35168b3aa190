#include "tests/workloads/numeric/reference.h"

#include <cmath>

#include "tests/workloads/numeric/row_math.h"

namespace wafersim::workloads::numeric {

Evaluation Reference::evaluate(const Batch& batch, std::uint64_t sequences) const {
  Evaluation result{0, std::vector<double>(parameters_.count())};
  const double weight = 1.0 / static_cast<double>(sequences * static_cast<std::uint64_t>(model_.sequence));
  for (std::uint64_t sequence = 0; sequence < sequences; ++sequence) {
    const Run run{batch, sequence, weight, result};
    std::vector<LayerState> states(static_cast<std::size_t>(model_.layers));
    Matrix stream = embed(run);
    for (int l = 0; l < model_.layers; ++l) {
      LayerState& state = states[static_cast<std::size_t>(l)];
      state.input = stream;
      stream = layer(l, run, state);
    }
    Matrix gradient = head(stream, run);
    for (int l = model_.layers - 1; l >= 0; --l) {
      gradient = layer_backward(l, states[static_cast<std::size_t>(l)], gradient, run);
    }
    embed_backward(run, gradient);
  }
  return result;
}

Matrix Reference::embed(const Run& run) const {
  Matrix stream(static_cast<std::size_t>(model_.sequence), static_cast<std::size_t>(model_.hidden));
  const Matrix table = get(-1, Part::table), positions = get(-1, Part::positions);
  for (std::size_t i = 0; i < stream.rows; ++i) {
    for (std::size_t j = 0; j < stream.cols; ++j) {
      if (!model_.embedding) {
        stream(i, j) = run.batch.input(run.sequence, i, j);
        continue;
      }
      stream(i, j) = table(run.batch.token(run.sequence, i), j) + (positions.empty() ? 0 : positions(i, j));
    }
  }
  return stream;
}

void Reference::embed_backward(const Run& run, const Matrix& dy) const {
  if (!model_.embedding) return;
  Matrix d_table(static_cast<std::size_t>(model_.vocab), dy.cols);
  for (std::size_t i = 0; i < dy.rows; ++i) {
    for (std::size_t j = 0; j < dy.cols; ++j) d_table(run.batch.token(run.sequence, i), j) += dy(i, j);
  }
  parameters_.add(run.sum.gradients, -1, Part::table, d_table);
  parameters_.add(run.sum.gradients, -1, Part::positions, dy);
}

Matrix Reference::layer(int layer, const Run& run, LayerState& state) const {
  state.normed1 = norm(layer, Part::gain1, Part::shift1, state.input);
  state.qkv = linear(layer, Part::qkv, Part::qkv_bias, state.normed1);
  rotate(state.qkv, 1);
  attend(state);
  state.middle = linear(layer, Part::attention_output, Part::attention_output_bias, state.heads);
  add(state.middle, state.input);
  const Matrix& second = model_.parallel_residual ? state.input : state.middle;
  state.normed2 = norm(layer, Part::gain2, Part::shift2, second);
  Matrix output = mlp(layer, run, state);
  add(output, state.middle);
  return output;
}

Matrix Reference::mlp(int layer, const Run& run, LayerState& state) const {
  if (model_.routes()) return experts(layer, run, state);
  state.up = linear(layer, Part::mlp_up, Part::mlp_up_bias, state.normed2);
  state.activated = activate(state.up);
  return linear(layer, Part::mlp_down, Part::mlp_down_bias, state.activated);
}

Matrix Reference::mlp_backward(int layer, const LayerState& state, const Matrix& dy, const Run& run) const {
  if (model_.routes()) return experts_backward(layer, state, dy, run);
  const Matrix d_activated =
      linear_backward(layer, Part::mlp_down, Part::mlp_down_bias, state.activated, dy, run);
  const Matrix d_up = activate_backward(state.up, d_activated);
  return linear_backward(layer, Part::mlp_up, Part::mlp_up_bias, state.normed2, d_up, run);
}

Matrix Reference::layer_backward(int layer, const LayerState& state, const Matrix& dy, const Run& run) const {
  const Matrix d_normed2 = mlp_backward(layer, state, dy, run);
  const Matrix& second = model_.parallel_residual ? state.input : state.middle;
  const Matrix d_second = norm_backward(layer, Part::gain2, Part::shift2, second, d_normed2, run);
  Matrix d_middle = dy;
  if (!model_.parallel_residual) add(d_middle, d_second);
  const Matrix d_heads =
      linear_backward(layer, Part::attention_output, Part::attention_output_bias, state.heads, d_middle, run);
  Matrix d_qkv = attend_backward(state, d_heads);
  rotate(d_qkv, -1);
  const Matrix d_normed1 = linear_backward(layer, Part::qkv, Part::qkv_bias, state.normed1, d_qkv, run);
  Matrix dx = norm_backward(layer, Part::gain1, Part::shift1, state.input, d_normed1, run);
  add(dx, d_middle);
  if (model_.parallel_residual) add(dx, d_second);
  return dx;
}

Matrix Reference::head(const Matrix& output, const Run& run) const {
  if (!model_.head) {
    Matrix gradient(output.rows, output.cols);
    for (std::size_t i = 0; i < output.rows; ++i) {
      for (std::size_t j = 0; j < output.cols; ++j) {
        gradient(i, j) = run.batch.output_gradient(run.sequence, i, j);
        run.sum.loss += gradient(i, j) * output(i, j);
      }
    }
    return gradient;
  }
  const int layer = model_.layers;
  const bool tied = model_.tied_embeddings && model_.embedding;
  const int owner = tied ? -1 : layer;
  const Part part = tied ? Part::table : Part::head_table;
  const Matrix normed = model_.final_norm ? norm(layer, Part::final_gain, Part::final_shift, output) : output;
  const Matrix table = get(owner, part);
  Matrix logits = product_with_transposed(normed, table);
  for (std::size_t i = 0; i < logits.rows; ++i) {
    softmax_row(logits.row(i));
    double& hit = logits(i, run.batch.label(run.sequence, i));
    run.sum.loss -= run.weight * std::log(hit);
    hit -= 1;
    for (double& value : logits.row(i)) value *= run.weight;
  }
  parameters_.add(run.sum.gradients, owner, part, product_of_transposed(logits, normed));
  const Matrix d_normed = product(logits, table);
  if (!model_.final_norm) return d_normed;
  return norm_backward(layer, Part::final_gain, Part::final_shift, output, d_normed, run);
}

Matrix Reference::norm(int layer, Part gain, Part shift, const Matrix& x) const {
  const Matrix scale = get(layer, gain), offset = get(layer, shift);
  Matrix y(x.rows, x.cols);
  for (std::size_t i = 0; i < x.rows; ++i) norm_row(model_.norm, x.row(i), scale.data, offset.data, y.row(i));
  return y;
}

Matrix Reference::norm_backward(int layer, Part gain, Part shift, const Matrix& x, const Matrix& dy,
                                const Run& run) const {
  const Matrix scale = get(layer, gain);
  Matrix dx(x.rows, x.cols), d_gain(1, x.cols), d_shift(1, x.cols);
  for (std::size_t i = 0; i < x.rows; ++i) {
    norm_row_backward(model_.norm, x.row(i), scale.data, dy.row(i), dx.row(i), d_gain.data, d_shift.data);
  }
  parameters_.add(run.sum.gradients, layer, gain, d_gain);
  parameters_.add(run.sum.gradients, layer, shift, d_shift);
  return dx;
}

Matrix Reference::linear(int layer, Part weight, Part bias, const Matrix& x) const {
  Matrix y = product(x, get(layer, weight));
  add_to_rows(y, get(layer, bias));
  return y;
}

Matrix Reference::linear_backward(int layer, Part weight, Part bias, const Matrix& x, const Matrix& dy,
                                  const Run& run) const {
  parameters_.add(run.sum.gradients, layer, weight, product_of_transposed(x, dy));
  parameters_.add(run.sum.gradients, layer, bias, column_sums(dy));
  return product_with_transposed(dy, get(layer, weight));
}

}  // namespace wafersim::workloads::numeric
