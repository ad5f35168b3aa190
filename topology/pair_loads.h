#pragma once

#include "topology/link_loads.h"

namespace wafersim::topology {

/// Bytes by tile: `bytes` for each live one, 0 for dead ones.
std::vector<Bytes> live_bytes(const Mesh& mesh, Bytes bytes);

/// The bytes that each link carries when every live tile s sends from[s] + to[d] bytes to every other live
/// tile d. Both by tile, 0 for dead ones. Time: the tiles where all routes are straight
/// (Routing::straight_first()), else their square. Throws PlanError when a pair has no live route. Loads must
/// fit 64 bits.
LinkBytes pair_loads(const Routing& routing, const Mesh& mesh, const std::vector<Bytes>& from,
                     const std::vector<Bytes>& to);

}  // namespace wafersim::topology
