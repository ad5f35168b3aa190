#include "apps/commands.h"
#include "apps/console.h"
#include "apps/prepared_run.h"
#include "apps/routes.h"
#include "report/topology_report.h"
#include "topology/network_facts.h"
#include "workloads/trace_demands.h"

namespace wafersim::apps {

ExitStatus topology_command(const TopologyArguments& arguments) {
  const PreparedPlan plan(arguments.scenario);
  const topology::Demands demands = workloads::demands_of(plan.plan.trace);
  const auto policy = topology::make_routing_policy(plan.hardware.routing, plan.mesh, demands);
  const topology::NetworkFacts facts = topology::network_facts(
      *policy, plan.mesh, static_cast<unsigned>(plan.hardware.virtual_channels), demands);
  const report::TopologyReport report{plan.scenario.name, plan.mesh, plan.hardware.link_bytes_per_cycle,
                                      plan.hardware.clock, facts};
  print(arguments.json ? report::topology_json(report) : report::topology_text(report));
  const bool safe = facts.dependencies.acyclic();
  if (!safe) print_error(deadlock_text(*policy, facts.dependencies, plan.mesh));
  if (!facts.blocked.empty()) print_error(facts.blocked);
  return safe && facts.blocked.empty() ? ExitStatus::done : ExitStatus::plan;
}

}  // namespace wafersim::apps
