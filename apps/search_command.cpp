#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/console.h"
#include "apps/directory_name.h"
#include "apps/interrupt.h"
#include "apps/plan_session.h"
#include "apps/prepared_run.h"
#include "apps/study_runner.h"
#include "report/atomic_file.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

void write_tables(const fs::path& directory, const report::SearchReport& found) {
  report::write_file(directory / report::kSearchTable, report::search_csv(found));
  report::write_file(directory / report::kSearchPicture, report::search_picture(found));
}

void write_plan(const fs::path& path, const PlanSession& session, const report::FoundPlan& found) {
  const analysis::SearchedPlan& plan = report::at(session.report(), found);
  config::Scenario scenario = session.with_plan(plan.point);
  scenario.name = fmt::format("{}-{}", scenario.name, path.stem().string());
  const std::string cycles = plan.simulated ? fmt::format("{} cycles, simulated", *plan.simulated)
                                            : fmt::format("{} cycles, predicted", plan.verdict.cycles);
  report::write_file(path, fmt::format("# {}: {}\n{}", analysis::plan_text(plan.point), cycles, config::to_yaml(scenario)));
}

void write_plans(const fs::path& directory, const PlanSession& session) {
  const report::SearchReport& found = session.report();
  if (const auto best = report::winner(found)) write_plan(directory / report::kSearchBest, session, *best);
  for (std::size_t s = 1; s < found.searches.size(); ++s) {
    const std::string name = fmt::format("best-{}.yaml", to_string(found.searches[s].family));
    if (const auto best = report::best_of(found, s)) write_plan(directory / name, session, *best);
  }
}

}  // namespace

ExitStatus search_command(const SearchArguments& arguments) {
  config::Scenario scenario = load_with_model(arguments.scenario);
  const std::string& given = arguments.directory;
  const fs::path directory = given.empty() ? fs::path("runs") / directory_name(scenario.name + "-search") : fs::path(given);
  const InterruptGuard guard;
  Cluster cluster;
  PlanSession session(std::move(scenario), arguments.options, !arguments.quiet, directory, cluster);
  if (cluster.rank() != 0) return session.serve();
  const bool again = fs::exists(directory / report::kSearchTable);
  prepare_study_directory(directory, arguments.force || again);
  const DirectoryLock lock(directory);
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (again && name.starts_with("best") && name.ends_with(".yaml")) fs::remove(entry.path());
  }
  WorkFolder::clear(directory);
  session.search();
  write_tables(directory, session.report());
  session.require_winner();
  if (!session.report().interrupted) session.confirm();
  write_tables(directory, session.report());
  write_plans(directory, session);
  if (!arguments.quiet) {
    print(report::search_text(session.report()) +
          fmt::format("\nThe best plan as a scenario: {}; all plans: {}, {}\n", (directory / report::kSearchBest).string(),
                      (directory / report::kSearchTable).string(), (directory / report::kSearchPicture).string()));
  }
  if (!session.report().interrupted) return ExitStatus::done;
  cluster.end_all(ExitStatus::interrupted);
  return ExitStatus::interrupted;
}

}  // namespace wafersim::apps
