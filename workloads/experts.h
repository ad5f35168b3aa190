#pragma once

#include "workloads/layer.h"
#include "workloads/layer_weight.h"

/// The MLP of a layer as a mixture of experts (Shazeer et al. 2017, GShard): a router chooses `top_k` experts
/// for each token; tokens go to the ranks of their experts (ep) and the experts' outputs come back, all to
/// all, to be summed with the router's weights. Which expert a choice goes to is fixed (expert_rows.h), how
/// much it weighs is computed. An expert is cut over tp and its weights stream over tatp as those of one MLP
/// do.
namespace wafersim::workloads {

/// The router on the tokens of the rank's residual stream, whose normed values are there after `normed`:
/// logits and the softmax over each token's choices, both fp32. With sequence parallelism those of all tokens
/// that the rank works on are gathered. Returns when they are there.
Deps emit_router(StepEmitter& step, const Deps& normed, const Retention& keep);

/// What the caller of a block needs to know.
struct ExpertOutput {
  Deps input_used;  ///< the normed (and gathered) input is not needed any more
  Deps partial;     ///< the rank's part of tensor `sum` is there
};
/// From the normed (and gathered) tokens, there after `normed`, to the partial sums `sum` over tp of all
/// tokens that the rank works on. `add_to`: unless empty, the sums are added to what is there after it.
ExpertOutput emit_experts(StepEmitter& step, const Deps& normed, const Deps& gates, const std::string& sum,
                          const Retention& keep, const Deps& add_to);

/// What is there after the input gradients.
struct ExpertGradient {
  Deps partial;      ///< the rank's part of the gradient of the normed input, tensor `result`
  Deps output_used;  ///< the gradient of the block's output has been read
  Deps inner;        ///< the gradients of the experts' first products
  Deps router;       ///< the router's weight gradient
};
/// The gradient of a block's output is there after `after`, gathered; `output_traffic` is that of reading it.
/// The router's gradients are made here, even where weights have a step of their own, and its saved input is
/// freed. The gradients of the experts' outputs and first products stay for the weight gradients.
ExpertGradient emit_expert_input_gradients(StepEmitter& step, const std::string& gradient,
                                           const Traffic& output_traffic, const Deps& after,
                                           const std::string& result, bool split);

/// dW of the rank's experts. Frees what only they still need: inputs, activations and output gradients.
Deps emit_expert_weight_gradients(StepEmitter& step, const WeightOperands& ready);

/// Bytes that the MLP of a layer holds from the forward to the backward step, besides the norm's output, and
/// from a backward step without weight gradients to their own.
Bytes saved_expert_bytes(const models::TransformerSpec& model, const Shard& shard);
Bytes weight_expert_bytes(const Shard& shard);

/// Names of tensors. A row of an expert's tensors is a slot, see expert_rows.h; one of the router's is a
/// token.
namespace tensors {
inline constexpr const char* kLogits = "router.logits";
inline constexpr const char* kLogitsGradient = "router.logits.gradient";
inline constexpr const char* kGates = "router.gates";  ///< a column for each choice
inline constexpr const char* kGatesGradient = "router.gates.gradient";
inline constexpr const char* kRouterInputGradient = "router.input.gradient";
inline constexpr const char* kExpertInput = "experts.input";
inline constexpr const char* kExpertInputGradient = "experts.input.gradient";
inline constexpr const char* kExpertUp = "experts.up";
inline constexpr const char* kExpertUpGradient = "experts.up.gradient";
inline constexpr const char* kExpertActivated = "experts.activated";
inline constexpr const char* kExpertActivatedGradient = "experts.activated.gradient";
inline constexpr const char* kExpertOutput = "experts.output";
inline constexpr const char* kExpertOutputGradient = "experts.output.gradient";
}  // namespace tensors

/// What the files of this header share: sizes of the tensors above, as a rank sees them.
struct ExpertSizes {
  explicit ExpertSizes(const StepEmitter& step);

  std::uint64_t experts = 0;  ///< of all ranks
  std::uint64_t choices = 0;  ///< of a token
  std::uint64_t kept = 0;     ///< choices of the rank's tokens that are not dropped
  std::uint64_t rows = 0;     ///< of one expert, from all ranks
  std::uint64_t slots = 0;    ///< of all experts, for the rank's tokens: as many as its experts have rows
  Bytes element = 2;
  Bytes row_bytes(std::uint64_t width) const { return rows * width * element; }
  Bytes slot_bytes(std::uint64_t width) const { return slots * width * element; }
};

/// The gates, or their gradients, are fp32.
inline constexpr Bytes kGateBytes = 4;

/// All experts' rows of the rank's tokens, and all rows of the rank's experts.
Views own_slots(StepEmitter& step, const std::string& tensor);
Views own_experts(StepEmitter& step, const std::string& tensor, const Range& columns);

/// All to all over ep, hidden wide: from own_slots() to the rows of each rank's experts, or back.
enum class ExpertExchange { to_experts, to_tokens };
Deps emit_expert_exchange(StepEmitter& step, ExpertExchange direction, const std::string& tensor,
                          const Deps& after);

}  // namespace wafersim::workloads
