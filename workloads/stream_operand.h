#pragma once

#include <array>
#include <optional>
#include <string>

#include "models/transformer.h"
#include "workloads/plan.h"

/// Which operand of the products of a layer travels along the tensor-stream line. The products come in pairs: attention
/// (0: q, k and v, then the output) and MLP (1: up, then down), numbered as their norms.
namespace wafersim::workloads {

inline constexpr int kPairs = 2;

/// Bytes that all tiles of a replica send over tatp in forward and backward pass of a pair for one microbatch, by what
/// travels (docs/model-costs.md, "Which operand travels"). Exact but for heads that are exchanged for tokens, which count
/// as dealt evenly.
struct StreamVolumes {
  Bytes weights = 0;  ///< with what attention then exchanges
  std::optional<Bytes> inputs{};  ///< nothing for experts, whose weights always travel
};
StreamVolumes stream_volumes(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                             int pair);

/// Why the inputs of a pair cannot travel, with the nearest valid value; empty when they can.
std::string stream_inputs_fault(const models::TransformerSpec& model, const PlanSpec& plan, int pair);

/// Whether the inputs of a pair's products travel over tatp and each rank keeps its part of the weights, as an inner
/// tensor-parallel rank; otherwise the weights do, as those of experts always. With `auto` what moves fewer bytes, and
/// weights when equal.
bool streams_inputs(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan, int pair);
/// By pair.
std::array<bool, kPairs> streamed_inputs(const models::TransformerSpec& model, const TrainingSpec& training,
                                         const PlanSpec& plan);

/// What travels for each pair, and by what `auto` decides.
struct StreamReport {
  std::array<bool, kPairs> inputs{};
  std::array<StreamVolumes, kPairs> volumes{};
};
/// Nothing without tensor streams.
std::optional<StreamReport> stream_report(const models::TransformerSpec& model, const TrainingSpec& training,
                                          const PlanSpec& plan);

/// What the tensor-stream ranks exchange for attention; nothing where each has all tokens of its line.
std::optional<StreamAttention> line_attention(const models::TransformerSpec& model, const TrainingSpec& training,
                                              const PlanSpec& plan);

/// Key and value heads stand on several ranks, because there are fewer than ranks that cut the heads.
bool replicates_kv_heads(const models::TransformerSpec& model, const PlanSpec& plan, bool attention_inputs);

}  // namespace wafersim::workloads
