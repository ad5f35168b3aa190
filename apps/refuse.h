#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace wafersim::apps {

/// Throws ScenarioError: the scenario cannot be used for what the command line asks.
[[noreturn]] inline void refuse(const std::string& file, const std::string& key, const std::string& message) {
  std::vector<Problem> problems(1);
  problems.front().where.file = file;
  problems.front().path = key;
  problems.front().message = message;
  throw ScenarioError(std::move(problems));
}

}  // namespace wafersim::apps
