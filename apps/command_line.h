#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/units.h"

namespace wafersim::apps {

struct ScenarioArguments {
  std::string path;
  std::vector<std::string> overrides;  ///< "key=value"
};

struct RunArguments {
  ScenarioArguments scenario;
  std::string directory;  ///< empty = runs/<name of the scenario>
  bool json = false;
  bool quiet = false;
  bool messages = false;
  bool memory = false;
  std::vector<std::string> memory_tiles;  ///< by name
  bool force = false;
  bool fold = true;
  bool resume = false;
  double checkpoint_seconds = 0;  ///< 0 = no checkpoints
  Cycle max_cycles = kNever;
  double max_wall_seconds = 0;  ///< 0 = no limit
};

struct CheckArguments {
  ScenarioArguments scenario;
  bool json = false;
  bool verify = false;
};

struct TopologyArguments {
  ScenarioArguments scenario;
  bool json = false;
};

struct TrafficArguments {
  ScenarioArguments scenario;
  std::string directory;  ///< empty = write no files
  bool force = false;
  bool json = false;
  bool sweep = false;
};

struct PresetsArguments {};

/// The command line was answered in parsing it: help, version, or an error of use that has been printed.
struct Answered {
  int status = 0;
};

using Command = std::variant<RunArguments, CheckArguments, TopologyArguments, TrafficArguments, PresetsArguments, Answered>;

Command parse_command_line(int argc, char** argv);

}  // namespace wafersim::apps
