#pragma once

#include <memory>
#include <string>

#include "apps/command_line.h"
#include "config/scenario.h"
#include "models/hardware.h"
#include "report/load_reports.h"
#include "topology/mesh.h"
#include "topology/routing.h"
#include "workloads/lowering.h"
#include "workloads/mapping_search.h"

namespace wafersim::apps {

/// A scenario taken to where it can be simulated: loaded, resolved, mapped and lowered, with its routes. Its
/// parts refer to each other, so it stays where it was made.
struct PreparedRun {
  /// Throws as config::load_scenario, models::resolve_hardware, topology::make_routing,
  /// workloads::choose_mapping and workloads::lower do, and PlanError when the routing could deadlock, with
  /// the links of the cycle.
  explicit PreparedRun(const ScenarioArguments& arguments);
  PreparedRun(const PreparedRun&) = delete;
  PreparedRun& operator=(const PreparedRun&) = delete;

  const config::Scenario loaded;  ///< as written
  const models::HardwareModel hardware;
  const topology::Mesh mesh;
  const workloads::MappingChoice mapping;
  const config::Scenario scenario;  ///< `loaded` with what was chosen of its mapping
  const workloads::LoweredPlan plan;
  const topology::BalancedRoutes routes;  ///< the report is that of `balanced` only

  const topology::Routing& routing() const { return *routes.routing; }
  report::LoadReports loads() const;
};

/// Live tiles of the mesh.
std::uint64_t live_tiles(const topology::Mesh& mesh);

}  // namespace wafersim::apps
