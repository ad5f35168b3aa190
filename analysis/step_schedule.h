#pragma once

#include <vector>

#include "analysis/step_costs.h"
#include "analysis/summary.h"

namespace wafersim::analysis {

/// When the steps of an iteration end, by their costs alone.
struct Prediction {
  Cycle cycles = 0;                   ///< length of the run
  std::vector<Cycle> iteration_ends;  ///< by iteration, background steps included
  Breakdown breakdown;
};

/// Follows the programs of all stages of one replica, step by step: a step starts when those that it waits for have ended and
/// what other stages send has arrived. The other replicas do the same at the same time. Time: the steps of one replica's stages.
Prediction predict(StepCosts& costs, const workloads::Trace& trace);

}  // namespace wafersim::analysis
