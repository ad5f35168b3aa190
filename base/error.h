#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace wafersim {

/// Exit statuses of the command line.
enum class ExitStatus : int { done = 0, scenario = 2, plan = 3, internal = 4, io = 5, interrupted = 130 };

/// Base of every error that wafersim raises. Libraries throw; only apps/ prints and exits.
class Error : public std::runtime_error {
 public:
  Error(ExitStatus status, const std::string& message) : std::runtime_error(message), status_(status) {}
  ExitStatus status() const { return status_; }

 private:
  ExitStatus status_;
};

/// Where a value was written: a file (or "--set"), line and column from 1; line 0 when there is none.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
  std::string to_string() const;
};

/// One thing that is wrong with a scenario.
struct Problem {
  Location where;
  std::string path;     ///< dotted key, e.g. "wafer.link.bandwidth"
  std::string message;  ///< what is wrong, the value, and what would be valid
  /// "file:line:column: path: message"
  std::string to_string() const;
};

/// The scenario is wrong; carries every problem found, in the order of the file.
class ScenarioError : public Error {
 public:
  explicit ScenarioError(std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// The plan does not fit or cannot run: capacity, degrees, dead tiles, stalled traces.
class PlanError : public Error {
 public:
  explicit PlanError(const std::string& message) : Error(ExitStatus::plan, message) {}
};

/// An invariant of wafersim itself is broken: a bug.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(ExitStatus::internal, message) {}
};

/// A file cannot be read or written.
class IoError : public Error {
 public:
  explicit IoError(const std::string& message) : Error(ExitStatus::io, message) {}
};

/// Throws InternalError when `holds` is false. Cheap invariants stay on in release builds.
inline void require_invariant(bool holds, const char* what) {
  if (!holds) [[unlikely]] throw InternalError(what);
}

}  // namespace wafersim
