#pragma once

#include "workloads/step_emitter.h"

/// The steps of one transformer layer on one tensor-parallel rank (Shoeybi et al. 2019; with sequence
/// parallelism Korthikanti et al. 2022).
///
/// Who owns the residual stream: a step allocates what it hands on, and the step of the same pass direction
/// that follows takes it over. A layer keeps its input until its own backward step, which frees it; a
/// backward step frees the gradient it was given, or leaves it to the weight gradients' step. Of layers that keep one
/// input together all but the first give theirs up in their forward step. Step after step the memory of a tile so
/// returns to its base.
namespace wafersim::workloads {

/// Where a layer step stands within its stage.
enum class EdgeKind {
  inside,  ///< the neighbour step runs on the same tile
  remote,  ///< the neighbour step runs on another stage: receive or send
  open     ///< there is none (a model without embedding or head): the tensor is made, or dropped, here
};
struct LayerEdges {
  EdgeKind input = EdgeKind::inside;   ///< towards the first layer
  EdgeKind output = EdgeKind::inside;  ///< towards the last layer
  int input_chunk = 0;                 ///< of a remote edge: which chunk of its stage lies before it
  int output_chunk = 0;
  auto operator<=>(const LayerEdges&) const = default;
};

/// Where a layer stands among the layers that keep one input together (full recomputation). Otherwise each is a group of
/// its own.
struct GroupPlace {
  bool first = true;
  bool last = true;
  auto operator<=>(const GroupPlace&) const = default;
};

/// Which tensors stay after they were used in the forward direction.
struct Retention {
  bool layer =
      true;  ///< norms' outputs, q, k, v, attention output, middle of the layer, MLP inputs and outputs
  bool scores = true;  ///< materialized scores
  bool input = true;   ///< of the layer
  bool output = true;  ///< which is the next layer's input
};
/// What a forward step leaves for the backward step under a recompute policy.
Retention forward_retention(models::Recompute recompute, const GroupPlace& place = {});

void emit_layer_forward(StepEmitter& step, const LayerEdges& edges, models::Recompute recompute,
                        const GroupPlace& place = {});
/// The forward pass of a layer once more, from the input that is there: everything stays for its backward step, its
/// output as the input of the next layer.
void emit_layer_recompute(StepEmitter& step);

/// Whether a backward step makes the weight gradients or leaves them to a step of their own (Qi et al. 2023, where
/// the two are called B and W). Gradients of norms are made in the backward step.
enum class WeightGradients { backward_step, own_step };
void emit_layer_backward(StepEmitter& step, const LayerEdges& edges, models::Recompute recompute,
                         WeightGradients weights);
/// The weight gradients that a backward step left out. With sequence parallelism the inputs and the gradients that
/// it kept are shards: they are gathered again.
void emit_layer_weight(StepEmitter& step);

/// Bytes that a layer holds from its forward to its backward step, its input included: for MHA with a 4h GELU
/// MLP and materialized attention Megatron's sbh(10 + 24/t + 5as/(ht)), see Shard::dropout.
Bytes saved_bytes_per_layer(const models::TransformerSpec& model, const Shard& shard,
                            models::Recompute recompute);

/// Bytes that a layer holds from a backward step without weight gradients to the step that makes them: input and
/// output gradient of each product. For MHA with a 4h GELU MLP in 2-byte precision 32 sbh / t with sequence
/// parallelism (Qi et al. 2023, table 1).
Bytes weight_bytes_per_layer(const models::TransformerSpec& model, const Shard& shard);

/// The forward computation from input to output, as the forward step does it and a backward step that
/// recomputes repeats it. Returns the output, newly allocated.
Deps emit_layer_body(StepEmitter& step, const Deps& input, const Retention& keep);

/// FLOPs of the vector engine per element; a transcendental function counts four, as it does by polynomial or
/// table.
namespace vector_flops {
inline constexpr std::uint64_t kLayerNorm = 8;  ///< mean 1, variance 3, normalise 2, scale and shift 2
inline constexpr std::uint64_t kRmsNorm = 4;    ///< square and sum 2, normalise 1, scale 1
inline constexpr std::uint64_t kNormBackward =
    2;  ///< times the forward: two row sums, and gradients of the scale and shift
inline constexpr std::uint64_t kSoftmax =
    6;  ///< maximum, subtraction, exponential as two instructions, sum, division
inline constexpr std::uint64_t kSoftmaxBackward =
    4;  ///< P (dP - sum(P dP)): product, sum, difference, product
inline constexpr std::uint64_t kSoftmaxFromStatistics =
    3;                                      ///< exp(S - L): difference, exponential as two instructions
inline constexpr std::uint64_t kGelu = 12;  ///< cubic argument 5, tanh 4, half (1 + tanh) x 3
inline constexpr std::uint64_t kGeluBackward =
    16;  ///< the forward's argument and tanh, its derivative, times the gradient
inline constexpr std::uint64_t kSwiglu =
    8;  ///< sigmoid 6 (negation, exponential 4, division with addition), two products
inline constexpr std::uint64_t kSwigluBackward =
    12;                                      ///< sigmoid 6, gradients of gate and up by three products each
inline constexpr std::uint64_t kRotary = 3;  ///< two products and one addition per element of q and k
inline constexpr std::uint64_t kResidual = 1;
inline constexpr std::uint64_t kCombine = 2;          ///< an expert's output times its weight, added up
inline constexpr std::uint64_t kCombineBackward = 3;  ///< gradients of the output, 1, and of the weight, a row sum, 2
inline constexpr std::uint64_t kDropout = 2;  ///< mask and scale; the random bits are not counted
}  // namespace vector_flops
std::uint64_t norm_flops(const models::TransformerSpec& model);
/// Of an element of the activated tensor.
std::uint64_t activation_flops(const models::TransformerSpec& model);
std::uint64_t activation_backward_flops(const models::TransformerSpec& model);

/// The tensor of the norm before attention (0) or the MLP (1).
const char* norm_name(int which);

}  // namespace wafersim::workloads
