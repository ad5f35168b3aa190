#pragma once

#include "analysis/energy.h"
#include "topology/link_loads.h"
#include "workloads/trace.h"

namespace wafersim::analysis {

/// The energy of a run that is predicted, counted in its trace. All must outlive the call.
struct PredictedEnergyInput {
  const models::HardwareModel& hardware;
  const topology::Mesh& mesh;
  const workloads::Trace& trace;         ///< of all tiles
  const topology::ExpectedLoads& loads;  ///< of an iteration
  Cycle cycles = 0;                      ///< predicted, for static power
  std::uint64_t tokens = 0;              ///< of all iterations
};

/// Equals energy_of() a simulation that takes as many cycles, but for what depends on when things happen: of a class that is
/// split between SRAM and DRAM, what passes through DRAM is that with what a step itself holds besides resident bytes; where
/// routes are drawn or chosen on the way links have their mean load, to the byte; and copies that routers make count as messages
/// of their own.
std::optional<EnergySummary> predicted_energy(const PredictedEnergyInput& input);

}  // namespace wafersim::analysis
