#include "topology/blocked_way.h"

#include <fmt/format.h>

namespace wafersim::topology {
namespace {

PlanError no_way(const RoutingPolicy& policy, const Mesh& mesh, TileId source, TileId destination,
                 const std::string& why) {
  return PlanError(fmt::format("no '{}' route from {} to {}: {}", policy.name(), mesh.name(source),
                               mesh.name(destination), why));
}

}  // namespace

PlanError blocked_way(const RoutingPolicy& policy, const Mesh& mesh, TileId source, TileId destination,
                      std::optional<LinkId> dead) {
  if (!dead) {
    return no_way(policy, mesh, source, destination, "dead tiles or links cut every live path between them");
  }
  const TileId ahead = mesh.neighbour(Mesh::link_source(*dead), Mesh::link_direction(*dead));
  const bool tile = ahead != kNoTile && !mesh.alive(ahead);
  const std::string what = tile ? mesh.name(ahead) : "link " + mesh.link_name(*dead);
  return no_way(policy, mesh, source, destination,
                what + " on its way is dead; 'routing: table' would avoid it");
}

void require_live_ends(const RoutingPolicy& policy, const Mesh& mesh, TileId source, TileId destination) {
  for (const TileId end : {source, destination}) {
    if (!mesh.alive(end)) throw no_way(policy, mesh, source, destination, mesh.name(end) + " is dead");
  }
}

}  // namespace wafersim::topology
