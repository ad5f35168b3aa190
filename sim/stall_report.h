#pragma once

#include <string>

#include "sim/tile.h"

namespace wafersim::sim {

/// Says who waits for whom when nothing is left to happen and not all cores have finished: receives that nobody serves with
/// tiles, keys and bytes, the cycle of tiles that wait for each other if there is one, and packets stuck in routers or, of a flit
/// network (`flits` not null), the circle of virtual channels.
std::string describe_stall(const Wafer& wafer, const topology::Mesh& mesh, const NetworkContext& network,
                           const FlitMesh* flits, Cycle now);

}  // namespace wafersim::sim
