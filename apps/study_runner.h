#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/child_processes.h"
#include "apps/cluster.h"
#include "apps/work_sharing.h"
#include "config/study.h"
#include "report/study_database.h"

namespace wafersim::apps {

/// --set of everything that a point changes.
std::vector<std::string> overrides_of(const config::Study& study, const config::StudyPoint& point);

/// `given`, or by default runs/<name of the study>.
std::filesystem::path study_directory(const std::string& given, const config::Study& study);

struct StudyRunOptions {
  std::string directory;
  std::size_t jobs = 0;  ///< points at a time, of each rank; 0 = one for each processor, with several ranks one
  bool keep_runs = false;
  bool quiet = false;
};

/// Runs points in processes of their own.
class PointRunner : public Worker {
 public:
  /// Both must outlive this. What points write until they have ended lies in a folder for this rank.
  PointRunner(const StudyRunOptions& options, const config::Study& study, int rank);

  /// All ranks know the study: a number says it all.
  std::string hand_over(std::uint64_t /*number*/) override { return {}; }
  void take_over(std::uint64_t /*number*/, const std::string& /*text*/) override {}
  void start(std::uint64_t number) override;
  std::size_t running() const override { return children_.running(); }
  std::optional<Ended> wait() override;
  void interrupt() override { children_.end_all(); }

 private:
  bool of_traffic() const { return study_.command == config::StudyCommand::traffic; }
  std::filesystem::path place_of(std::uint64_t number) const { return work_.path() / std::to_string(number); }
  std::filesystem::path log_of(std::uint64_t number) const { return work_.path() / (std::to_string(number) + ".log"); }

  const StudyRunOptions& options_;
  const config::Study& study_;
  const WorkFolder work_;
  std::filesystem::path runs_;
  ChildProcesses children_;
};

/// Runs the points of a study on all ranks of a cluster and records what comes of them on the first.
class StudyRunner {
 public:
  /// All must outlive this.
  StudyRunner(const StudyRunOptions& options, const config::Study& study, Cluster& cluster)
      : options_(options), study_(study), cluster_(cluster) {}

  /// On rank 0. False when it was interrupted; points that were running then are not recorded.
  bool run(const std::vector<std::uint64_t>& numbers, report::StudyDatabase& database);
  /// All that a rank other than the first does.
  ExitStatus serve();

 private:
  const StudyRunOptions& options_;
  const config::Study& study_;
  Cluster& cluster_;
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

/// The directory of a study's results, made ready and held, with the database of its points.
struct StudyFolder {
  StudyFolder(const std::filesystem::path& directory, const config::Study& study, bool force);

  DirectoryLock lock;
  report::StudyDatabase database;
};

}  // namespace wafersim::apps
