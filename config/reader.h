#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/codec_mesh.h"
#include "config/fields.h"

namespace wafersim::config {

/// Reads one section of a scenario tree into its spec; the visitor of `fields` for reading. Values that are
/// absent keep what the spec has, values that are wrong are reported and change nothing.
class Reader {
 public:
  /// `section` must outlive the reader.
  Reader(const ConfigNode& section, std::string path, Problems& problems)
      : section_(section), path_(std::move(path)), problems_(problems) {}

  template <class T>
  void operator()(const Key& key, T& value) {
    const ConfigNode* node = take(key);
    if (node == nullptr) return;
    if constexpr (Leaf<T>) {
      Codec<T>::read(*node, {key, join_path(path_, key.name), problems_}, value);
    } else {
      read_section(*node, key, value);
    }
  }

  template <class T>
  void alternative(const Key& key, T& value, bool /*chosen*/) {
    (*this)(key, value);
  }

  void source(const Key& key) { names_.push_back(key.name); }

  /// Reports the keys of the section that no field took. Call after the fields.
  void report_unknown() const;

 private:
  const ConfigNode* take(const Key& key);
  /// Reports a value that should be a section.
  void report_no_section(const ConfigNode& node, const Key& key) const;

  template <class T>
  void read_section(const ConfigNode& node, const Key& key, T& value) {
    if (node.is_map() || node.is_null()) {
      Reader inner(node, join_path(path_, key.name), problems_);
      fields(inner, value);
      inner.report_unknown();
    } else {
      report_no_section(node, key);
    }
  }

  template <class T>
  void read_section(const ConfigNode& node, const Key& key, std::optional<T>& value) {
    if (node.is_scalar() && node.text == key.absent) {
      value.reset();
      return;
    }
    value.emplace();
    read_section(node, key, *value);
  }

  const ConfigNode& section_;
  std::string path_;
  Problems& problems_;
  std::vector<std::string> names_;
};

/// Reads a merged tree into a scenario.
void read_scenario(const ConfigNode& tree, Problems& problems, Scenario& scenario);

}  // namespace wafersim::config
