#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/energy.h"
#include "models/hardware.h"
#include "sim/measurements.h"
#include "topology/mesh.h"

namespace wafersim::analysis {

/// The energy of a run, of those parts that have a figure (models::EnergySpec).
struct EnergySummary {
  struct Part {
    models::EnergyPart part = models::EnergyPart::matrix;
    double joules = 0;
  };
  std::vector<Part> parts;                         ///< in the order of EnergyPart
  std::vector<models::EnergyPart> not_modelled;    ///< the machine has them, but no figure, or the network was not simulated
  double joules = 0;                               ///< sum of the parts, in their order
  double unused_tiles_joules = 0;                  ///< of these, in routers and links of tiles that run nothing
  std::optional<double> watts;                     ///< absent for a run of no time
  std::optional<double> joules_per_token;          ///< absent when iterations are incomplete
  std::vector<double> tiles;                       ///< by used tile, links counted at the tile that they leave
  std::vector<double> links;                       ///< by live link; empty when links are not modelled

  /// Absent when it is not modelled.
  std::optional<double> of(models::EnergyPart part) const;
};

/// What energy is counted from, in whole FLOPs and bytes.
struct EnergyInput {
  const models::HardwareModel& hardware;
  const topology::Mesh& mesh;
  std::span<const sim::TileMeasurement> tiles;  ///< used tiles, ascending
  std::span<const sim::LinkMeasurement> links;  ///< those that carried something at least
  Cycle cycles = 0;
  bool network = true;                          ///< false: nobody knows what links carried
  std::uint64_t tokens = 0;                     ///< 0: of incomplete iterations
};

/// Nothing when no part has a figure. Counts are summed as integers, then multiplied by the figure as the nearest double, so
/// equal counts give equal bits (docs/model.md, "Energy").
std::optional<EnergySummary> energy_of(const EnergyInput& input);

}  // namespace wafersim::analysis
