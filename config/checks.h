#pragma once

#include "config/node.h"
#include "config/problems.h"
#include "config/scenario.h"

namespace wafersim::config {

/// Fills in the defaults that depend on other keys (kv_heads, head_dim, context of the model).
void complete(const ConfigNode& tree, Scenario& scenario);

/// Reports values that are fine on their own but contradict each other. A check is left out when a value it
/// needs was already reported.
void check_scenario(const ConfigNode& tree, const Scenario& scenario, Problems& problems);

}  // namespace wafersim::config
