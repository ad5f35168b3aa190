#pragma once

#include "topology/demand.h"
#include "workloads/trace.h"

namespace wafersim::workloads {

/// What the tiles send each other in the first iteration of a trace: bytes by pair of tiles, as
/// topology::merged(). Other iterations send the same.
topology::Demands demands_of(const Trace& trace);

}  // namespace wafersim::workloads
