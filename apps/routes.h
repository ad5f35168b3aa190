#pragma once

#include <memory>
#include <string>

#include "topology/mesh.h"
#include "topology/routing.h"

namespace wafersim::apps {

/// Throws PlanError with the links of the cycle when packets under this routing can wait for each other in a circle.
void check_deadlock_free(const std::string& name, const topology::Routing& routing, const topology::Mesh& mesh);
/// topology::make_routing(), checked.
std::unique_ptr<topology::Routing> make_safe_routing(const std::string& name, const topology::Mesh& mesh);

}  // namespace wafersim::apps
