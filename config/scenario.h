#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/hardware.h"
#include "models/transformer.h"
#include "workloads/kernel_spec.h"
#include "workloads/plan.h"
#include "workloads/streamed_collective.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::config {

/// One scenario, resolved: presets included, overrides applied, defaults filled in.
struct Scenario {
  std::string name;
  models::WaferSpec wafer;
  models::RouterSpec router;
  models::NetworkSpec network;
  models::TransformerSpec model;
  workloads::TrainingSpec training;
  workloads::PlanSpec plan;
  workloads::PlacementSpec placement;
  std::optional<workloads::TrafficSpec> traffic;  ///< for the network alone
  std::optional<workloads::CollectiveSpec> collective;
  std::optional<workloads::KernelSpec> kernel;
  std::uint64_t seed = 1;

  /// There is a model to train; a scenario with `traffic`, `collective` or `kernel` may do without.
  bool has_model() const { return model.layers > 0; }
};

struct LoadOptions {
  std::vector<std::string> overrides;  ///< "wafer.link.bandwidth=2 TB/s", applied after the file
  std::string scenario_root;  ///< directory that holds hardware/ and models/; empty = found by itself
};

/// Reads a scenario file. Throws ScenarioError with all problems of the file and its overrides, IoError when
/// it cannot be read.
Scenario load_scenario(const std::string& path, const LoadOptions& options = {});
/// Reads the text of a scenario as if it stood in the file `path`, which is not looked at.
Scenario parse_scenario(const std::string& text, const std::string& path, const LoadOptions& options = {});

/// The resolved scenario as YAML that load_scenario reads back to the same value, without presets.
std::string to_yaml(const Scenario& scenario);
/// The same tree as JSON text.
std::string to_json(const Scenario& scenario);
/// What of it matters to `wafersim traffic`: all but collective, kernel, model, training, plan and placement.
std::string traffic_json(const Scenario& scenario);
/// What of it matters to `wafersim collective`: the same, with collective instead of traffic.
std::string collective_json(const Scenario& scenario);
/// What of it matters to `wafersim kernel`: likewise.
std::string kernel_json(const Scenario& scenario);
std::string pattern_name(workloads::SyntheticPattern pattern);
std::string word(models::Fidelity fidelity);
std::string word(workloads::StreamedKind kind);
std::string word(workloads::StreamedAlgorithm algorithm);
std::string word(workloads::StreamRelay relay);

}  // namespace wafersim::config
