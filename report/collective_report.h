#pragma once

#include <optional>
#include <string>

#include "sim/measurements.h"
#include "topology/mesh.h"

namespace wafersim::report {

/// What `wafersim collective` reports. References must outlive it.
struct CollectiveReport {
  std::string name;           ///< of the scenario
  std::string scenario_json;  ///< its sections that matter
  std::string kind, algorithm, relay;  ///< as a scenario writes them
  topology::Shape shape;
  std::optional<int> row_group, column_group;  ///< of two_phase
  Bytes bytes = 0;            ///< of the vector
  Cycle model_cycles = 0;
  std::optional<Cycle> reduce_bound_cycles;
  double seconds = 0;
  std::string fidelity;
  const topology::Mesh& mesh;
  const sim::Measurements& measurements;
};

/// Keys: docs/results.md, "Streamed collectives".
std::string collective_json(const CollectiveReport& report);
/// For people.
std::string collective_text(const CollectiveReport& report);

}  // namespace wafersim::report
