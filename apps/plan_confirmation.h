#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/scenario.h"

namespace wafersim::apps {

using Clock = std::chrono::steady_clock;

/// A scenario to be simulated, and what came of it.
struct Confirmation {
  config::Scenario scenario;
  std::optional<Cycle> cycles;
  std::optional<double> joules;  ///< where energy is modelled
  std::string fault;  ///< why there are none
};

/// Simulates scenarios in processes of their own, `jobs` at a time, with files in `work`, which must not exist and is removed
/// again. Stops at an interrupt or at `deadline`; what was running then has a fault.
void simulate_all(std::vector<Confirmation>& confirmations, const std::filesystem::path& work, std::size_t jobs,
                  std::optional<Clock::time_point> deadline);

}  // namespace wafersim::apps
