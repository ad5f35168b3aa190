#pragma once

#include <array>
#include <vector>

#include "analysis/step_costs.h"

namespace wafersim::analysis {

/// Cycles of the used tiles by cause, summed over them; they add up to tiles times cycles.
struct PredictedCauses {
  double compute = 0;
  std::array<double, workloads::kAxes> exposed{};
  double bubble = 0;
  double memory_stall = 0;
  double idle = 0;
};

/// When the steps of an iteration end, by their costs alone.
struct Prediction {
  Cycle cycles = 0;                   ///< length of the run
  std::vector<Cycle> iteration_ends;  ///< by iteration, background steps included
  std::size_t tiles = 0;
  PredictedCauses causes;
};

/// Follows the programs of all stages of one replica, step by step: a step starts when those that it waits for have ended and
/// what other stages send has arrived. The other replicas do the same at the same time. Time: the steps of one replica's stages.
Prediction predict(StepCosts& costs, const workloads::Trace& trace);

}  // namespace wafersim::analysis
