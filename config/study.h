#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/hardware.h"

namespace wafersim::config {

/// A key of a scenario and a value for it, as `--set` takes them.
struct Setting {
  std::string key;    ///< dotted
  std::string value;  ///< YAML
  bool operator==(const Setting&) const = default;
  std::string to_string() const { return key + "=" + value; }
};

/// What a point of a study sets besides the settings of all points.
using StudyPoint = std::vector<Setting>;

/// Which command each point of a study runs.
enum class StudyCommand : std::uint8_t { run, traffic };

/// A cost model that `wafersim validate` puts on trial: one of ours, or the user's own.
struct StudyModel {
  std::string name;
  std::optional<models::CostModel> own;  ///< ours; otherwise there is a table or a command
  std::string table;                     ///< CSV of point,cycles
  std::vector<std::string> command;      ///< reads a scenario as JSON and prints cycles; the program's path is resolved
  double timeout_seconds = 60;           ///< for each point
};

/// A set of scenarios: one scenario file with keys changed.
struct Study {
  std::string name;
  std::string scenario;  ///< path of the scenario file
  StudyCommand command = StudyCommand::run;
  std::vector<Setting> fixed;
  std::vector<StudyPoint> points;  ///< distinct, in order
  std::vector<std::string> keys;   ///< that points set, in order of appearance
  std::vector<StudyModel> models;  ///< for `wafersim validate`: all of ours unless given
};

/// A study has at most that many points.
inline constexpr std::size_t kMaxStudyPoints = 100'000;

/// Reads a study file (docs/studies.md). Throws ScenarioError with all problems of the file: unknown keys, keys that no
/// scenario has, malformed ranges, too many points; IoError when it cannot be read. Whether a scenario with these settings is
/// valid is seen when it is loaded.
Study load_study(const std::string& path);

}  // namespace wafersim::config
