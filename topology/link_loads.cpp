#include "topology/link_loads.h"

#include <algorithm>

#include "base/error.h"

namespace wafersim::topology {

Demands merged(Demands demands) {
  std::erase_if(demands, [](const Demand& demand) {
    return demand.bytes == 0 || demand.source == demand.destination;
  });
  std::sort(demands.begin(), demands.end(), [](const Demand& a, const Demand& b) {
    return a.source != b.source ? a.source < b.source : a.destination < b.destination;
  });
  std::size_t count = 0;
  for (const Demand& demand : demands) {
    const bool same = count > 0 && demands[count - 1].source == demand.source &&
                      demands[count - 1].destination == demand.destination;
    if (same) {
      demands[count - 1].bytes += demand.bytes;
    } else {
      demands[count++] = demand;
    }
  }
  demands.resize(count);
  return demands;
}

LoadSummary summarize(const LinkBytes& loads) {
  LoadSummary summary;
  for (const Bytes bytes : loads) {
    summary.largest = std::max(summary.largest, bytes);
    summary.byte_hops += bytes;
  }
  return summary;
}

LinkBytes link_loads(const Routing& routing, const Mesh& mesh, const Demands& demands) {
  LinkBytes loads(mesh.link_slots(), 0);
  for (const Demand& demand : demands) {
    TileId at = demand.source;
    int hops = 0;
    for (Hop hop = routing.next(at, demand.destination); hop != Hop::local;
         hop = routing.next(at, demand.destination)) {
      const std::optional<Direction> direction = to_direction(hop);
      // route() knows how to say why there is no way.
      if (!direction) {
        route(routing, mesh, demand.source, demand.destination);
        throw InternalError("a route is blocked for link_loads() only");
      }
      loads[Mesh::link(at, *direction)] += demand.bytes;
      at = mesh.neighbour(at, *direction);
      require_invariant(++hops < static_cast<int>(mesh.tile_count()), "a route does not end");
    }
  }
  return loads;
}

}  // namespace wafersim::topology
