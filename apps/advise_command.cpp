#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "apps/commands.h"
#include "apps/console.h"
#include "apps/interrupt.h"
#include "apps/plan_session.h"
#include "apps/study_runner.h"
#include "base/text.h"
#include "config/presets.h"
#include "models/transformer.h"
#include "report/advice_report.h"
#include "report/atomic_file.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

/// Checks the names before anything is searched.
void require_preset(const char* option, const std::string& name, const std::string& kind) {
  std::vector<std::string> known;
  for (const auto& [each, file] : config::preset_files(kind, fs::current_path().string())) known.push_back(each);
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::string near = nearest(name, known);
  throw Error(ExitStatus::scenario, fmt::format("{}: unknown preset '{}';{} known: {}", option, name,
                                                near.empty() ? "" : fmt::format(" did you mean '{}'?", near), join(known)));
}

/// A scenario of one cell, with nothing of a plan. A table of learned positions grows with the sequence.
config::Scenario scenario_of(const AdviseArguments& arguments, const std::string& model, std::uint64_t sequence) {
  const std::string name = fmt::format("{}-{}", model, sequence);
  const std::string file = (fs::current_path() / (name + ".yaml")).string();  // there is none
  const std::string text = fmt::format("name: {}\nwafer: {{preset: {}}}\nmodel: {{preset: {}, sequence: 1}}\n"
                                       "network: {{packet_bytes: 512 KiB}}\ntraining: {{global_batch: {}}}\n",
                                       name, arguments.wafer, model, std::max<std::uint64_t>(1, arguments.tokens / sequence));
  const config::Scenario preset = config::parse_scenario(text, file);
  std::vector<std::string> overrides{fmt::format("model.sequence={}", sequence)};
  const bool learned = preset.model.positions == models::Positions::learned;
  if (learned && static_cast<std::uint64_t>(preset.model.context) < sequence)
    overrides.push_back(fmt::format("model.context={}", sequence));
  overrides.insert(overrides.end(), arguments.overrides.begin(), arguments.overrides.end());
  return config::parse_scenario(text, file, {overrides, {}});
}

/// On rank 0 the best plan of a cell; the other ranks help to find it.
report::AdviceCell search_cell(const AdviseArguments& arguments, const fs::path& directory, Cluster& cluster,
                               const std::string& model, std::uint64_t sequence) {
  report::AdviceCell cell{model, sequence, 0, 0, {}, {}, {}};
  try {
    const config::Scenario scenario = scenario_of(arguments, model, sequence);
    cell.parameters = models::count_parameters(scenario.model).total(scenario.model.layers);
    cell.batch = static_cast<std::uint64_t>(scenario.training.global_batch);
    PlanSession session(scenario, arguments.options, !arguments.quiet, directory, cluster);
    if (cluster.rank() != 0) {
      session.serve();
      return cell;
    }
    session.search();
    session.require_winner();
    if (arguments.confirm && !InterruptGuard::interrupted()) session.confirm();
    const report::SearchReport& found = session.report();
    const analysis::SearchedPlan& best = report::at(found, *report::winner(found));
    cell.best = best;
    cell.seconds = static_cast<double>(report::cycles_of(best)) / found.clock.hertz.to_double();
    report::write_file(directory / (scenario.name + ".yaml"), config::to_yaml(session.with_plan(best.point)));
  } catch (const PlanError& error) {
    cell.fault = error.what();
  }
  return cell;
}

void write(const fs::path& directory, const report::Advice& advice) {
  report::write_file(directory / report::kAdviceTable, report::advice_csv(advice));
  report::write_file(directory / report::kAdviceFile, report::advice_json(advice));
}

}  // namespace

ExitStatus advise_command(const AdviseArguments& arguments) {
  require_preset("--wafer", arguments.wafer, "hardware");
  for (const std::string& model : arguments.models) require_preset("--models", model, "models");
  const fs::path directory =
      arguments.directory.empty() ? fs::path("runs") / ("advice-" + arguments.wafer) : fs::path(arguments.directory);
  const InterruptGuard guard;
  Cluster cluster;
  std::optional<DirectoryLock> lock;
  if (cluster.rank() == 0) {
    prepare_study_directory(directory, arguments.force || fs::exists(directory / report::kAdviceTable));
    lock.emplace(directory);
    WorkFolder::clear(directory);
  }
  report::Advice advice{arguments.wafer, arguments.tokens, arguments.confirm, {}};
  for (const std::string& model : arguments.models) {
    for (const std::uint64_t sequence : arguments.sequences) {
      if (InterruptGuard::interrupted()) break;
      try {
        advice.cells.push_back(search_cell(arguments, directory, cluster, model, sequence));
      } catch (const Error& error) {
        if (error.status() != ExitStatus::interrupted) throw;
      }
      if (cluster.rank() == 0) write(directory, advice);
    }
  }
  const ExitStatus status = InterruptGuard::interrupted() ? ExitStatus::interrupted : ExitStatus::done;
  if (cluster.rank() != 0) return status;
  if (arguments.json) {
    print(report::advice_json(advice));
  } else if (!arguments.quiet) {
    print(report::advice_text(advice) + fmt::format("\nThe plans as scenarios: {}; the table: {}\n",
                                                    (directory / "MODEL-SEQUENCE.yaml").string(),
                                                    (directory / report::kAdviceTable).string()));
  }
  if (status == ExitStatus::interrupted) cluster.end_all(status);
  return status;
}

}  // namespace wafersim::apps
