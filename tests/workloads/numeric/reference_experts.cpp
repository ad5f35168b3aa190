#include "tests/workloads/numeric/reference.h"
#include "tests/workloads/numeric/row_math.h"

namespace wafersim::workloads::numeric {

/// One token after the other, through each expert that takes it (Jiang et al. 2024).
Matrix Reference::experts(int layer, const Run& run, LayerState& state) const {
  const Matrix logits = product(state.normed2, get(layer, Part::router));
  Matrix output(state.normed2.rows, state.normed2.cols);
  for (std::size_t i = 0; i < output.rows; ++i) {
    TokenState& token = state.tokens.emplace_back();
    const std::vector<Choice>& choices = routing_.of(routing_.row(run.sequence, i));
    for (const Choice& choice : choices) token.gates.push_back(logits(i, choice.expert));
    softmax_row(token.gates);
    token.input = Matrix(1, state.normed2.cols);
    for (std::size_t j = 0; j < output.cols; ++j) token.input(0, j) = state.normed2(i, j);
    for (std::size_t c = 0; c < choices.size(); ++c) {
      ExpertState& expert = token.experts.emplace_back();
      if (choices[c].dropped) continue;
      expert.up = product(token.input, get(layer, Part::mlp_up, choices[c].expert));
      expert.activated = activate(expert.up);
      expert.output = product(expert.activated, get(layer, Part::mlp_down, choices[c].expert));
      for (std::size_t j = 0; j < output.cols; ++j) output(i, j) += token.gates[c] * expert.output(0, j);
    }
  }
  return output;
}

Matrix Reference::experts_backward(int layer, const LayerState& state, const Matrix& dy,
                                   const Run& run) const {
  Matrix dx(dy.rows, dy.cols), d_logits(dy.rows, static_cast<std::size_t>(model_.experts));
  for (std::size_t i = 0; i < dy.rows; ++i) {
    const TokenState& token = state.tokens[i];
    const std::vector<Choice>& choices = routing_.of(routing_.row(run.sequence, i));
    std::vector<double> d_gates(choices.size()), d_chosen(choices.size());
    for (std::size_t c = 0; c < choices.size(); ++c) {
      if (choices[c].dropped) continue;
      const ExpertState& expert = token.experts[c];
      Matrix d_output(1, dy.cols);
      for (std::size_t j = 0; j < dy.cols; ++j) {
        d_output(0, j) = token.gates[c] * dy(i, j);
        d_gates[c] += dy(i, j) * expert.output(0, j);
      }
      const auto number = choices[c].expert;
      const Matrix d_activated = product_with_transposed(d_output, get(layer, Part::mlp_down, number));
      const Matrix d_up = activate_backward(expert.up, d_activated);
      parameters_.add(run.sum.gradients, layer, Part::mlp_down,
                      product_of_transposed(expert.activated, d_output), number);
      parameters_.add(run.sum.gradients, layer, Part::mlp_up, product_of_transposed(token.input, d_up),
                      number);
      const Matrix d_input = product_with_transposed(d_up, get(layer, Part::mlp_up, number));
      for (std::size_t j = 0; j < dx.cols; ++j) dx(i, j) += d_input(0, j);
    }
    softmax_row_backward(token.gates, d_gates, d_chosen);
    for (std::size_t c = 0; c < choices.size(); ++c) d_logits(i, choices[c].expert) = d_chosen[c];
  }
  parameters_.add(run.sum.gradients, layer, Part::router, product_of_transposed(state.normed2, d_logits));
  add(dx, product_with_transposed(d_logits, get(layer, Part::router)));
  return dx;
}

}  // namespace wafersim::workloads::numeric
