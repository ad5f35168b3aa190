#pragma once

#include "topology/link_loads.h"

namespace wafersim::topology {

/// The bytes that each link carries when at each tile what came in by one link for one destination is split
/// evenly over the outputs that the policy permits; bytes that do not divide go one each to the first of them
/// in the order north, east, south, west. For minimal policies of one class. What an adaptive router really
/// does depends on the run. Throws PlanError when a demand has no live route.
LinkBytes even_split_loads(const RoutingPolicy& policy, const Mesh& mesh, const Demands& demands);

}  // namespace wafersim::topology
