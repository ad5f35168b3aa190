#include "apps/study_runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "apps/directory_name.h"
#include "apps/interrupt.h"
#include "base/error.h"
#include "base/text.h"
#include "config/scenario.h"
#include "report/csv_table.h"
#include "report/run_directory.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".lock";

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

}  // namespace

std::vector<std::string> overrides_of(const config::Study& study, const config::StudyPoint& point) {
  std::vector<std::string> overrides;
  for (const config::Setting& setting : study.fixed) overrides.push_back(setting.to_string());
  for (const config::Setting& setting : point) overrides.push_back(setting.to_string());
  return overrides;
}

fs::path study_directory(const std::string& given, const config::Study& study) {
  return given.empty() ? fs::path("runs") / directory_name(study.name) : fs::path(given);
}

PointRunner::PointRunner(const StudyRunOptions& options, const config::Study& study, int rank)
    : options_(options), study_(study), work_(options.directory, rank), runs_(fs::path(options.directory) / "runs") {}

void PointRunner::start(std::uint64_t number) {
  std::vector<std::string> words{of_traffic() ? "traffic" : "run", study_.scenario, "-o", place_of(number).string(), "--force"};
  if (!of_traffic()) words.emplace_back("--quiet");
  for (const std::string& override_text : overrides_of(study_, study_.points[number - 1])) {
    words.emplace_back("--set");
    words.push_back(override_text);
  }
  children_.start(number, words, log_of(number));
}

std::optional<PointRunner::Ended> PointRunner::wait() {
  const auto child = children_.wait();
  if (!child || InterruptGuard::interrupted()) return std::nullopt;
  Ended ended{child->number, {}};
  report::PointOutcome& outcome = ended.outcome;
  outcome.exit_status = child->status;
  if (child->status == 0) {
    outcome.result = report::read_file(place_of(child->number) / (of_traffic() ? report::kTrafficFile : report::kSummaryFile));
  }
  if (outcome.result.empty()) {
    outcome.message = error_of(log_of(child->number), child->status);
  } else if (options_.keep_runs) {
    const fs::path kept = runs_ / std::to_string(child->number);
    fs::create_directories(runs_);
    fs::remove_all(kept);
    fs::rename(place_of(child->number), kept);
  }
  fs::remove_all(place_of(child->number));
  fs::remove(log_of(child->number));
  return ended;
}

bool StudyRunner::run(const std::vector<std::uint64_t>& numbers, report::StudyDatabase& database) {
  WorkFolder::clear(options_.directory);
  StudyProgress progress(!options_.quiet, numbers.size());
  std::size_t ended = 0, failed = 0;
  const auto record = [&](int /*rank*/, const Worker::Ended& point) {
    if (point.outcome.exit_status == static_cast<int>(ExitStatus::interrupted)) return;
    database.record(point.number, point.outcome);
    if (point.outcome.result.empty()) ++failed;
    progress.update(++ended, failed);
  };
  PointRunner own(options_, study_, cluster_.rank());
  WorkSharing sharing(cluster_, own, jobs_of_rank(options_.jobs, cluster_));
  return sharing.run(numbers, record, [] { return false; });
}

ExitStatus StudyRunner::serve() {
  PointRunner own(options_, study_, cluster_.rank());
  WorkSharing sharing(cluster_, own, jobs_of_rank(options_.jobs, cluster_));
  return apps::serve(sharing);
}

DirectoryLock::DirectoryLock(const fs::path& directory) {
  const fs::path path = directory / kLock;
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) throw IoError(fmt::format("cannot create {}: {}", path.string(), std::strerror(errno)));
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    ::close(file_);
    throw IoError(fmt::format("{} is in use by another study", directory.string()));
  }
}

DirectoryLock::~DirectoryLock() { ::close(file_); }

void prepare_study_directory(const fs::path& directory, bool force) {
  // The lock comes first: a sweep that was killed at once has nothing else.
  const bool again = fs::exists(directory / report::kStudyFile) || fs::exists(directory / kLock);
  report::prepare_directory(directory, force || again);
}

namespace {

/// What a study's database is laid out with. Scenarios that are wrong are empty; the run of them will say why.
std::vector<report::PlannedPoint> planned_points(const config::Study& study) {
  std::vector<report::PlannedPoint> points;
  for (const config::StudyPoint& point : study.points) points.push_back({pairs_of(point), resolved(study, point)});
  return points;
}

report::StudyHeader header_of(const config::Study& study) {
  const bool traffic = study.command == config::StudyCommand::traffic;
  return {study.name, traffic ? "traffic" : "run", pairs_of(study.fixed)};
}

const fs::path& prepared(const fs::path& directory, bool force) {
  prepare_study_directory(directory, force);
  return directory;
}

}  // namespace

StudyFolder::StudyFolder(const fs::path& directory, const config::Study& study, bool force)
    : lock(prepared(directory, force)), database(directory / report::kStudyFile) {
  database.plan(header_of(study), planned_points(study));
}

}  // namespace wafersim::apps
