#include "apps/prediction.h"

#include <chrono>
#include <ctime>

#include "analysis/predicted_energy.h"
#include "apps/console.h"
#include "base/error.h"
#include "report/prediction_report.h"
#include "report/run_directory.h"
#include "workloads/trace_demands.h"

namespace wafersim::apps {
namespace {

void refuse_options(const RunArguments& arguments) {
  const std::pair<bool, const char*> options[] = {
      {!arguments.wave.path.empty(), "--vcd"},
      {arguments.timeline.wanted, "--timeline"},
      {arguments.messages, "--messages"},
      {arguments.memory || !arguments.memory_tiles.empty(), "--memory"},
      {arguments.report || !arguments.report_tiles.empty(), "--report"},
      {arguments.resume, "--resume"},
      {arguments.checkpoint_seconds > 0, "--checkpoint-every"},
      {arguments.max_cycles != kNever, "--max-cycles"},
  };
  for (const auto& [given, name] : options) {
    if (!given) continue;
    throw Error(ExitStatus::scenario, std::string(name) +
                                          ": a prediction (network.fidelity: analytic) simulates nothing that it "
                                          "could show; take packet, flit or ideal");
  }
}

}  // namespace

analysis::Prediction predict(const PreparedRun& run, models::CostModel model, const analysis::LinkFactors& factors) {
  const workloads::Trace& trace = run.plan.trace;
  const models::HardwareModel hardware = analysis::with_link_factors(run.hardware, factors);
  analysis::StepCosts costs(
      {trace, run.plan.mapping, run.scenario.plan, hardware, run.mesh, run.routing(), model, run.scenario.seed});
  return analysis::predict(costs, trace);
}

ExitStatus run_prediction(const RunArguments& arguments, const PreparedRun& run, const std::string& directory) {
  refuse_options(arguments);
  report::prepare_directory(directory, arguments.force);
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu = std::clock();
  const analysis::Prediction prediction = predict(run, run.hardware.cost_model);
  sim::Measurements effort;
  effort.cycles = prediction.cycles;
  effort.engine.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  effort.engine.cpu_seconds = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  const config::Scenario& scenario = run.scenario;
  analysis::RunSummary summary = analysis::summarize(
      analysis::PredictedInput{scenario.model, scenario.training, run.hardware, run.mesh, run.plan.memory, run.plan.trace,
                               prediction.cycles, prediction.iteration_ends, prediction.breakdown});
  const topology::ExpectedLoads loads = run.routing().expected_loads(run.mesh, workloads::demands_of(run.plan.trace));
  const std::uint64_t tokens = analysis::tokens_of(scenario.model, scenario.training, scenario.training.iterations);
  summary.energy = analysis::predicted_energy({run.hardware, run.mesh, run.plan.trace, loads, prediction.cycles, tokens});
  const report::RunContext context{scenario.name,    config::to_json(scenario),
                                   scenario.plan,    scenario.training,
                                   run.plan.mapping, run.hardware,
                                   run.mesh,         effort,
                                   summary,          run.loads()};
  const report::PredictionContext results{context, loads};
  report::write_prediction(directory, results);
  if (arguments.json) {
    print(report::prediction_text(results));
  } else if (!arguments.quiet) {
    print(report::prediction_summary(results) + "Results in " + directory + "\n");
  }
  return ExitStatus::done;
}

}  // namespace wafersim::apps
