#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/critical_path.h"
#include "analysis/hot_flows.h"
#include "analysis/summary.h"
#include "models/hardware.h"
#include "report/load_reports.h"
#include "sim/measurements.h"
#include "topology/mesh.h"
#include "workloads/mapping.h"
#include "workloads/plan.h"

namespace wafersim::report {

/// Raised whenever a key of summary.json changes its name or meaning.
inline constexpr int kSchemaVersion = 1;

/// All that the results of a run are written from. References must outlive the context.
struct RunContext {
  std::string name;           ///< of the scenario
  std::string scenario_json;  ///< the resolved scenario as JSON text (config::to_json)
  const workloads::PlanSpec& plan;
  const workloads::TrainingSpec& training;
  const workloads::Mapping& mapping;
  const models::HardwareModel& hardware;
  const topology::Mesh& mesh;
  const sim::Measurements& measurements;
  const analysis::RunSummary& summary;
  LoadReports loads = {};
  /// Of runs whose critical path is recorded, with the trace that names its steps.
  std::optional<analysis::PathSummary> path = {};
  const workloads::Trace* trace = nullptr;
  std::vector<analysis::LinkFlows> flows = {};  ///< across the hottest links; of runs whose activity is recorded
};

/// summary.json: indented JSON text with a final newline. Keys stand in a fixed order and numbers in their
/// shortest form that reads back exactly, so two runs of one scenario differ in the `engine` block only.
std::string summary_text(const RunContext& run);

}  // namespace wafersim::report
