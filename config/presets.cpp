#include "config/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/text.h"
#include "config/huggingface.h"
#include "config/yaml_source.h"

namespace wafersim::config {
namespace {

namespace fs = std::filesystem;

struct PresetKind {
  const char* section;  ///< that names the preset
  const char* directory;
  std::vector<std::string> top_level;  ///< what such a file may say
};

const PresetKind& hardware_kind() {
  static const PresetKind kind{"wafer", "hardware", {"wafer", "router", "network", "placement"}};
  return kind;
}

const PresetKind& model_kind() {
  static const PresetKind kind{"model", "models", {"model"}};
  return kind;
}

/// Also false for what may not be looked at.
bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Where a scenario in `directory` finds presets, nearest first.
std::vector<fs::path> preset_roots(const fs::path& directory, const std::string& scenario_root) {
  std::vector<fs::path> roots;
  if (!scenario_root.empty()) roots.emplace_back(scenario_root);
  for (fs::path at = fs::absolute(directory).lexically_normal();; at = at.parent_path()) {
    roots.push_back(at);
    roots.push_back(at / "scenarios");
    if (at == at.parent_path()) break;
  }
  roots.emplace_back(WAFERSIM_SCENARIO_DIR);
  return roots;
}

/// Preset files by name; of several with one name the nearest counts.
std::map<std::string, std::string> files_in(const std::vector<fs::path>& roots, const std::string& kind) {
  std::map<std::string, std::string> files;
  for (const fs::path& root : roots) {
    std::error_code ignored;  // most roots hold no presets
    for (const auto& entry : fs::directory_iterator(root / kind, ignored)) {
      if (entry.path().extension() == ".yaml") files.emplace(entry.path().stem().string(), entry.path().string());
    }
  }
  return files;
}

class SourceIncluder {
 public:
  SourceIncluder(ConfigNode& tree, const std::string& scenario_file, const std::string& scenario_root,
                 Problems& problems)
      : tree_(tree), problems_(problems), roots_(preset_roots(fs::absolute(scenario_file).parent_path(), scenario_root)) {}

  void include_preset(const PresetKind& kind) {
    const std::optional<ConfigNode> name = take_key(kind.section, "preset");
    if (!name) return;
    std::optional<ConfigNode> preset = load_preset(kind, *name);
    if (!preset) {
      problems_.mark_incomplete(kind.section);
      return;
    }
    merge(*preset, tree_);
    tree_ = std::move(*preset);
  }

  void include_huggingface() {
    const bool preset_too = tree_.find_path("model.preset") != nullptr;
    const std::optional<ConfigNode> name = take_key("model", "huggingface");
    if (!name) return;
    const std::string path = "model.huggingface";
    if (preset_too) {
      problems_.add(name->key_where, path, "model.preset is given too; give one of the two");
      return;
    }
    const fs::path file = relative_to(name->where, name->text);
    std::optional<ConfigNode> model;
    if (is_file(file)) {
      model = read_huggingface(file.string(), problems_);
    } else {
      problems_.add(name->where, path, fmt::format("cannot read '{}'", file.string()));
    }
    if (!model) {
      problems_.mark_incomplete("model");
      return;
    }
    ConfigNode base = ConfigNode::make_map();
    base.add_member("model", std::move(*model));
    merge(base, tree_);
    tree_ = std::move(base);
  }

 private:
  /// Removes a source key from the tree and returns it; empty when it is absent or not a text.
  std::optional<ConfigNode> take_key(const char* section_name, const char* key) {
    ConfigNode* section = tree_.find(section_name);
    const ConfigNode* found = section == nullptr ? nullptr : section->find(key);
    if (found == nullptr) return std::nullopt;
    const ConfigNode taken = *found;
    section->erase(key);
    if (taken.is_scalar() && !taken.text.empty()) return taken;
    problems_.add(taken.where, join_path(section_name, key), "must be a name or a file");
    problems_.mark_incomplete(section_name);
    return std::nullopt;
  }

  static fs::path relative_to(const Location& where, const std::string& name) {
    if (where.line == 0) return fs::path(name).lexically_normal();
    return (fs::path(where.file).parent_path() / name).lexically_normal();
  }

  std::optional<ConfigNode> load_preset(const PresetKind& kind, const ConfigNode& name) {
    const std::optional<fs::path> file = find_preset(kind, name);
    if (!file) return std::nullopt;
    const Location origin{file->string(), 1, 1};
    std::optional<ConfigNode> preset = parse_yaml(read_file(origin.file), origin, problems_);
    if (!preset) return std::nullopt;
    if (!preset->is_map()) {
      problems_.add(origin, "", fmt::format("a preset must be a map with the key '{}'", kind.section));
      return std::nullopt;
    }
    drop_foreign_keys(kind, *preset);
    return preset;
  }

  std::optional<fs::path> find_preset(const PresetKind& kind, const ConfigNode& name) {
    const std::string path = join_path(kind.section, "preset");
    const std::string& text = name.text;
    if (text.find('/') != std::string::npos || text.ends_with(".yaml")) {
      const fs::path file = relative_to(name.where, text);
      if (is_file(file)) return file;
      problems_.add(name.where, path, fmt::format("cannot read '{}'", file.string()));
      return std::nullopt;
    }
    for (const fs::path& root : roots_) {
      const fs::path file = root / kind.directory / (text + ".yaml");
      if (is_file(file)) return file;
    }
    const std::vector<std::string> known = preset_names(kind);
    const std::string near = nearest(text, known);
    const std::string hint = near.empty() ? "" : fmt::format(" did you mean '{}'?", near);
    problems_.add(name.where, path, fmt::format("unknown preset '{}';{} known: {}", text, hint, join(known)));
    return std::nullopt;
  }

  std::vector<std::string> preset_names(const PresetKind& kind) const {
    std::vector<std::string> names;
    for (const auto& [known, file] : files_in(roots_, kind.directory)) names.push_back(known);
    return names;
  }

  /// Reports what does not belong into a preset and takes it out.
  void drop_foreign_keys(const PresetKind& kind, ConfigNode& preset) {
    const auto foreign = [&](const ConfigNode& member) {
      return std::find(kind.top_level.begin(), kind.top_level.end(), member.key) == kind.top_level.end();
    };
    for (const ConfigNode& member : preset.children) {
      if (!foreign(member)) continue;
      problems_.add(member.key_where, member.key,
                    fmt::format("does not belong into a preset; valid keys: {}", join(kind.top_level)));
    }
    std::erase_if(preset.children, foreign);
    ConfigNode* section = preset.find(kind.section);
    for (const char* source : {"preset", "huggingface"}) {
      const ConfigNode* nested = section == nullptr ? nullptr : section->find(source);
      if (nested == nullptr) continue;
      problems_.add(nested->key_where, join_path(kind.section, source),
                    "a preset cannot include another source");
      section->erase(source);
    }
  }

  ConfigNode& tree_;
  Problems& problems_;
  std::vector<fs::path> roots_;
};

}  // namespace

void include_sources(ConfigNode& tree, const std::string& scenario_file, const std::string& scenario_root,
                     Problems& problems) {
  SourceIncluder includer(tree, scenario_file, scenario_root, problems);
  includer.include_preset(hardware_kind());
  includer.include_huggingface();
  includer.include_preset(model_kind());
}

std::map<std::string, std::string> preset_files(const std::string& kind, const std::string& directory,
                                                const std::string& scenario_root) {
  return files_in(preset_roots(directory, scenario_root), kind);
}

}  // namespace wafersim::config
