#include "apps/commands.h"
#include "apps/console.h"
#include "apps/prepared_run.h"
#include "models/transformer.h"
#include "report/check_report.h"
#include "topology/mesh_metrics.h"
#include "workloads/verify.h"

namespace wafersim::apps {
namespace {

report::CheckFacts facts_of(const PreparedRun& run, bool verify) {
  const config::Scenario& scenario = run.scenario;
  report::CheckFacts facts;
  facts.scenario_json = config::to_json(scenario);
  facts.parameters = models::count_parameters(scenario.model).total(scenario.model.layers);
  facts.flops_per_iteration = {models::model_flops(scenario.model, 1),
                               static_cast<std::uint64_t>(scenario.training.global_batch)};
  facts.tiles_used = run.plan.trace.tiles.size();
  facts.tiles_total = topology::live_tiles(run.mesh);
  facts.memory = run.plan.memory;
  if (facts.memory.peak_tile != kNoTile) facts.peak_tile = run.mesh.name(facts.memory.peak_tile);
  if (facts.memory.overflow) facts.overflow_tile = run.mesh.name(facts.memory.overflow->tile);
  facts.loads = run.loads();
  facts.verified = verify;
  if (verify) facts.faults = workloads::verify_trace(run.plan.trace, run.mesh);
  return facts;
}

}  // namespace

ExitStatus check_command(const CheckArguments& arguments) {
  const PreparedRun run(arguments.scenario);
  const report::CheckFacts facts = facts_of(run, arguments.verify);
  if (arguments.json) {
    print(report::check_json(facts));
  } else {
    print(config::to_yaml(run.scenario) + "\n" + report::check_text(facts));
  }
  for (const std::string& fault : facts.faults) print_error(fault);
  if (!facts.memory.fits) print_error("the plan does not fit: " + report::overflow_text(facts.memory, facts.overflow_tile));
  return facts.memory.fits && facts.faults.empty() ? ExitStatus::done : ExitStatus::plan;
}

}  // namespace wafersim::apps
