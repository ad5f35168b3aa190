#include "apps/prepared_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"
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

/// What the baseline of balanced routes carries: messages with the same content are not merged there.
topology::LoadSummary unmerged_loads(const workloads::LoweringInput& input, const std::string& baseline) {
  models::HardwareModel hardware = input.hardware;
  hardware.routing = baseline;
  const workloads::LoweringInput unmerged{input.model,     input.training, input.plan,
                                          input.placement, hardware,       input.mesh};
  return topology::summarize(topology::link_loads(*topology::make_routing(baseline, input.mesh), input.mesh,
                                                  workloads::demands_of(workloads::lower(unmerged).trace)));
}

topology::BalancedRoutes make_routes(const workloads::LoweringInput& input, const workloads::Trace& trace) {
  const std::string& name = input.hardware.routing;
  if (name != kBalanced) return {topology::make_routing(name, input.mesh), {}};
  topology::BalancedRoutes routes = topology::balance_routes(input.mesh, workloads::demands_of(trace));
  if (input.plan.collectives == workloads::Collective::direct) {
    routes.report.before = unmerged_loads(input, routes.report.baseline);
  }
  return routes;
}

topology::BalancedRoutes make_safe_routes(const workloads::LoweringInput& input, const workloads::Trace& trace) {
  const topology::Mesh& mesh = input.mesh;
  topology::BalancedRoutes routes = make_routes(input, trace);
  const std::vector<topology::LinkId> cycle = topology::find_dependency_cycle(*routes.routing, mesh);
  if (cycle.empty()) return routes;
  std::vector<std::string> names;
  for (const topology::LinkId link : cycle) names.push_back(mesh.link_name(link));
  throw PlanError(
      fmt::format("router.routing: {} can deadlock on this mesh: packets on these links may wait for each "
                  "other in a circle: {}",
                  input.hardware.routing, join(names)));
}

}  // namespace

PreparedRun::PreparedRun(const ScenarioArguments& arguments)
    : loaded(config::load_scenario(arguments.path, {arguments.overrides, {}})),
      hardware(models::resolve_hardware(loaded.wafer, loaded.router, loaded.network)),
      mesh(loaded.wafer.mesh),
      mapping(choose_mapping(loaded, hardware, mesh)),
      scenario(with_plan(loaded, mapping.plan)),
      plan(workloads::lower(lowering_input(scenario, hardware, mesh))),
      routes(make_safe_routes(lowering_input(scenario, hardware, mesh), plan.trace)) {
  workloads::check_routes(plan.trace, mesh, routing());
}

report::LoadReports PreparedRun::loads() const {
  report::LoadReports reports;
  reports.mapping = mapping.report;
  if (hardware.routing == kBalanced) reports.routing = routes.report;
  reports.streams = workloads::stream_report(scenario.model, scenario.training, scenario.plan);
  return reports;
}

std::uint64_t live_tiles(const topology::Mesh& mesh) {
  std::uint64_t count = 0;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) count += mesh.alive(tile) ? 1 : 0;
  return count;
}

}  // namespace wafersim::apps
