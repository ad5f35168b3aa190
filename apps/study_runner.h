#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/study.h"
#include "report/study_database.h"

namespace wafersim::apps {

class ChildProcesses;

/// --set of everything that a point changes.
std::vector<std::string> overrides_of(const config::Study& study, const config::StudyPoint& point);

/// `given`, or by default runs/<name of the study>.
std::filesystem::path study_directory(const std::string& given, const config::Study& study);

/// What a study's database is laid out with. Scenarios that are wrong are empty; the run of them will say why.
report::StudyHeader header_of(const config::Study& study);
std::vector<report::PlannedPoint> planned_points(const config::Study& study);

struct StudyRunOptions {
  std::string directory;
  std::size_t jobs = 0;  ///< points at a time; 0 = one for each processor
  bool keep_runs = false;
  bool quiet = false;
};

/// Runs points in processes of their own and records what comes of them.
class StudyRunner {
 public:
  /// All must outlive this.
  StudyRunner(const StudyRunOptions& options, const config::Study& study, report::StudyDatabase& database)
      : options_(options),
        study_(study),
        database_(database),
        work_(std::filesystem::path(options.directory) / ".work"),
        runs_(std::filesystem::path(options.directory) / "runs") {}
  ~StudyRunner();
  StudyRunner(const StudyRunner&) = delete;
  StudyRunner& operator=(const StudyRunner&) = delete;

  /// False when it was interrupted; points that were running then are not recorded.
  bool run(const std::vector<std::uint64_t>& numbers);

 private:
  std::size_t jobs() const;
  std::filesystem::path place_of(std::uint64_t number) const { return work_ / std::to_string(number); }
  std::filesystem::path log_of(std::uint64_t number) const { return work_ / (std::to_string(number) + ".log"); }
  void start(std::uint64_t number, ChildProcesses& children) const;
  void record(std::uint64_t number, int status);

  const StudyRunOptions& options_;
  const config::Study& study_;
  report::StudyDatabase& database_;
  std::filesystem::path work_;
  std::filesystem::path runs_;
  std::size_t failed_ = 0;
};

/// Keeps a second process from working on the same directory while this one lives.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int file_ = -1;
};

/// Makes a directory ready for the results of a study: new, empty, or one of an earlier study. Throws IoError.
void prepare_study_directory(const std::filesystem::path& directory, bool force);

}  // namespace wafersim::apps
