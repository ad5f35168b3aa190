#pragma once

#include <string>
#include <vector>

#include "analysis/critical_path.h"
#include "config/scenario.h"

namespace wafersim::apps {

/// The keys of a scenario, as --set takes them, that make its machine into the changed one; none where
/// nothing of it is limited. Throws ScenarioError, naming `file`, where no keys can say it.
std::vector<std::string> overrides_of(const analysis::MachineChange& change, const config::Scenario& scenario,
                                      const std::string& file);

}  // namespace wafersim::apps
