#pragma once

#include <vector>

#include "tests/workloads/numeric/batch.h"
#include "tests/workloads/numeric/parameters.h"
#include "tests/workloads/numeric/routing.h"

namespace wafersim::workloads::numeric {

struct Evaluation {
  double loss = 0;
  std::vector<double> gradients;  ///< of the loss, in the order of Parameters
};

/// An unpartitioned transformer, one sequence after the other; of a mixture of experts one token after the other, with
/// the choices of a plan's ranks. The loss is the mean cross-entropy over all
/// tokens; of a model without head, the sum of Batch::output_gradient x output.
class Reference {
 public:
  Reference(const models::TransformerSpec& model, const Parameters& parameters,
            const std::vector<double>& values, const Routing& routing = {})
      : model_(model), parameters_(parameters), values_(values), routing_(routing) {}

  Evaluation evaluate(const Batch& batch, std::uint64_t sequences) const;

 private:
  /// One token in one of its experts; nothing when it was dropped.
  struct ExpertState {
    Matrix up, activated, output;
  };
  struct TokenState {
    Matrix input;
    std::vector<double> gates;  ///< by choice
    std::vector<ExpertState> experts;
  };
  /// What a layer keeps for its backward pass: rows are the positions of one sequence.
  struct LayerState {
    Matrix input, normed1, qkv, heads, middle, normed2, up, activated;
    std::vector<Matrix> probabilities;  ///< by query head, queries x keys
    std::vector<TokenState> tokens;     ///< of a mixture of experts
  };
  struct Run {
    const Batch& batch;
    std::uint64_t sequence;
    double weight;  ///< of one token in the loss
    Evaluation& sum;
  };

  Matrix embed(const Run& run) const;
  void embed_backward(const Run& run, const Matrix& dy) const;
  Matrix layer(int layer, const Run& run, LayerState& state) const;
  Matrix layer_backward(int layer, const LayerState& state, const Matrix& dy, const Run& run) const;
  /// Adds to the loss; returns the gradient of the last layer's output.
  Matrix head(const Matrix& output, const Run& run) const;

  void attend(LayerState& state) const;
  Matrix attend_backward(const LayerState& state, const Matrix& d_heads) const;
  /// The MLP, or all experts, from the normed input to the block's output; and back.
  Matrix mlp(int layer, const Run& run, LayerState& state) const;
  Matrix mlp_backward(int layer, const LayerState& state, const Matrix& dy, const Run& run) const;
  Matrix experts(int layer, const Run& run, LayerState& state) const;
  Matrix experts_backward(int layer, const LayerState& state, const Matrix& dy, const Run& run) const;
  Matrix activate(const Matrix& up) const;
  Matrix activate_backward(const Matrix& up, const Matrix& da) const;
  /// Turns the heads of q and k.
  void rotate(Matrix& qkv, int direction) const;
  Matrix norm(int layer, Part gain, Part shift, const Matrix& x) const;
  Matrix norm_backward(int layer, Part gain, Part shift, const Matrix& x, const Matrix& dy,
                       const Run& run) const;
  Matrix linear(int layer, Part weight, Part bias, const Matrix& x) const;
  Matrix linear_backward(int layer, Part weight, Part bias, const Matrix& x, const Matrix& dy,
                         const Run& run) const;
  Matrix get(int layer, Part part, std::uint64_t expert = 0) const {
    return parameters_.get(values_, layer, part, expert);
  }

  const models::TransformerSpec& model_;
  const Parameters& parameters_;
  const std::vector<double>& values_;
  Routing routing_;
};

}  // namespace wafersim::workloads::numeric
