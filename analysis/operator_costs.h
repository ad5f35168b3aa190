#pragma once

#include <optional>
#include <vector>

#include "analysis/replay_memory.h"
#include "analysis/step_costs.h"
#include "workloads/lowering.h"

namespace wafersim::analysis {

/// The operators of a layer one behind the other, each with one of several degrees of tp and tatp, and what that costs: cycles of
/// a layer and microbatch.
struct OperatorChain {
  using Costs = std::vector<std::optional<Cycle>>;  ///< by option; nothing: the operator cannot have these degrees
  std::vector<workloads::OperatorDegrees> options;  ///< the first is the plan's own, that of the residual stream between layers
  std::vector<Costs> operators;                     ///< forward and backward pass of each alone, in order
  /// What it costs to bring the residual stream from options[i] to options[j], and its gradient back, in all passes.
  std::vector<std::vector<Cycle>> reshard;

  /// Of one option for each operator; nothing where one of them cannot have it.
  std::optional<Cycle> cost(const std::vector<std::size_t>& chosen) const;
};

/// The cheapest options of a chain that begins and ends with the plan's own degrees, by dynamic programming over the operators:
/// the cheapest way to an option of an operator goes over one of the options of the operator before it. Among equals the first.
/// Time: operators x options^2.
struct ChosenOperators {
  std::vector<std::size_t> options;  ///< by operator
  Cycle cost = 0;
};
ChosenOperators cheapest(const OperatorChain& chain);

/// On what operators are played.
struct OperatorGround {
  const topology::RoutingPolicy& routing;
  CostModel model = CostModel::alpha_beta_contention;
  std::uint64_t seed = 1;
  ReplayMemory* memory = nullptr;  ///< of plays on the same machine, routes, cost model and seed; may be null
};

/// Attention and MLP of a plan: every division of its model group into tp and tatp that is valid for an operator, each played
/// alone on idle tiles by the analytic model (docs/search.md, "Operators"). `input` is a valid plan whose operators have its
/// own degrees.
OperatorChain operator_chain(const workloads::LoweringInput& input, const workloads::Mapping& mapping,
                             const OperatorGround& ground);

}  // namespace wafersim::analysis
