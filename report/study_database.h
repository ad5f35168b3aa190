#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace SQLite {
class Database;
}

namespace wafersim::report {

/// Files of a sweep.
inline constexpr const char* kStudyFile = "study.sqlite";
inline constexpr const char* kStudyTable = "results.csv";
inline constexpr const char* kStudyPage = "overview.html";

/// A key and its value.
using StudySetting = std::pair<std::string, std::string>;

/// A point of a study before it is run. Two points with equal settings and an equal scenario have the same result.
struct PlannedPoint {
  std::vector<StudySetting> settings;
  std::string scenario;  ///< resolved, as JSON; empty when the settings make no valid scenario
};

/// What came of a point.
struct PointOutcome {
  std::string result;   ///< JSON as the command writes it; empty when it failed
  int exit_status = 0;
  std::string message;  ///< of a failed point
};

/// What identifies a study in its database.
struct StudyHeader {
  std::string name;
  std::string command;             ///< "run" or "traffic"
  std::vector<StudySetting> fixed;  ///< settings of all points
};

struct PointRow {
  std::uint64_t number = 0;
  std::vector<StudySetting> settings;
  std::string status;  ///< "pending", "done", "failed"
  std::string message;
  std::string result;  ///< JSON without what differs between equal runs
};

/// The results of a study in an SQLite file; docs/studies.md has its tables. Every change is one transaction, so that a process
/// that is killed at any time loses no finished point. The content depends on the study and the simulator only: not on the order
/// in which points end, nor on time. Throws IoError where the file cannot be used or is no such database.
class StudyDatabase {
 public:
  /// Opens the file, which is made when it is not there.
  explicit StudyDatabase(const std::filesystem::path& file);
  ~StudyDatabase();
  StudyDatabase(const StudyDatabase&) = delete;
  StudyDatabase& operator=(const StudyDatabase&) = delete;

  /// Lays out the points, numbered from 1. Outcomes that the database has for equal points stay, all others go. Throws
  /// Error (status 2) when the database is that of another simulator version or command.
  void plan(const StudyHeader& header, const std::vector<PlannedPoint>& points);
  /// The numbers of the points that are still to be run, ascending.
  std::vector<std::uint64_t> pending() const;
  /// Takes over outcomes of another database for points that are pending here. Returns how many.
  std::uint64_t take_from(const std::filesystem::path& other);
  void record(std::uint64_t number, const PointOutcome& outcome);
  /// Failed points are pending again.
  void retry_failed();

  std::vector<PointRow> rows() const;
  StudyHeader header() const;

 private:
  void create_tables();
  void lay_view();

  std::filesystem::path file_;
  std::unique_ptr<SQLite::Database> database_;
};

/// The measures of a result, name and value in the order of the result: its numbers and truth values (0 or 1), members of blocks
/// by dotted names. What differs between equal runs, lists, the scenario and its plan are left out.
std::vector<std::pair<std::string, double>> measures_of(const std::string& result);

}  // namespace wafersim::report
