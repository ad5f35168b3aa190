#include "apps/study_runner.h"

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
#include <sstream>
#include <thread>

#include "apps/child_processes.h"
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

std::vector<report::PlannedPoint> planned_points(const config::Study& study) {
  std::vector<report::PlannedPoint> points;
  for (const config::StudyPoint& point : study.points) points.push_back({pairs_of(point), resolved(study, point)});
  return points;
}

report::StudyHeader header_of(const config::Study& study) {
  const bool traffic = study.command == config::StudyCommand::traffic;
  return {study.name, traffic ? "traffic" : "run", pairs_of(study.fixed)};
}

fs::path study_directory(const std::string& given, const config::Study& study) {
  return given.empty() ? fs::path("runs") / directory_name(study.name) : fs::path(given);
}

StudyRunner::~StudyRunner() {
  std::error_code ignored;
  fs::remove_all(work_, ignored);
}

bool StudyRunner::run(const std::vector<std::uint64_t>& numbers) {
  fs::remove_all(work_);
  fs::create_directories(work_);
  StudyProgress progress(!options_.quiet, numbers.size());
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

std::size_t StudyRunner::jobs() const {
  return options_.jobs != 0 ? options_.jobs : std::max(1U, std::thread::hardware_concurrency());
}

void StudyRunner::start(std::uint64_t number, ChildProcesses& children) const {
  const bool traffic = study_.command == config::StudyCommand::traffic;
  std::vector<std::string> words{traffic ? "traffic" : "run", study_.scenario, "-o", place_of(number).string(), "--force"};
  if (!traffic) words.emplace_back("--quiet");
  for (const std::string& override_text : overrides_of(study_, study_.points[number - 1])) {
    words.emplace_back("--set");
    words.push_back(override_text);
  }
  children.start(number, words, log_of(number));
}

void StudyRunner::record(std::uint64_t number, int status) {
  if (status == static_cast<int>(ExitStatus::interrupted) || InterruptGuard::interrupted()) return;
  const bool traffic = study_.command == config::StudyCommand::traffic;
  const fs::path result = place_of(number) / (traffic ? report::kTrafficFile : report::kSummaryFile);
  report::PointOutcome outcome;
  outcome.exit_status = status;
  if (status == 0) outcome.result = report::read_file(result);
  if (outcome.result.empty()) {
    outcome.message = failure_text(log_of(number), status);
    ++failed_;
  } else if (options_.keep_runs) {
    fs::create_directories(runs_);
    fs::remove_all(runs_ / std::to_string(number));
    fs::rename(place_of(number), runs_ / std::to_string(number));
  }
  database_.record(number, outcome);
  fs::remove_all(place_of(number));
  fs::remove(log_of(number));
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

}  // namespace wafersim::apps
