#include "apps/commands.h"
#include "apps/console.h"
#include "apps/prepared_run.h"
#include "apps/routes.h"
#include "report/topology_report.h"
#include "topology/network_facts.h"
#include "workloads/trace_demands.h"

namespace wafersim::apps {
namespace {

/// Prints what is known of a network and its traffic.
ExitStatus examine(const TopologyArguments& arguments, const config::Scenario& scenario,
                   const models::HardwareModel& hardware, const topology::Mesh& mesh,
                   const topology::Demands& demands) {
  const auto policy = topology::make_routing_policy(hardware.routing, mesh, demands);
  const topology::NetworkFacts facts =
      topology::network_facts(*policy, mesh, static_cast<unsigned>(hardware.virtual_channels), demands);
  std::vector<models::LinkModel> links;
  for (const topology::LinkClass& link_class : mesh.link_classes()) links.push_back(hardware.link(link_class));
  const report::TopologyReport report{scenario.name, mesh, std::move(links), hardware.clock, facts};
  print(arguments.json ? report::topology_json(report) : report::topology_text(report));
  const bool safe = facts.dependencies.acyclic();
  if (!safe) print_error(deadlock_text(*policy, facts.dependencies, mesh));
  if (!facts.blocked.empty()) print_error(facts.blocked);
  return safe && facts.blocked.empty() ? ExitStatus::done : ExitStatus::plan;
}

}  // namespace

ExitStatus topology_command(const TopologyArguments& arguments) {
  const config::Scenario scenario =
      config::load_scenario(arguments.scenario.path, {arguments.scenario.overrides, {}});
  if (!scenario.has_model()) {
    const models::HardwareModel hardware =
        models::resolve_hardware(scenario.wafer, scenario.router, scenario.network);
    return examine(arguments, scenario, hardware, topology::Mesh(models::mesh_spec(scenario.wafer)), {});
  }
  const PreparedPlan plan(arguments.scenario);
  return examine(arguments, plan.scenario, plan.hardware, plan.mesh, workloads::demands_of(plan.plan.trace));
}

}  // namespace wafersim::apps
