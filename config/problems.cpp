#include "config/problems.h"

#include <algorithm>
#include <tuple>

namespace wafersim::config {

void Problems::add(Location where, std::string path, std::string message) {
  problems_.push_back({std::move(where), std::move(path), std::move(message)});
}

bool Problems::concerns(const std::string& path) const {
  return std::any_of(problems_.begin(), problems_.end(), [&](const Problem& problem) {
    if (problem.path.compare(0, path.size(), path) != 0) return false;
    const char next = problem.path.size() > path.size() ? problem.path[path.size()] : '\0';
    return next == '\0' || next == '.' || next == '[';
  });
}

void Problems::register_source(const std::string& file) {
  if (rank(file) == sources_.size()) sources_.push_back(file);
}

std::size_t Problems::rank(const std::string& file) const {
  return static_cast<std::size_t>(std::find(sources_.begin(), sources_.end(), file) - sources_.begin());
}

void Problems::throw_if_any() {
  if (problems_.empty()) return;
  std::stable_sort(problems_.begin(), problems_.end(), [this](const Problem& a, const Problem& b) {
    return std::tuple(rank(a.where.file), a.where.line, a.where.column) <
           std::tuple(rank(b.where.file), b.where.line, b.where.column);
  });
  throw ScenarioError(std::move(problems_));
}

}  // namespace wafersim::config
