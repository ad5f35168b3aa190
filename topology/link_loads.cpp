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

LoadMeter::LoadMeter(const Routing& routing, const Mesh& mesh)
    : routing_(routing),
      step_{-mesh.cols(), 1, mesh.cols(), -1},
      longest_(mesh.tile_count()),
      loads_(mesh.link_slots(), 0) {}

bool LoadMeter::add(const Demand& demand) {
  TileId at = demand.source;
  std::size_t hops = 0;
  while (true) {
    const Hop hop = routing_.next(at, demand.destination);
    if (hop == Hop::local) return true;
    const std::optional<Direction> direction = to_direction(hop);
    if (!direction) return false;
    loads_[Mesh::link(at, *direction)] += demand.bytes;
    at = static_cast<TileId>(at + step_[static_cast<std::size_t>(*direction)]);
    require_invariant(++hops < longest_, "a route does not end");
  }
}

void LoadMeter::clear() { std::fill(loads_.begin(), loads_.end(), 0); }

LinkBytes link_loads(const Routing& routing, const Mesh& mesh, const Demands& demands) {
  LoadMeter meter(routing, mesh);
  for (const Demand& demand : demands) {
    if (meter.add(demand)) continue;
    // route() knows how to say why there is no way.
    route(routing, mesh, demand.source, demand.destination);
    throw InternalError("a route is blocked for link_loads() only");
  }
  return meter.loads();
}

}  // namespace wafersim::topology
