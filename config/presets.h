#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/node.h"
#include "config/problems.h"

namespace wafersim::config {

/// Lays the files named by `wafer.preset`, `model.preset` and `model.huggingface` below the scenario's own
/// values and removes those keys. A preset is a name (NAME.yaml in hardware/ or models/ of `scenario_root`,
/// of the scenario file's directory and of those above it, of scenarios/ in each of them, of the directory
/// this library was built with) or, when it contains '/' or ends in .yaml, a path relative to the file that
/// names it.
void include_sources(ConfigNode& tree, const std::string& scenario_file, const std::string& scenario_root,
                     Problems& problems);

/// The preset files that a scenario in `directory` finds, by name. `kind` is "hardware" or "models".
std::map<std::string, std::string> preset_files(const std::string& kind, const std::string& directory,
                                                const std::string& scenario_root = {});

}  // namespace wafersim::config
