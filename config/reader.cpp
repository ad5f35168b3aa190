#include "config/reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace wafersim::config {

const ConfigNode* Reader::take(const Key& key) {
  names_.push_back(key.name);
  const ConfigNode* node = section_.find(key.name);
  if (node == nullptr && key.required) {
    const std::string top = split_path(join_path(path_, key.name)).front();
    if (!problems_.is_incomplete(top)) {
      problems_.add(section_.heading(), join_path(path_, key.name), "missing; this key is required");
    }
  }
  return node;
}

void Reader::report_no_section(const ConfigNode& node, const Key& key) const {
  const std::string word = key.absent.empty() ? "" : fmt::format(" or the word '{}'", key.absent);
  problems_.add(node.where, join_path(path_, key.name), fmt::format("must be a map of keys{}", word));
}

void Reader::report_unknown() const {
  for (const ConfigNode& member : section_.children) {
    if (std::find(names_.begin(), names_.end(), member.key) != names_.end()) continue;
    const std::string near = nearest(member.key, names_);
    const std::string hint = near.empty() ? "" : fmt::format(" did you mean '{}'?", near);
    problems_.add(member.key_where, join_path(path_, member.key),
                  fmt::format("unknown key;{} valid keys: {}", hint, join(names_)));
  }
}

void read_scenario(const ConfigNode& tree, Problems& problems, Scenario& scenario) {
  Reader reader(tree, "", problems);
  fields(reader, scenario);
  reader.report_unknown();
}

}  // namespace wafersim::config
