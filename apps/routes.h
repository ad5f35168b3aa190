#pragma once

#include <memory>
#include <string>

#include "models/hardware.h"
#include "topology/dependency_graph.h"
#include "topology/mesh.h"
#include "topology/routing.h"

namespace wafersim::apps {

/// Whether routes under a policy of this name are a function of place and destination: those can be simulated.
bool is_fixed(const std::string& routing);

/// Says that packets of this routing could deadlock, and the cycle.
std::string deadlock_text(const std::string& routing, const topology::DependencyVerdict& verdict,
                          const topology::Mesh& mesh);

/// Throws PlanError with the links of the cycle when packets under `policy`, which is the hardware's routing, can wait for
/// each other in a circle.
void check_deadlock_free(const models::HardwareModel& hardware, const topology::RoutingPolicy& policy,
                         const topology::Mesh& mesh);

/// topology::make_routing() of the hardware's routing, checked. Throws PlanError also when it is not fixed.
std::unique_ptr<topology::Routing> make_safe_routing(const models::HardwareModel& hardware, const topology::Mesh& mesh);

}  // namespace wafersim::apps
