#include "apps/planless_run.h"

#include <fmt/format.h>

#include "apps/interrupt.h"
#include "apps/refuse.h"
#include "apps/routes.h"
#include "sim/simulation.h"

namespace wafersim::apps {
namespace {

config::Scenario load(const ScenarioArguments& arguments, const std::string& section) {
  config::Scenario scenario = config::load_scenario(arguments.path, {arguments.overrides, {}});
  const bool there = section == "collective" ? scenario.collective.has_value() : scenario.kernel.has_value();
  if (!there) refuse(arguments.path, section, fmt::format("missing; `wafersim {}` needs this section", section));
  if (scenario.router.routing == "balanced") {
    refuse(arguments.path, "router.routing", "'balanced' is made for the traffic of a plan");
  }
  if (scenario.network.fidelity == models::Fidelity::analytic) {
    refuse(arguments.path, "network.fidelity", "'analytic' predicts iterations of plans; valid: packet, flit, ideal");
  }
  return scenario;
}

}  // namespace

PlanlessRun::PlanlessRun(const ScenarioArguments& arguments, const std::string& section)
    : scenario_(load(arguments, section)),
      hardware_(models::resolve_hardware(scenario_.wafer, scenario_.router, scenario_.network)),
      mesh_(models::mesh_spec(scenario_.wafer)) {}

std::unique_ptr<topology::RoutingPolicy> PlanlessRun::safe_routing() const { return make_safe_routing(hardware_, mesh_); }

sim::Measurements PlanlessRun::simulate(const topology::RoutingPolicy& routing, const workloads::Trace& trace) const {
  const InterruptGuard guard;
  sim::SimulationOptions options;
  options.seed = scenario_.seed;
  options.interrupted = InterruptGuard::interrupted;
  sim::Simulation simulation(mesh_, routing, hardware_, trace, std::move(options));
  return simulation.run();
}

}  // namespace wafersim::apps
