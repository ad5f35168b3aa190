#pragma once

#include "topology/routing_policy.h"

namespace wafersim::topology {

/// All turns from a live link to a live link, those back included, for which `permits(link, through, out)`
/// holds: through which tile the link leads, and where to. Private to this folder.
template <class Permits>
TurnSets live_turns(const Mesh& mesh, const Permits& permits) {
  TurnSets turns(mesh.link_slots(), 0);
  for (LinkId link = 0; link < mesh.link_slots(); ++link) {
    if (!mesh.link_alive(link)) continue;
    const TileId through = mesh.neighbour(Mesh::link_source(link), Mesh::link_direction(link));
    for (const Direction out : kAllDirections) {
      if (mesh.link_alive(Mesh::link(through, out)) && permits(link, through, out))
        turns[link] |= turn_bit(out);
    }
  }
  return turns;
}

}  // namespace wafersim::topology
