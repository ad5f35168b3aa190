#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace wafersim::config {

/// A value of a scenario tree that remembers where it was written. Presets, the scenario and overrides are
/// merged as trees of these before anything is interpreted, so every later message can name file, line and
/// column.
struct ConfigNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  bool literal = false;  ///< of a written scalar: a number or boolean, which JSON does not quote
  std::string key;       ///< when a member of a map
  Location key_where;
  std::string text;                  ///< of a scalar
  Location where;                    ///< of the value
  std::vector<ConfigNode> children;  ///< items of a list or members of a map, in the order of the file

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_list() const { return kind == Kind::list; }
  bool is_map() const { return kind == Kind::map; }

  /// The member of a map, or nullptr.
  const ConfigNode* find(const std::string& name) const;
  ConfigNode* find(const std::string& name);
  /// The value at a dotted path, or nullptr.
  const ConfigNode* find_path(const std::string& path) const;
  ConfigNode* find_path(const std::string& path);
  /// Where to report what a section lacks: at its key, or at the section itself when it has none.
  const Location& heading() const { return key_where.file.empty() ? where : key_where; }
  /// Where the value at a dotted path was written; the heading of its innermost existing section when it is
  /// absent.
  Location locate(const std::string& path) const;

  /// Adds a member to a map (turning a null into one).
  void add_member(std::string name, ConfigNode value);
  void erase(const std::string& name);

  static ConfigNode make_text(std::string text);
  static ConfigNode make_literal(std::string text);
  static ConfigNode make_map();
};

/// "a.b" of "a" and "b"; "b" when `section` is empty.
std::string join_path(const std::string& section, const std::string& key);
std::vector<std::string> split_path(const std::string& path);

/// Lays `over` on `base`: maps merge key by key, anything else replaces. Of keys that exclude each other
/// (`peak` and `arrays` of a matrix engine, `preset` and `huggingface` of a model) the one from `over` wins.
void merge(ConfigNode& base, const ConfigNode& over, const std::string& path = "");

}  // namespace wafersim::config
