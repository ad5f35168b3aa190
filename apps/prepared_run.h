#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/command_line.h"
#include "config/scenario.h"
#include "models/hardware.h"
#include "report/load_reports.h"
#include "topology/mesh.h"
#include "topology/balanced_routing.h"
#include "topology/routing_policy.h"
#include "workloads/lowering.h"
#include "workloads/mapping_search.h"

namespace wafersim::apps {

/// A scenario taken to its trace: loaded, resolved, mapped and lowered. Its parts refer to each other, so it
/// stays where it was made.
struct PreparedPlan {
  /// Throws as config::load_scenario, models::resolve_hardware, workloads::choose_mapping and
  /// workloads::lower do.
  explicit PreparedPlan(const ScenarioArguments& arguments);
  PreparedPlan(const PreparedPlan&) = delete;
  PreparedPlan& operator=(const PreparedPlan&) = delete;

  const config::Scenario loaded;  ///< as written
  const models::HardwareModel hardware;
  const topology::Mesh mesh;
  const workloads::MappingChoice mapping;
  const config::Scenario scenario;  ///< `loaded` with what was chosen of its mapping
  const workloads::LoweredPlan plan;
};

struct Routes {
  std::unique_ptr<topology::RoutingPolicy> policy;
  std::optional<topology::RoutingReport> report;  ///< of `balanced`
};

/// Places the axes that are left open (workloads::choose_mapping), on the routes of the hardware as far as these are known before
/// the traffic is. Throws PlanError.
workloads::MappingChoice choose_mapping(const workloads::LoweringInput& input);
/// The routes of the hardware for this traffic. Throws as topology::make_routing_policy does, and PlanError when packets could
/// deadlock.
Routes make_routes(const workloads::LoweringInput& input, const workloads::Trace& trace);
/// A scenario that has a model; throws as config::load_scenario does, and ScenarioError when it has none.
config::Scenario load_with_model(const ScenarioArguments& arguments);

/// A scenario that can be simulated: with its routes.
struct PreparedRun : PreparedPlan {
  /// Throws as PreparedPlan and topology::make_routing_policy do, and PlanError when packets could deadlock on
  /// this routing, with the links of the cycle.
  explicit PreparedRun(const ScenarioArguments& arguments);

  const Routes routes;

  const topology::RoutingPolicy& routing() const { return *routes.policy; }
  report::LoadReports loads() const;
};

}  // namespace wafersim::apps
