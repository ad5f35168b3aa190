#include <fmt/format.h>

#include <map>
#include <numeric>
#include <optional>

#include "apps/commands.h"
#include "apps/console.h"
#include "apps/fitted_models.h"
#include "apps/interrupt.h"
#include "apps/study_runner.h"
#include "apps/user_model.h"
#include "config/study.h"
#include "report/atomic_file.h"
#include "report/study_report.h"
#include "report/trial_report.h"
#include "workloads/trace_demands.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

/// What a scenario costs by each of our models, and how large its messages are.
struct OwnAnswers {
  std::vector<report::TrialAnswer> answers;
  double message_bytes = 0;
};

double mean_message_bytes(const workloads::Trace& trace) {
  double bytes = 0, messages = 0;
  for (const workloads::TileBinding& tile : trace.tiles) {
    for (const workloads::Step& step : trace.programs[tile.program].steps) {
      for (const workloads::Op& op : trace.templates[step.step_template].ops) {
        if (op.kind != workloads::OpKind::send && op.kind != workloads::OpKind::multicast) continue;
        bytes += static_cast<double>(op.bytes);
        ++messages;
      }
    }
  }
  return messages == 0 ? 0 : bytes / messages;
}

OwnAnswers ask_own(const config::Study& study, const config::StudyPoint& point) {
  OwnAnswers result;
  const PreparedRun run({study.scenario, overrides_of(study, point)});
  result.message_bytes = mean_message_bytes(run.plan.trace);
  for (const config::StudyModel& model : study.models) {
    if (!model.own) continue;
    result.answers.push_back(own_answer(run, *model.own));
  }
  return result;
}

/// Puts all models of a study to the points that have been simulated.
class Questioning {
 public:
  Questioning(const config::Study& study, const std::string& path, report::Trial& trial)
      : study_(study), directory_(fs::absolute(path).parent_path()), trial_(trial) {
    for (const config::StudyModel& model : study.models) {
      trial_.models.push_back({model.name, std::vector<report::TrialAnswer>(trial_.points.size()), {}, {}});
      tables_.emplace_back();
      if (!model.table.empty()) tables_.back().emplace(model.table);
    }
  }

  /// False when it was interrupted.
  bool run() {
    for (std::size_t i = 0; i < trial_.points.size(); ++i) {
      if (InterruptGuard::interrupted()) return false;
      ask(i);
    }
    return !InterruptGuard::interrupted();
  }

 private:
  void ask(std::size_t i) {
    report::TrialPoint& point = trial_.points[i];
    ask_ours(i);
    const std::string scenario = scenario_of(point.number);
    for (std::size_t m = 0; m < study_.models.size(); ++m) {
      const config::StudyModel& model = study_.models[m];
      if (model.own) continue;
      const ModelAnswer answer =
          tables_[m] ? tables_[m]->answer(point.number) : ask_program(model, directory_, point.number, scenario);
      trial_.models[m].answers[i] = {answer.cycles, answer.parts, answer.fault};
    }
  }

  void ask_ours(std::size_t i) {
    report::TrialPoint& point = trial_.points[i];
    OwnAnswers own;
    std::string fault;
    try {
      own = ask_own(study_, study_.points[point.number - 1]);
      point.message_bytes = own.message_bytes;
    } catch (const Error& error) {
      fault = error.what();
    }
    std::size_t number = 0;
    for (std::size_t m = 0; m < study_.models.size(); ++m) {
      if (!study_.models[m].own) continue;
      trial_.models[m].answers[i] = fault.empty() ? own.answers[number++] : report::TrialAnswer{{}, {}, fault};
    }
  }

  std::string scenario_of(std::uint64_t number) const {
    return config::to_json(config::load_scenario(study_.scenario, {overrides_of(study_, study_.points[number - 1]), {}}));
  }

  const config::Study& study_;
  fs::path directory_;
  report::Trial& trial_;
  std::vector<std::optional<PredictionTable>> tables_;
};

/// What of a point's settings is not the plan.
std::string case_of(const report::PointRow& row) {
  std::string text;
  for (const auto& [key, value] : row.settings) {
    if (!key.starts_with("plan.")) text += key + "=" + value + "\n";
  }
  return text;
}

report::Trial simulated_points(const config::Study& study, const std::vector<report::PointRow>& rows) {
  report::Trial trial;
  trial.name = study.name;
  std::map<std::string, std::size_t> cases;
  for (const report::PointRow& row : rows) {
    if (row.status == "failed") ++trial.failed_points;
    if (row.status != "done") continue;
    report::TrialPoint point = report::trial_point(row.result);
    point.number = row.number;
    point.settings = row.settings;
    point.group = cases.emplace(case_of(row), cases.size()).first->second;
    trial.points.push_back(std::move(point));
  }
  return trial;
}

void write(const fs::path& directory, const report::Trial& trial, const std::vector<report::PointRow>& rows) {
  report::write_file(directory / report::kStudyTable, report::study_csv(rows));
  report::write_file(directory / report::kTrialPoints, report::trial_points_csv(trial));
  report::write_file(directory / report::kTrialModels, report::trial_models_csv(trial));
  report::write_file(directory / report::kTrialPage, report::trial_page(trial));
  report::write_file(directory / report::kTrialFile, report::trial_json(trial));
}

}  // namespace

ExitStatus validate_command(const ValidateArguments& arguments) {
  const config::Study study = config::load_study(arguments.study);
  if (study.command != config::StudyCommand::run) {
    throw Error(ExitStatus::scenario, arguments.study + ": command: models of iterations are tried on runs; valid: run");
  }
  const fs::path directory = study_directory(arguments.directory, study);
  const InterruptGuard guard;
  Cluster cluster;
  const StudyRunOptions options{directory.string(), arguments.jobs, false, arguments.quiet};
  StudyRunner runner(options, study, cluster);
  if (cluster.rank() != 0) return runner.serve();
  StudyFolder folder(directory, study, arguments.force);
  report::StudyDatabase& database = folder.database;
  if (arguments.retry_failed) database.retry_failed();
  if (!runner.run(database.pending(), database)) {
    cluster.end_all(ExitStatus::interrupted);
    return ExitStatus::interrupted;
  }

  const std::vector<report::PointRow> rows = database.rows();
  report::Trial trial = simulated_points(study, rows);
  if (!Questioning(study, arguments.study, trial).run()) return ExitStatus::interrupted;
  const std::size_t asked = trial.models.size();
  for (std::size_t m = 0; m < asked; ++m) {
    if (auto model = fitted(trial, trial.models[m])) trial.models.push_back(std::move(*model));
    if (!study.models[m].own) continue;
    if (auto model = calibrated(study, trial, trial.models[m], *study.models[m].own)) trial.models.push_back(std::move(*model));
    if (InterruptGuard::interrupted()) return ExitStatus::interrupted;
  }
  write(directory, trial, rows);
  if (arguments.json) {
    print(report::trial_json(trial));
  } else if (!arguments.quiet) {
    print(report::trial_text(trial) + "Report in " + (directory / report::kTrialPage).string() + "\n");
  }
  return ExitStatus::done;
}

}  // namespace wafersim::apps
