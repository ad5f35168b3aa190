#include "apps/commands.h"
#include "apps/console.h"
#include "apps/interrupt.h"
#include "apps/refuse.h"
#include "apps/routes.h"
#include "config/scenario.h"
#include "report/collective_report.h"
#include "sim/simulation.h"
#include "workloads/check_routes.h"

namespace wafersim::apps {
namespace {

config::Scenario load(const ScenarioArguments& arguments) {
  config::Scenario scenario = config::load_scenario(arguments.path, {arguments.overrides, {}});
  if (!scenario.collective) {
    refuse(arguments.path, "collective", "missing; `wafersim collective` needs this section");
  }
  if (scenario.router.routing == "balanced") {
    refuse(arguments.path, "router.routing", "'balanced' is made for the traffic of a plan");
  }
  if (scenario.network.fidelity == models::Fidelity::analytic) {
    refuse(arguments.path, "network.fidelity", "'analytic' predicts iterations of plans; valid: packet, flit, ideal");
  }
  return scenario;
}

std::optional<int> positive(int value) { return value > 0 ? std::optional<int>(value) : std::nullopt; }

}  // namespace

ExitStatus collective_command(const CollectiveArguments& arguments) {
  const config::Scenario scenario = load(arguments.scenario);
  const models::HardwareModel hardware = models::resolve_hardware(scenario.wafer, scenario.router, scenario.network);
  const topology::Mesh mesh(models::mesh_spec(scenario.wafer));
  const workloads::CollectiveSpec& spec = *scenario.collective;
  const workloads::StreamedCollective collective(spec, hardware, mesh);
  const std::unique_ptr<topology::RoutingPolicy> routing = make_safe_routing(hardware, mesh);
  const workloads::Trace trace = collective.trace();

  const InterruptGuard guard;
  sim::SimulationOptions options;
  options.seed = scenario.seed;
  options.interrupted = InterruptGuard::interrupted;
  sim::Simulation simulation(mesh, *routing, hardware, trace, std::move(options));
  const sim::Measurements measurements = simulation.run();

  const report::CollectiveReport report{.name = scenario.name,
                                        .scenario_json = config::collective_json(scenario),
                                        .kind = config::word(spec.kind),
                                        .algorithm = config::word(spec.algorithm),
                                        .relay = config::word(collective.relay()),
                                        .shape = collective.shape(),
                                        .row_group = positive(collective.row_group()),
                                        .column_group = positive(collective.column_group()),
                                        .bytes = spec.bytes.bytes,
                                        .model_cycles = collective.model_cycles(),
                                        .reduce_bound_cycles = collective.reduce_bound(),
                                        .seconds = hardware.seconds(measurements.cycles),
                                        .fidelity = config::word(scenario.network.fidelity),
                                        .mesh = mesh,
                                        .measurements = measurements};
  print(arguments.json ? report::collective_json(report) : report::collective_text(report));
  return measurements.partial ? ExitStatus::interrupted : ExitStatus::done;
}

}  // namespace wafersim::apps
