#include "apps/prepared_run.h"

#include <algorithm>

#include "apps/refuse.h"
#include "apps/routes.h"
#include "base/error.h"
#include "workloads/check_routes.h"
#include "workloads/trace_demands.h"

namespace wafersim::apps {
namespace {

constexpr const char* kBalanced = "balanced";

/// The routes on which a mapping is judged. Balanced ones need the traffic of a mapping that is not there
/// yet: the search then takes those that they are made from.
std::unique_ptr<topology::Routing> search_routing(const std::string& name, const topology::Mesh& mesh) {
  if (name != kBalanced) return topology::make_routing(name, mesh);
  return topology::make_routing(mesh.has_faults() ? "table" : "xy", mesh);
}

bool is_open(const workloads::PlanSpec& plan) {
  return std::any_of(plan.mapping.begin(), plan.mapping.end(), [](const auto& entry) {
    return entry.second.placement == workloads::Placement::optimized;
  });
}

workloads::LoweringInput lowering_input(const config::Scenario& scenario,
                                        const models::HardwareModel& hardware, const topology::Mesh& mesh) {
  return {scenario.model, scenario.training, scenario.plan, scenario.placement, hardware, mesh};
}

workloads::MappingChoice choose_mapping(const config::Scenario& scenario,
                                        const models::HardwareModel& hardware, const topology::Mesh& mesh) {
  if (!is_open(scenario.plan)) return {scenario.plan, std::nullopt};
  const std::unique_ptr<topology::Routing> routing = search_routing(hardware.routing, mesh);
  return workloads::choose_mapping(lowering_input(scenario, hardware, mesh), *routing);
}

config::Scenario with_plan(config::Scenario scenario, const workloads::PlanSpec& plan) {
  scenario.plan = plan;
  return scenario;
}

topology::BalancedRoutes make_routes(const std::string& name, const topology::Mesh& mesh,
                                     const workloads::Trace& trace) {
  if (name == kBalanced) return topology::balance_routes(mesh, workloads::demands_of(trace));
  return {topology::make_routing(name, mesh), {}};
}

topology::BalancedRoutes make_safe_routes(const std::string& name, const topology::Mesh& mesh,
                                          const workloads::Trace& trace) {
  topology::BalancedRoutes routes = make_routes(name, mesh, trace);
  check_deadlock_free(name, *routes.routing, mesh);
  return routes;
}

config::Scenario load_with_model(const ScenarioArguments& arguments) {
  config::Scenario scenario = config::load_scenario(arguments.path, {arguments.overrides, {}});
  if (scenario.has_model()) return scenario;
  refuse(arguments.path, "model", "missing; only `wafersim traffic` does without a model");
}

}  // namespace

PreparedRun::PreparedRun(const ScenarioArguments& arguments)
    : loaded(load_with_model(arguments)),
      hardware(models::resolve_hardware(loaded.wafer, loaded.router, loaded.network)),
      mesh(loaded.wafer.mesh),
      mapping(choose_mapping(loaded, hardware, mesh)),
      scenario(with_plan(loaded, mapping.plan)),
      plan(workloads::lower(lowering_input(scenario, hardware, mesh))),
      routes(make_safe_routes(hardware.routing, mesh, plan.trace)) {
  workloads::check_routes(plan.trace, mesh, routing());
}

report::LoadReports PreparedRun::loads() const {
  report::LoadReports reports;
  reports.mapping = mapping.report;
  if (hardware.routing == kBalanced) reports.routing = routes.report;
  return reports;
}

std::uint64_t live_tiles(const topology::Mesh& mesh) {
  std::uint64_t count = 0;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) count += mesh.alive(tile) ? 1 : 0;
  return count;
}

}  // namespace wafersim::apps
