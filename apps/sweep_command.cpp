#include <filesystem>

#include "apps/commands.h"
#include "apps/console.h"
#include "apps/interrupt.h"
#include "apps/study_runner.h"
#include "config/study.h"
#include "report/atomic_file.h"
#include "report/page.h"
#include "report/study_database.h"
#include "report/study_report.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

/// Of the points that are to be run, those of shard i of n.
std::vector<std::uint64_t> shard_of(const std::vector<std::uint64_t>& numbers, const Shard& shard) {
  std::vector<std::uint64_t> own;
  for (const std::uint64_t number : numbers) {
    if (number % shard.count == shard.index % shard.count) own.push_back(number);
  }
  return own;
}

ExitStatus finish(const SweepArguments& arguments, const fs::path& directory, const report::StudyDatabase& database) {
  const std::vector<report::PointRow> rows = database.rows();
  report::write_file(directory / report::kStudyTable, report::study_csv(rows));
  if (report::has_page()) report::write_study_page(directory / report::kStudyPage, database.header(), rows);
  if (!arguments.quiet) {
    const std::string page = report::has_page() ? ", all at once in " + (directory / report::kStudyPage).string() : "";
    print(report::study_text(database.header(), rows) + "Results in " + (directory / report::kStudyFile).string() + page + "\n");
  }
  return ExitStatus::done;
}

}  // namespace

ExitStatus sweep_command(const SweepArguments& arguments) {
  const config::Study study = config::load_study(arguments.study);
  const fs::path directory = study_directory(arguments.directory, study);
  const InterruptGuard guard;
  Cluster cluster;
  const StudyRunOptions options{directory.string(), arguments.jobs, arguments.keep_runs, arguments.quiet};
  StudyRunner runner(options, study, cluster);
  if (cluster.rank() != 0) return runner.serve();
  StudyFolder folder(directory, study, arguments.force);
  report::StudyDatabase& database = folder.database;
  for (const std::string& other : arguments.merge) database.take_from(fs::path(other) / report::kStudyFile);
  if (arguments.retry_failed) database.retry_failed();
  std::vector<std::uint64_t> wanted;
  if (arguments.merge.empty()) wanted = shard_of(database.pending(), arguments.shard);
  const bool whole = runner.run(wanted, database);
  finish(arguments, directory, database);
  if (whole) return ExitStatus::done;
  cluster.end_all(ExitStatus::interrupted);
  return ExitStatus::interrupted;
}

}  // namespace wafersim::apps
