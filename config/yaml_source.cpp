#include "config/yaml_source.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <sstream>

namespace wafersim::config {
namespace {

// Aliases may nest or repeat without end; no honest scenario comes near these.
constexpr int kMaxDepth = 64;
constexpr int kMaxNodes = 1'000'000;

class Converter {
 public:
  Converter(Location origin, Problems& problems) : origin_(std::move(origin)), problems_(problems) {}

  ConfigNode convert(const YAML::Node& node, const Location& fallback, const std::string& path, int depth) {
    ConfigNode out;
    // A value that is not there has the mark of whatever follows it.
    out.where = node.IsNull() ? fallback : location(node.Mark(), fallback);
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes) {
      report_size(out.where, path);
      return out;
    }
    if (node.IsScalar()) {
      out.kind = ConfigNode::Kind::scalar;
      out.text = node.Scalar();
    } else if (node.IsSequence()) {
      out.kind = ConfigNode::Kind::list;
      for (const YAML::Node& item : node) {
        out.children.push_back(convert(item, out.where, path, depth + 1));
      }
    } else if (node.IsMap()) {
      convert_map(node, path, depth, out);
    }
    return out;
  }

  Location location(const YAML::Mark& mark, const Location& fallback) const {
    if (origin_.line == 0) return origin_;
    if (mark.is_null()) return fallback;
    return {origin_.file, mark.line + 1, mark.column + 1};
  }

 private:
  void convert_map(const YAML::Node& node, const std::string& path, int depth, ConfigNode& out) {
    out.kind = ConfigNode::Kind::map;
    for (const auto& member : node) {
      const Location key_where = location(member.first.Mark(), out.where);
      if (!member.first.IsScalar()) {
        problems_.add(key_where, path, "a key must be a single word");
        continue;
      }
      const std::string key = member.first.Scalar();
      const std::string key_path = join_path(path, key);
      if (const ConfigNode* first = out.find(key)) {
        problems_.add(key_where, key_path,
                      fmt::format("given twice; the first is at {}", first->key_where.to_string()));
        continue;
      }
      out.add_member(key, convert(member.second, key_where, key_path, depth + 1));
      out.children.back().key_where = key_where;
    }
  }

  void report_size(const Location& where, const std::string& path) {
    if (!too_large_) problems_.add(where, path, "nested too deeply or expands to too many values");
    too_large_ = true;
  }

  Location origin_;
  Problems& problems_;
  int nodes_ = 0;
  bool too_large_ = false;
};

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  // A directory opens but does not read.
  if (!in || (in.peek() == std::char_traits<char>::eof() && !in.eof())) {
    throw IoError(fmt::format("cannot read '{}'", path));
  }
  if (in.eof()) return {};
  text << in.rdbuf();
  if (!in || !text) throw IoError(fmt::format("cannot read '{}'", path));
  return text.str();
}

std::optional<ConfigNode> parse_yaml(const std::string& text, const Location& origin, Problems& problems,
                                     const std::string& path) {
  problems.register_source(origin.file);
  Converter converter(origin, problems);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      problems.add(converter.location(documents[1].Mark(), origin), path, "more than one YAML document");
      return std::nullopt;
    }
    return converter.convert(documents.empty() ? YAML::Node() : documents.front(), origin, path, 0);
  } catch (const YAML::Exception& error) {
    problems.add(converter.location(error.mark, origin), path, "YAML syntax: " + error.msg);
    return std::nullopt;
  }
}

std::optional<ConfigNode> parse_override(const std::string& text, Problems& problems) {
  const Location where{"--set " + text, 0, 0};
  problems.register_source(where.file);
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    problems.add(where, "", "an override is written KEY=VALUE, as in wafer.link.bandwidth=2 TB/s");
    return std::nullopt;
  }
  const std::string path = text.substr(0, equals);
  const std::vector<std::string> names = split_path(path);
  for (const std::string& name : names) {
    if (!name.empty()) continue;
    problems.add(where, "", fmt::format("'{}' has an empty key", path));
    return std::nullopt;
  }
  std::optional<ConfigNode> node = parse_yaml(text.substr(equals + 1), where, problems, path);
  if (!node) return std::nullopt;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    node->key_where = where;
    ConfigNode section = ConfigNode::make_map();
    section.where = where;
    section.add_member(*name, std::move(*node));
    *node = std::move(section);
  }
  return node;
}

}  // namespace wafersim::config
