#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <thread>

#include "apps/child_processes.h"
#include "apps/commands.h"
#include "apps/console.h"
#include "apps/interrupt.h"
#include "apps/directory_name.h"
#include "base/text.h"
#include "config/scenario.h"
#include "config/study.h"
#include "report/atomic_file.h"
#include "report/csv_table.h"
#include "report/run_directory.h"
#include "report/study_database.h"
#include "report/study_report.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".lock";

/// --set of everything that a point changes.
std::vector<std::string> overrides_of(const config::Study& study, const config::StudyPoint& point) {
  std::vector<std::string> overrides;
  for (const config::Setting& setting : study.fixed) overrides.push_back(setting.to_string());
  for (const config::Setting& setting : point) overrides.push_back(setting.to_string());
  return overrides;
}

std::vector<report::StudySetting> pairs_of(const std::vector<config::Setting>& settings) {
  std::vector<report::StudySetting> pairs;
  for (const config::Setting& setting : settings) pairs.emplace_back(setting.key, setting.value);
  return pairs;
}

/// The scenario of a point as JSON; empty when there is none with these settings, which the run of it will say.
std::string resolved(const config::Study& study, const config::StudyPoint& point) {
  try {
    const config::Scenario scenario = config::load_scenario(study.scenario, {overrides_of(study, point), {}});
    return study.command == config::StudyCommand::traffic ? config::traffic_json(scenario) : config::to_json(scenario);
  } catch (const ScenarioError&) {
    return {};
  }
}

std::vector<report::PlannedPoint> planned_points(const config::Study& study) {
  std::vector<report::PlannedPoint> points;
  for (const config::StudyPoint& point : study.points) points.push_back({pairs_of(point), resolved(study, point)});
  return points;
}

report::StudyHeader header_of(const config::Study& study) {
  const bool traffic = study.command == config::StudyCommand::traffic;
  return {study.name, traffic ? "traffic" : "run", pairs_of(study.fixed)};
}

/// One line on standard error that tells how far a study is: in place on a terminal, else now and then.
class StudyProgress {
 public:
  StudyProgress(bool wanted, std::size_t points) : wanted_(wanted), points_(points) {}
  ~StudyProgress() {
    if (wanted_ && shown_ && terminal_) std::fputs("\r\033[K", stderr);
  }
  StudyProgress(const StudyProgress&) = delete;
  StudyProgress& operator=(const StudyProgress&) = delete;

  void update(std::size_t ended, std::size_t failed) {
    if (!wanted_ || !terminal_) return;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    const double left = ended == 0 ? 0 : elapsed.count() / static_cast<double>(ended) * static_cast<double>(points_ - ended);
    fmt::print(stderr, "\r\033[K{} of {} points, {} failed, about {} left", ended, points_, failed, human_seconds(left));
    std::fflush(stderr);
    shown_ = true;
  }

 private:
  bool wanted_;
  bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  bool shown_ = false;
  std::size_t points_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Runs points in processes of their own and records what comes of them.
class StudyRunner {
 public:
  StudyRunner(const SweepArguments& arguments, const config::Study& study, report::StudyDatabase& database)
      : arguments_(arguments),
        study_(study),
        database_(database),
        work_(fs::path(arguments.directory) / ".work"),
        runs_(fs::path(arguments.directory) / "runs") {}
  ~StudyRunner() {
    std::error_code ignored;
    fs::remove_all(work_, ignored);
  }
  StudyRunner(const StudyRunner&) = delete;
  StudyRunner& operator=(const StudyRunner&) = delete;

  /// False when it was interrupted; points that were running then are not recorded.
  bool run(const std::vector<std::uint64_t>& numbers) {
    fs::remove_all(work_);
    fs::create_directories(work_);
    StudyProgress progress(!arguments_.quiet, numbers.size());
    std::deque<std::uint64_t> waiting(numbers.begin(), numbers.end());
    std::size_t ended = 0;
    ChildProcesses children;
    while (!InterruptGuard::interrupted() && (!waiting.empty() || children.running() != 0)) {
      while (!waiting.empty() && children.running() < jobs()) {
        start(waiting.front(), children);
        waiting.pop_front();
      }
      if (const auto child = children.wait()) {
        record(child->number, child->status);
        progress.update(++ended, failed_);
      }
    }
    if (!InterruptGuard::interrupted()) return true;
    children.interrupt();
    while (children.running() != 0) children.wait();
    return false;
  }

 private:
  std::size_t jobs() const {
    return arguments_.jobs != 0 ? arguments_.jobs : std::max(1U, std::thread::hardware_concurrency());
  }
  fs::path place_of(std::uint64_t number) const { return work_ / std::to_string(number); }
  fs::path log_of(std::uint64_t number) const { return work_ / fmt::format("{}.log", number); }

  void start(std::uint64_t number, ChildProcesses& children) const {
    const bool traffic = study_.command == config::StudyCommand::traffic;
    std::vector<std::string> words{traffic ? "traffic" : "run", study_.scenario, "-o", place_of(number).string(), "--force"};
    if (!traffic) words.emplace_back("--quiet");
    for (const std::string& override_text : overrides_of(study_, study_.points[number - 1])) {
      words.emplace_back("--set");
      words.push_back(override_text);
    }
    children.start(number, words, log_of(number));
  }

  void record(std::uint64_t number, int status) {
    if (status == static_cast<int>(ExitStatus::interrupted) || InterruptGuard::interrupted()) return;
    const bool traffic = study_.command == config::StudyCommand::traffic;
    const fs::path result = place_of(number) / (traffic ? report::kTrafficFile : report::kSummaryFile);
    report::PointOutcome outcome;
    outcome.exit_status = status;
    if (status == 0) outcome.result = report::read_file(result);
    if (outcome.result.empty()) {
      outcome.message = error_of(log_of(number), status);
      ++failed_;
    } else if (arguments_.keep_runs) {
      fs::create_directories(runs_);
      fs::remove_all(runs_ / std::to_string(number));
      fs::rename(place_of(number), runs_ / std::to_string(number));
    }
    database_.record(number, outcome);
    fs::remove_all(place_of(number));
    fs::remove(log_of(number));
  }

  const SweepArguments& arguments_;
  const config::Study& study_;
  report::StudyDatabase& database_;
  fs::path work_;
  fs::path runs_;
  std::size_t failed_ = 0;
};

/// Of the points that are to be run, those of shard i of n.
std::vector<std::uint64_t> shard_of(const std::vector<std::uint64_t>& numbers, const Shard& shard) {
  std::vector<std::uint64_t> own;
  for (const std::uint64_t number : numbers) {
    if (number % shard.count == shard.index % shard.count) own.push_back(number);
  }
  return own;
}

/// Keeps a second process from working on the same directory while this one lives.
class DirectoryLock {
 public:
  explicit DirectoryLock(const fs::path& directory) {
    const fs::path path = directory / kLock;
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) throw IoError(fmt::format("cannot create {}: {}", path.string(), std::strerror(errno)));
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      ::close(file_);
      throw IoError(fmt::format("{} is in use by another sweep", directory.string()));
    }
  }
  ~DirectoryLock() { ::close(file_); }
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int file_ = -1;
};

/// A directory for results: new, empty, or one of an earlier sweep.
void prepare(const fs::path& directory, bool force) {
  // The lock comes first: a sweep that was killed at once has nothing else.
  const bool again = fs::exists(directory / report::kStudyFile) || fs::exists(directory / kLock);
  report::prepare_directory(directory, force || again);
}

ExitStatus finish(const SweepArguments& arguments, const fs::path& directory, const report::StudyDatabase& database) {
  const std::vector<report::PointRow> rows = database.rows();
  report::write_file(directory / report::kStudyTable, report::study_csv(rows));
  if (!arguments.quiet) {
    print(report::study_text(database.header(), rows) + "Results in " + (directory / report::kStudyFile).string() + "\n");
  }
  return ExitStatus::done;
}

}  // namespace

ExitStatus sweep_command(const SweepArguments& arguments) {
  const config::Study study = config::load_study(arguments.study);
  SweepArguments resolved_arguments = arguments;
  if (arguments.directory.empty()) resolved_arguments.directory = (fs::path("runs") / directory_name(study.name)).string();
  const fs::path directory = resolved_arguments.directory;
  const InterruptGuard guard;
  prepare(directory, arguments.force);
  const DirectoryLock lock(directory);
  report::StudyDatabase database(directory / report::kStudyFile);
  database.plan(header_of(study), planned_points(study));
  for (const std::string& other : arguments.merge) database.take_from(fs::path(other) / report::kStudyFile);
  if (arguments.retry_failed) database.retry_failed();
  bool whole = true;
  if (arguments.merge.empty()) {
    StudyRunner runner(resolved_arguments, study, database);
    whole = runner.run(shard_of(database.pending(), arguments.shard));
  }
  finish(arguments, directory, database);
  return whole ? ExitStatus::done : ExitStatus::interrupted;
}

}  // namespace wafersim::apps
