#include "apps/prepared_run.h"

#include <algorithm>

#include "apps/refuse.h"
#include "apps/routes.h"
#include "base/error.h"
#include "topology/routing.h"
#include "workloads/check_routes.h"
#include "workloads/trace_demands.h"

namespace wafersim::apps {
namespace {

constexpr const char* kBalanced = "balanced";

/// Whether routes under a policy of this name are a function of place and destination.
bool is_fixed(const std::string& routing) {
  const std::vector<std::string>& fixed = topology::routing_names();
  return std::find(fixed.begin(), fixed.end(), routing) != fixed.end();
}

/// The routes on which a mapping is judged. Balanced ones need the traffic of a mapping that is not there
/// yet, and those of other policies are not known before the run: the search then takes `xy`, with faults
/// `table`.
std::unique_ptr<topology::Routing> search_routing(const std::string& name, const topology::Mesh& mesh) {
  if (name != kBalanced && is_fixed(name)) return topology::make_routing(name, mesh);
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
                                                  workloads::demands_of(workloads::lower(unmerged).trace)),
                             input.mesh);
}

}  // namespace

workloads::MappingChoice choose_mapping(const workloads::LoweringInput& input) {
  if (!is_open(input.plan)) return {input.plan, std::nullopt};
  const std::unique_ptr<topology::Routing> routing = search_routing(input.hardware.routing, input.mesh);
  return workloads::choose_mapping(input, *routing);
}

Routes make_routes(const workloads::LoweringInput& input, const workloads::Trace& trace) {
  if (input.hardware.routing != kBalanced) return {make_safe_routing(input.hardware, input.mesh), std::nullopt};
  topology::BalancedRoutes routes = topology::balance_routes(input.mesh, workloads::demands_of(trace));
  check_deadlock_free(input.hardware, *routes.routing, input.mesh);
  if (input.plan.collectives == workloads::Collective::direct) {
    routes.report.before = unmerged_loads(input, routes.report.baseline);
  }
  return {std::move(routes.routing), std::move(routes.report)};
}

config::Scenario load_with_model(const ScenarioArguments& arguments) {
  config::Scenario scenario = config::load_scenario(arguments.path, {arguments.overrides, {}});
  if (scenario.has_model()) return scenario;
  refuse(arguments.path, "model", "missing; only `wafersim traffic`, `collective`, `kernel` and `topology` do without a model");
}

PreparedPlan::PreparedPlan(const ScenarioArguments& arguments)
    : loaded(load_with_model(arguments)),
      hardware(models::resolve_hardware(loaded.wafer, loaded.router, loaded.network)),
      mesh(models::mesh_spec(loaded.wafer)),
      mapping(choose_mapping(lowering_input(loaded, hardware, mesh))),
      scenario(with_plan(loaded, mapping.plan)),
      plan(workloads::lower(lowering_input(scenario, hardware, mesh))) {}

PreparedRun::PreparedRun(const ScenarioArguments& arguments)
    : PreparedPlan(arguments), routes(make_routes(lowering_input(scenario, hardware, mesh), plan.trace)) {
  workloads::check_routes(plan.trace, mesh, routing());
}

report::LoadReports PreparedRun::loads() const {
  report::LoadReports reports;
  reports.mapping = mapping.report;
  reports.routing = routes.report;
  reports.streams = workloads::stream_report(scenario.model, scenario.training, scenario.plan);
  return reports;
}

}  // namespace wafersim::apps
