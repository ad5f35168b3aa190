#pragma once

#include <vector>

#include "analysis/step_costs.h"
#include "analysis/summary.h"
#include "workloads/lowering.h"

namespace wafersim::analysis {

/// When the steps of an iteration end, by their costs alone.
struct Prediction {
  Cycle cycles = 0;                   ///< length of the run
  std::vector<Cycle> iteration_ends;  ///< by iteration, background steps included
  Breakdown breakdown;
};

/// The same of a plan that is not lowered: of its stages only those tiles are that something has to be played on, which makes
/// no difference to the result. Where links or tiles differ from place to place, that is all of them. Throws as
/// workloads::lower.
Prediction predict(const workloads::LoweringInput& input, const workloads::Mapping& mapping,
                   const topology::RoutingPolicy& routing, CostModel model, std::uint64_t seed = 1);

/// Follows the programs of all stages of one replica, step by step: a step starts when those that it waits for have ended and
/// what other stages send has arrived. The other replicas do the same at the same time. Time: the steps of one replica's
/// stages.
Prediction predict(StepCosts& costs, const workloads::Trace& trace);

}  // namespace wafersim::analysis
