#pragma once

#include <memory>
#include <string>

#include "models/hardware.h"
#include "topology/dependency_graph.h"
#include "topology/mesh.h"
#include "topology/routing_policy.h"

namespace wafersim::apps {

/// Says that packets of this routing could deadlock, the cycle, and how many virtual channels would do.
std::string deadlock_text(const topology::RoutingPolicy& policy, const topology::DependencyVerdict& verdict,
                          const topology::Mesh& mesh);

/// Throws PlanError with the links of the cycle when packets under `policy` can wait for each other in a
/// circle on the hardware's virtual channels.
void check_deadlock_free(const models::HardwareModel& hardware, const topology::RoutingPolicy& policy,
                         const topology::Mesh& mesh);

/// topology::make_routing_policy() of the hardware's routing, checked.
std::unique_ptr<topology::RoutingPolicy> make_safe_routing(const models::HardwareModel& hardware,
                                                           const topology::Mesh& mesh);

}  // namespace wafersim::apps
