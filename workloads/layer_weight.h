#pragma once

#include <optional>

#include "workloads/layer.h"

namespace wafersim::workloads {

/// The weight gradients of a layer, block by block: attention (0) or MLP (1), numbered as their norms. A block is two
/// products around an inner one: X -> up or q, k, v -> ... -> output. Used by a backward step that makes them itself
/// and by steps of their own.

/// The gradient of a block's output, the dY of its second product: a tensor of the residual stream's shape. Where
/// there is dropout it has a buffer of its own, otherwise it is the gradient of the residual stream itself.
std::string block_gradient_name(const StepEmitter& step, int which);

/// What the products of a block wait for.
struct WeightOperands {
  Deps output{};      ///< the gradient of the block's output is there, gathered
  Deps input{};       ///< the norm's output is there, gathered
  Deps inner{};       ///< the gradient of the first product's output is there
  Deps inner_used{};  ///< nobody else reads that gradient any more
  bool kept = false;  ///< gradients were kept from an earlier step
  std::optional<Deps> second{};  ///< the second product's gradient has been made already
};

/// dW of a block's two weights. Frees what only they still need: the second product's input and the gradient of the
/// first one's output. Returns both products.
Deps emit_mlp_weight_gradients(StepEmitter& step, const WeightOperands& ready);
Deps emit_attention_weight_gradients(StepEmitter& step, const WeightOperands& ready);

/// The gradients of the output bias of a block, with parallel residuals of both, from the tokens of the rank's residual
/// stream. None without biases.
Deps emit_bias_gradients(StepEmitter& step, int which, const Deps& after, bool gradient_kept);

/// Frees a norm's output that was gathered again, and its saved shard.
void release_saved_norm(StepEmitter& step, int which, const Deps& after);

}  // namespace wafersim::workloads
