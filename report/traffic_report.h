#pragma once

#include <optional>
#include <string>

#include "analysis/ideal_saturation.h"
#include "analysis/load_sweep.h"

namespace wafersim::report {

/// What `wafersim traffic` reports.
struct TrafficReport {
  std::string name;           ///< of the scenario
  std::string scenario_json;  ///< its sections that matter
  std::string pattern;
  std::string mesh;
  std::optional<analysis::IdealSaturation> ideal;  ///< absent for recorded traces
  std::optional<analysis::LoadPoint> point;        ///< of traffic.load
  std::optional<analysis::LoadSweep> sweep;        ///< instead
};

/// Keys: docs/results.md, "Synthetic traffic".
std::string traffic_json(const TrafficReport& report);
/// One row per load.
std::string traffic_csv(const TrafficReport& report);
/// For people.
std::string traffic_text(const TrafficReport& report);

}  // namespace wafersim::report
