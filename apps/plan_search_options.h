#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wafersim::apps {

/// How a search is made.
struct PlanSearchOptions {
  std::size_t most_plans = 2000;
  std::size_t top = 5;                 ///< plans of each family that are simulated
  std::optional<std::uint64_t> seed;   ///< absent = that of the scenario
  std::size_t jobs = 0;                ///< 0 = one for each processor
  double budget_seconds = 0;           ///< 0 = no limit
  std::vector<std::string> baselines;  ///< names of analysis::PlanFamily
  std::vector<std::string> kept;       ///< keys that are not searched
  bool operators = false;              ///< attention and MLP may have degrees of their own
};

}  // namespace wafersim::apps
