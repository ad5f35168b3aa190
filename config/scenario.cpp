#include "config/scenario.h"

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "config/checks.h"
#include "config/keys.h"
#include "config/node.h"
#include "config/presets.h"
#include "config/problems.h"
#include "config/reader.h"
#include "config/yaml_source.h"

namespace wafersim::config {

namespace {

/// Writes out sections that stand as a bare value (`tatp: 16` as `tatp: {degree: 16}`), so that a key of such a section
/// can be set beside it.
void expand_shorthands(ConfigNode& tree, const std::vector<KeyInfo>& keys) {
  for (const KeyInfo& key : keys) {
    if (key.shorthand.empty()) continue;
    ConfigNode* const node = tree.find_path(key.path);
    if (node == nullptr || !node->is_scalar()) continue;
    ConfigNode section = ConfigNode::make_map();
    section.key = node->key;
    section.key_where = node->key_where;
    section.where = node->where;
    section.add_member(key.shorthand, *node);
    *node = std::move(section);
  }
}

}  // namespace

Scenario load_scenario(const std::string& path, const LoadOptions& options) {
  return parse_scenario(read_file(path), path, options);
}

Scenario parse_scenario(const std::string& text, const std::string& path, const LoadOptions& options) {
  Problems problems;
  const Location origin{path, 1, 1};
  std::optional<ConfigNode> tree = parse_yaml(text, origin, problems);
  if (tree && !tree->is_map() && !tree->is_null()) {
    problems.add(origin, "", "a scenario must be a map of keys");
    tree.reset();
  }
  const std::vector<KeyInfo> keys = key_reference();
  if (tree) expand_shorthands(*tree, keys);
  for (const std::string& setting : options.overrides) {
    const std::optional<ConfigNode> value = parse_override(setting, problems);
    if (!tree || !value) continue;
    merge(*tree, *value);
    expand_shorthands(*tree, keys);
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
