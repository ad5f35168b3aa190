#include "apps/commands.h"
#include "apps/console.h"
#include "apps/planless_run.h"
#include "report/collective_report.h"

namespace wafersim::apps {
namespace {

std::optional<int> positive(int value) { return value > 0 ? std::optional<int>(value) : std::nullopt; }

}  // namespace

ExitStatus collective_command(const CollectiveArguments& arguments) {
  const PlanlessRun run(arguments.scenario, "collective");
  const config::Scenario& scenario = run.scenario();
  const workloads::CollectiveSpec& spec = *scenario.collective;
  const workloads::StreamedCollective collective(spec, run.hardware(), run.mesh());
  const sim::Measurements measurements = run.simulate([&] { return collective.trace(); });

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
                                        .seconds = run.hardware().seconds(measurements.cycles),
                                        .fidelity = config::word(scenario.network.fidelity),
                                        .mesh = run.mesh(),
                                        .measurements = measurements};
  print(arguments.json ? report::collective_json(report) : report::collective_text(report));
  return measurements.partial ? ExitStatus::interrupted : ExitStatus::done;
}

}  // namespace wafersim::apps
