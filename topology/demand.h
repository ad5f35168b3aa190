#pragma once

#include <vector>

#include "base/units.h"

namespace wafersim::topology {

/// Known traffic between two tiles: the sum of all bytes that `source` sends to `destination`.
struct Demand {
  TileId source = 0;
  TileId destination = 0;
  Bytes bytes = 0;
  bool operator==(const Demand&) const = default;
};
using Demands = std::vector<Demand>;

/// Sorted by source, then destination, one entry for each pair; without pairs of zero bytes and without tiles
/// that send to themselves, which load no link.
Demands merged(Demands demands);

class Mesh;
/// The same between the tiles that the routers of sources and destinations go by, in the same order.
Demands between_routers(const Mesh& mesh, Demands demands);

}  // namespace wafersim::topology
