#include "base/error.h"

namespace wafersim {
namespace {

std::string joined(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += problem.to_string();
  }
  return text;
}

}  // namespace

std::string Location::to_string() const {
  if (line == 0) return file;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string Problem::to_string() const {
  std::string text = where.to_string();
  if (!text.empty()) text += ": ";
  if (!path.empty()) text += path + ": ";
  return text + message;
}

ScenarioError::ScenarioError(std::vector<Problem> problems)
    : Error(ExitStatus::scenario, joined(problems)), problems_(std::move(problems)) {}

}  // namespace wafersim
