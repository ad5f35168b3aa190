#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace wafersim::config {

/// Collects everything that is wrong with a scenario, so that one run of the reader reports all of it.
class Problems {
 public:
  void add(Location where, std::string path, std::string message);
  bool empty() const { return problems_.empty(); }

  /// A problem was reported at `path` or below it.
  bool concerns(const std::string& path) const;

  /// Sources in the order in which the report lists them.
  void register_source(const std::string& file);

  /// A source of top-level section `section` could not be read: its missing keys say nothing.
  void mark_incomplete(const std::string& section) { incomplete_.insert(section); }
  bool is_incomplete(const std::string& section) const { return incomplete_.contains(section); }

  /// Throws ScenarioError with the problems by source, line and column when there are any.
  void throw_if_any();

 private:
  std::size_t rank(const std::string& file) const;

  std::vector<Problem> problems_;
  std::vector<std::string> sources_;
  std::set<std::string> incomplete_;
};

}  // namespace wafersim::config
