#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/cluster.h"

namespace wafersim::apps {

/// Does pieces of work, each known by a number, beside its caller.
class Worker {
 public:
  struct Ended {
    std::uint64_t number = 0;
    report::PointOutcome outcome;
  };

  Worker() = default;
  virtual ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// What another rank has to be told of a piece, which this one does not do itself.
  virtual std::string hand_over(std::uint64_t number) = 0;
  /// A piece that another rank has handed over.
  virtual void take_over(std::uint64_t number, const std::string& text) = 0;
  virtual void start(std::uint64_t number) = 0;
  virtual std::size_t running() const = 0;
  /// Waits for one to end; nothing when none did within a moment, or it was interrupted.
  virtual std::optional<Ended> wait() = 0;
  /// Drops what is running.
  virtual void interrupt() = 0;
};

/// Pieces at a time of each rank: `given`, or by default (0) one for each processor, with several ranks one.
std::size_t jobs_of_rank(std::size_t given, const Cluster& cluster);

/// Hands out work of rank 0 to all ranks of a cluster, its own included, whichever is free.
class WorkSharing {
 public:
  /// Called on rank 0 for each piece that has ended, with the rank that did it.
  using Record = std::function<void(int rank, const Worker::Ended& ended)>;

  /// All must outlive this. `jobs` are pieces at a time of the own rank.
  WorkSharing(Cluster& cluster, Worker& own, std::size_t jobs) : cluster_(cluster), own_(own), jobs_(jobs) {}
  /// On rank 0: unless there was an interrupt, tells the others that there is no more and waits for them.
  ~WorkSharing();
  WorkSharing(const WorkSharing&) = delete;
  WorkSharing& operator=(const WorkSharing&) = delete;

  /// On rank 0: has all pieces done. False when `stop` said so before they were, or a rank was interrupted; what was being done
  /// is not recorded then, and nothing more may be asked for.
  bool run(const std::vector<std::uint64_t>& numbers, const Record& record, const std::function<bool()>& stop);
  /// On the other ranks: does what rank 0 hands out until there is no more. False when it was interrupted.
  bool serve();

 private:
  void read_letters(std::deque<std::uint64_t>& waiting, std::set<std::uint64_t>& elsewhere, const Record& record);

  Cluster& cluster_;
  Worker& own_;
  const std::size_t jobs_;
  std::deque<int> free_;  ///< ranks that have room, once for each piece
  int gone_ = 0;
};

/// All that a rank other than the first does.
ExitStatus serve(WorkSharing& sharing);

/// A folder of a rank for files that are no results, made when it is asked for and removed at the end.
class WorkFolder {
 public:
  WorkFolder(const std::filesystem::path& directory, int rank);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::filesystem::path& path() const;
  /// On rank 0, before any other has one: removes those of a process that was killed.
  static void clear(const std::filesystem::path& directory);

 private:
  std::filesystem::path path_;
};

}  // namespace wafersim::apps
