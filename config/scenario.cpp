#include "config/scenario.h"

#include <filesystem>
#include <optional>

#include "config/checks.h"
#include "config/node.h"
#include "config/presets.h"
#include "config/problems.h"
#include "config/reader.h"
#include "config/yaml_source.h"

namespace wafersim::config {

Scenario load_scenario(const std::string& path, const LoadOptions& options) {
  Problems problems;
  const Location origin{path, 1, 1};
  std::optional<ConfigNode> tree = parse_yaml(read_file(path), origin, problems);
  if (tree && !tree->is_map() && !tree->is_null()) {
    problems.add(origin, "", "a scenario must be a map of keys");
    tree.reset();
  }
  for (const std::string& text : options.overrides) {
    const std::optional<ConfigNode> value = parse_override(text, problems);
    if (tree && value) merge(*tree, *value);
  }
  if (!tree) problems.throw_if_any();

  // Overrides move the root's location; what is missing is missing in the file.
  tree->where = Location{path, 0, 0};
  include_sources(*tree, path, options.scenario_root, problems);
  Scenario scenario;
  scenario.name = std::filesystem::path(path).stem().string();
  read_scenario(*tree, problems, scenario);
  complete(*tree, scenario);
  check_scenario(*tree, scenario, problems);
  problems.throw_if_any();
  return scenario;
}

}  // namespace wafersim::config
