#pragma once

#include <memory>
#include <string>

#include "apps/command_line.h"
#include "config/scenario.h"
#include "models/hardware.h"
#include "topology/mesh.h"
#include "topology/routing.h"
#include "workloads/lowering.h"

namespace wafersim::apps {

/// A scenario taken to where it can be simulated: loaded, resolved and lowered. Its parts refer to each
/// other, so it stays where it was made.
struct PreparedRun {
  /// Throws as config::load_scenario, models::resolve_hardware, topology::make_routing and workloads::lower
  /// do, and PlanError when the routing could deadlock, with the links of the cycle.
  explicit PreparedRun(const ScenarioArguments& arguments);
  PreparedRun(const PreparedRun&) = delete;
  PreparedRun& operator=(const PreparedRun&) = delete;

  const config::Scenario scenario;
  const models::HardwareModel hardware;
  const topology::Mesh mesh;
  const std::unique_ptr<const topology::Routing> routing;
  const workloads::LoweredPlan plan;
};

/// Live tiles of the mesh.
std::uint64_t live_tiles(const topology::Mesh& mesh);

}  // namespace wafersim::apps
