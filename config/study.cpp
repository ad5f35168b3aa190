#include "config/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>

#include "base/quantity.h"
#include "base/random.h"
#include "base/rational.h"
#include "base/text.h"
#include "config/keys.h"
#include "config/node.h"
#include "config/problems.h"
#include "config/words.h"
#include "config/yaml_source.h"

namespace wafersim::config {
namespace {

const std::vector<std::string> kStudyKeys = {"name",   "scenario",   "command", "set",  "vary",  "sample",
                                             "points", "plans_each", "seed",    "list", "models"};

/// A value as YAML on one line.
std::string flow_text(const ConfigNode& node) {
  const bool is_map = node.is_map();
  if (!is_map && !node.is_list()) return node.text;
  std::vector<std::string> items;
  for (const ConfigNode& child : node.children) {
    items.push_back(is_map ? child.key + ": " + flow_text(child) : flow_text(child));
  }
  return fmt::format("{}{}{}", is_map ? '{' : '[', join(items), is_map ? '}' : ']');
}

/// A number with whatever unit follows it.
struct Measure {
  Rational number;
  std::string unit;
};
std::optional<Measure> parse_measure(const std::string& text) {
  const auto ends = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == ' '; };
  const auto unit = std::find_if(text.begin(), text.end(), ends);
  Measure result;
  result.unit = std::string(unit, text.end());
  if (!Rational::parse_decimal(std::string(text.begin(), unit), result.number)) return std::nullopt;
  return result;
}

/// A key of the study and the values that its points choose from.
struct Choice {
  std::string key;
  std::vector<std::string> values;
};

class StudyReader {
 public:
  StudyReader(const ConfigNode& tree, std::string path, Problems& problems)
      : tree_(tree), path_(std::move(path)), problems_(problems), reference_(key_reference()) {}

  Study read() {
    for (const ConfigNode& member : tree_.children) {
      if (std::find(kStudyKeys.begin(), kStudyKeys.end(), member.key) == kStudyKeys.end()) report_unknown(member);
    }
    Study study;
    study.name = std::filesystem::path(path_).stem().string();
    if (const ConfigNode* name = text_of("name")) study.name = name->text;
    read_scenario(study);
    read_command(study);
    if (const ConfigNode* set = tree_.find("set")) study.fixed = settings_of(*set, "set");
    read_points(study);
    read_models(study);
    return study;
  }

 private:
  void report_unknown(const ConfigNode& member) {
    const std::string near = nearest(member.key, kStudyKeys);
    problems_.add(member.key_where, member.key,
                  (near.empty() ? "unknown key" : "unknown key; did you mean '" + near + "'?") +
                      ("; valid keys: " + join(kStudyKeys)));
  }

  /// The value of a key when it is one word or number; reports when it is something else.
  const ConfigNode* text_of(const std::string& key) {
    const ConfigNode* node = tree_.find(key);
    if (node == nullptr || (node->is_scalar() && !node->text.empty())) return node;
    problems_.add(node->where, key, "must be a single value");
    return nullptr;
  }

  void read_scenario(Study& study) {
    if (tree_.find("scenario") == nullptr) {
      problems_.add(tree_.where, "scenario", "missing; the scenario file that the points change, relative to the study");
    } else if (const ConfigNode* node = text_of("scenario")) {
      study.scenario = (std::filesystem::path(path_).parent_path() / node->text).lexically_normal().string();
      if (!std::filesystem::is_regular_file(study.scenario)) {
        problems_.add(node->where, "scenario", fmt::format("'{}' is no file; it is looked for beside the study", node->text));
      }
    }
  }

  void read_command(Study& study) {
    const ConfigNode* node = text_of("command");
    if (node == nullptr) return;
    if (node->text == "traffic") {
      study.command = StudyCommand::traffic;
    } else if (node->text != "run") {
      problems_.add(node->where, "command", fmt::format("'{}' is not known; valid: run, traffic", node->text));
    }
  }

  /// Whether scenarios have the key; a key below one with free members (plan.mapping.tp) counts.
  void check_key(const ConfigNode& member, const std::string& section) {
    std::vector<std::string> paths;
    for (const KeyInfo& info : reference_) {
      if (info.path == member.key) return;
      if (!info.section && member.key.starts_with(info.path + ".")) return;
      paths.push_back(info.path);
    }
    const std::string near = nearest(member.key, paths);
    problems_.add(member.key_where, section + "." + member.key,
                  near.empty() ? "no scenario has this key" : "no scenario has this key; did you mean '" + near + "'?");
  }

  std::vector<Setting> settings_of(const ConfigNode& map, const std::string& section) {
    std::vector<Setting> settings;
    if (!map.is_map()) {
      problems_.add(map.where, section, "must be a map from dotted keys of a scenario to values, {plan.tp: 8}");
      return settings;
    }
    for (const ConfigNode& member : map.children) {
      check_key(member, section);
      settings.push_back({member.key, flow_text(member)});
    }
    return settings;
  }

  std::int64_t whole(const std::string& key, std::int64_t least, std::int64_t otherwise) {
    const ConfigNode* node = text_of(key);
    if (node == nullptr) return otherwise;
    Rational value;
    const bool number = Rational::parse_decimal(node->text, value) && value.is_integer();
    if (number && value >= Rational(least)) return value.num();
    problems_.add(node->where, key, fmt::format("'{}' is not a whole number of at least {}", node->text, least));
    return otherwise;
  }

  void read_points(Study& study) {
    const bool random = is_random();
    const std::vector<Choice> choices = read_choices();
    const std::int64_t wanted = whole("points", 1, 0);
    const std::int64_t plans_each = whole("plans_each", 1, 1);
    if (!random && plans_each != 1) {
      problems_.add(tree_.locate("plans_each"), "plans_each",
                    "is for 'sample: random'; a grid has all plans for everything else");
    }
    const auto seed = static_cast<std::uint64_t>(whole("seed", 0, 1));
    if (!random && wanted != 0) {
      problems_.add(tree_.locate("points"), "points", "counts the points of 'sample: random'; a grid has all of them");
    }
    if (random && wanted == 0) problems_.add(tree_.locate("sample"), "points", "missing; how many points to draw");
    if (problems_.empty() && !choices.empty()) {
      if (random) {
        draw(choices, {static_cast<std::size_t>(wanted), static_cast<std::size_t>(plans_each), seed}, study);
      } else {
        lay_grid(choices, study);
      }
    }
    if (const ConfigNode* list = tree_.find("list")) read_list(*list, study);
    if (problems_.empty() && study.points.empty()) {
      problems_.add(tree_.where, "vary", "missing; a study has `vary`, `list` or both");
    }
  }

  bool is_random() {
    const ConfigNode* node = text_of("sample");
    if (node == nullptr || node->text == "grid") return false;
    if (node->text != "random") {
      problems_.add(node->where, "sample", fmt::format("'{}' is not known; valid: grid, random", node->text));
    }
    return true;
  }

  std::vector<Choice> read_choices() {
    std::vector<Choice> choices;
    const ConfigNode* vary = tree_.find("vary");
    if (vary == nullptr) return choices;
    if (!vary->is_map()) {
      problems_.add(vary->where, "vary", "must be a map from dotted keys of a scenario to lists or ranges of values");
      return choices;
    }
    for (const ConfigNode& member : vary->children) {
      check_key(member, "vary");
      Choice choice{member.key, {}};
      if (member.is_list() && !member.children.empty()) {
        for (const ConfigNode& value : member.children) choice.values.push_back(flow_text(value));
      } else if (member.is_map()) {
        choice.values = range_of(member);
      } else {
        problems_.add(member.where, "vary." + member.key,
                      "must be a list of values, or a range as in {from: 64 GB/s, to: 512 GB/s, factor: 2}");
      }
      require_distinct(member, choice);
      choices.push_back(std::move(choice));
    }
    return choices;
  }

  void require_distinct(const ConfigNode& member, const Choice& choice) {
    std::set<std::string> seen;
    for (const std::string& value : choice.values) {
      if (seen.insert(value).second) continue;
      problems_.add(member.where, "vary." + choice.key, fmt::format("'{}' is given twice", value));
    }
  }

  std::vector<std::string> range_of(const ConfigNode& range) {
    const std::string path = "vary." + range.key;
    const auto measure = [&](const char* key) -> std::optional<Measure> {
      const ConfigNode* node = range.find(key);
      if (node == nullptr || !node->is_scalar()) return std::nullopt;
      return parse_measure(node->text);
    };
    const std::optional<Measure> from = measure("from"), to = measure("to"), step = measure("step"), factor = measure("factor");
    const bool one_way = step.has_value() != factor.has_value();
    if (!from || !to || !one_way || range.children.size() != 3) {
      problems_.add(range.where, path, "a range has the numbers from, to, and either step or factor, and nothing else");
      return {};
    }
    const bool same_unit = from->unit == to->unit && (!step || step->unit == from->unit) && (!factor || factor->unit.empty());
    if (!same_unit) {
      problems_.add(range.where, path, "from, to and step must have the same unit, a factor none");
      return {};
    }
    const bool grows = step ? step->number > Rational(0) : factor->number > Rational(1) && from->number > Rational(0);
    if (!grows || to->number < from->number) {
      problems_.add(range.where, path, "a range goes up: from <= to, with a step above 0, or a factor above 1 and from above 0");
      return {};
    }
    std::vector<std::string> values;
    for (Rational at = from->number; at <= to->number; at = step ? at + step->number : at * factor->number) {
      values.push_back(at.to_string() + from->unit);
      if (values.size() > kMaxStudyPoints) return too_many(range.where, path);
    }
    return values;
  }

  std::vector<std::string> too_many(const Location& where, const std::string& path) {
    problems_.add(where, path, fmt::format("gives more than {} points", kMaxStudyPoints));
    return {};
  }

  void lay_grid(const std::vector<Choice>& choices, Study& study) {
    std::size_t size = 1;
    for (const Choice& choice : choices) {
      size *= choice.values.size();
      if (size > kMaxStudyPoints) {
        too_many(tree_.locate("vary"), "vary");
        return;
      }
    }
    for (std::size_t number = 0; number < size; ++number) add(point_of(choices, number), study);
  }

  /// The combination with that number, the last key varying fastest.
  static StudyPoint point_of(const std::vector<Choice>& choices, std::size_t number) {
    StudyPoint point(choices.size());
    for (std::size_t i = choices.size(); i-- > 0;) {
      const std::vector<std::string>& values = choices[i].values;
      point[i] = {choices[i].key, values[number % values.size()]};
      number /= values.size();
    }
    return point;
  }

  struct Drawing {
    std::size_t wanted = 0;
    std::size_t plans_each = 1;  ///< so many in a row differ in keys of the plan only
    std::uint64_t seed = 1;
  };

  /// Distinct combinations in the order of drawing; all of them when there are no more than wanted. Of a case that has no new
  /// plans the next one is drawn.
  void draw(const std::vector<Choice>& choices, const Drawing& drawing, Study& study) {
    if (drawing.wanted > kMaxStudyPoints) {
      too_many(tree_.locate("points"), "points");
      return;
    }
    std::size_t size = 1;
    for (const Choice& choice : choices) size = std::min(size * choice.values.size(), 2 * kMaxStudyPoints);
    if (size <= drawing.wanted) return lay_grid(choices, study);
    RandomStream random(drawing.seed, "study");
    constexpr std::size_t kTries = 64;
    while (study.points.size() < drawing.wanted) {
      StudyPoint point;
      for (const Choice& choice : choices) point.push_back({choice.key, choice.values[random.below(choice.values.size())]});
      const std::size_t last = std::min(study.points.size() + drawing.plans_each, drawing.wanted);
      add(point, study);
      const std::size_t most = drawing.plans_each > 1 ? kTries * drawing.plans_each : 0;
      for (std::size_t tries = 0; study.points.size() < last && tries < most; ++tries) {
        for (std::size_t i = 0; i < choices.size(); ++i) {
          if (choices[i].key.starts_with("plan.")) point[i].value = choices[i].values[random.below(choices[i].values.size())];
        }
        add(point, study);
      }
    }
  }

  void read_models(Study& study) {
    const ConfigNode* node = tree_.find("models");
    if (node == nullptr) {
      for (const auto& [word, value] : Words<models::CostModel>::list) study.models.push_back({word, value, {}, {}, 60});
      return;
    }
    if (!node->is_list() || node->children.empty()) {
      problems_.add(node->where, "models",
                    "must be a list of cost models: words (" + cost_models() + "), or {name, csv or command}");
      return;
    }
    for (const ConfigNode& item : node->children) {
      StudyModel model = item.is_map() ? user_model(item) : own_model(item);
      const auto same = [&](const StudyModel& other) { return other.name == model.name; };
      if (std::any_of(study.models.begin(), study.models.end(), same)) {
        problems_.add(item.where, "models", fmt::format("two models have the name '{}'", model.name));
      }
      study.models.push_back(std::move(model));
    }
  }

  static std::string cost_models() {
    std::vector<std::string> words;
    for (const auto& [word, value] : Words<models::CostModel>::list) words.emplace_back(word);
    return join(words);
  }

  StudyModel own_model(const ConfigNode& item) {
    for (const auto& [word, value] : Words<models::CostModel>::list) {
      if (item.text == word) return {word, value, {}, {}, 60};
    }
    problems_.add(item.where, "models",
                  fmt::format("'{}' is not known; valid: {}, or a map {{name, csv or command}}", item.text, cost_models()));
    return {item.text, std::nullopt, {}, {}, 60};
  }

  /// Beside the study, unless it is absolute or found by the shell's path.
  std::string beside(const std::string& file) const {
    const std::filesystem::path path = std::filesystem::path(path_).parent_path() / file;
    return std::filesystem::absolute(path).lexically_normal().string();
  }

  StudyModel user_model(const ConfigNode& item) {
    StudyModel model;
    for (const ConfigNode& member : item.children) {
      if (member.key == "name" && member.is_scalar()) {
        model.name = member.text;
      } else if (member.key == "csv" && member.is_scalar()) {
        model.table = beside(member.text);
        if (!std::filesystem::is_regular_file(model.table)) {
          problems_.add(member.where, "models.csv",
                        fmt::format("'{}' is no file; it is looked for beside the study", member.text));
        }
      } else if (member.key == "command" && member.is_list() && !member.children.empty()) {
        for (const ConfigNode& word : member.children) model.command.push_back(word.text);
        if (model.command.front().find('/') != std::string::npos) model.command.front() = beside(model.command.front());
      } else if (member.key == "timeout" && member.is_scalar()) {
        read_timeout(member, model);
      } else {
        problems_.add(member.key_where, "models." + member.key,
                      "must be name or csv (a text), command (a list: program, arguments), or timeout (a time)");
      }
    }
    if (model.name.empty()) problems_.add(item.where, "models.name", "missing; what the results call this model");
    if (model.table.empty() == model.command.empty()) {
      problems_.add(item.where, "models", "a model of your own has either csv or command");
    }
    return model;
  }

  void read_timeout(const ConfigNode& member, StudyModel& model) {
    Duration duration;
    std::string error;
    if (!parse_quantity(member.text, duration, error)) {
      problems_.add(member.where, "models.timeout", error);
    } else if (duration.in_cycles || duration.value <= Rational(0)) {
      problems_.add(member.where, "models.timeout", fmt::format("'{}' is not a time above 0, such as 10 s", member.text));
    } else {
      model.timeout_seconds = duration.value.to_double();
    }
  }

  void read_list(const ConfigNode& list, Study& study) {
    if (!list.is_list()) {
      problems_.add(list.where, "list", "must be a list of points, each a map from dotted keys to values");
      return;
    }
    for (const ConfigNode& item : list.children) {
      StudyPoint point = settings_of(item, "list");
      if (study.points.size() < kMaxStudyPoints) add(std::move(point), study);
    }
    if (list.children.size() > kMaxStudyPoints) too_many(list.where, "list");
  }

  /// Unless there is an equal one.
  void add(StudyPoint point, Study& study) {
    std::string text;
    for (const Setting& setting : point) {
      text += setting.to_string() + "\n";
      if (std::find(study.keys.begin(), study.keys.end(), setting.key) == study.keys.end()) study.keys.push_back(setting.key);
    }
    if (seen_.insert(text).second) study.points.push_back(std::move(point));
  }

  const ConfigNode& tree_;
  std::string path_;
  Problems& problems_;
  std::vector<KeyInfo> reference_;
  std::set<std::string> seen_;
};

}  // namespace

Study load_study(const std::string& path) {
  Problems problems;
  const Location origin{path, 1, 1};
  const std::optional<ConfigNode> tree = parse_yaml(read_file(path), origin, problems);
  if (tree && !tree->is_map()) problems.add(origin, "", "a study must be a map of keys: " + join(kStudyKeys));
  problems.throw_if_any();
  Study study = StudyReader(*tree, path, problems).read();
  problems.throw_if_any();
  return study;
}

}  // namespace wafersim::config
