#pragma once

#include "topology/routing.h"
#include "workloads/trace.h"

namespace wafersim::workloads {

/// Throws PlanError when a message of the trace has no live way under `routing` (naming source, destination and the dead tile or
/// link). Costs nothing on a mesh without faults.
void check_routes(const Trace& trace, const topology::Mesh& mesh, const topology::RoutingPolicy& routing);

}  // namespace wafersim::workloads
