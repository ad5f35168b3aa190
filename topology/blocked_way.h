#pragma once

#include <optional>

#include "base/error.h"
#include "topology/routing_policy.h"

namespace wafersim::topology {

/// Why a policy has no way from one tile to another. Private to this folder.

/// `dead` is a dead link on the way; without one, no live way exists at all.
PlanError blocked_way(const RoutingPolicy& policy, const Mesh& mesh, TileId source, TileId destination,
                      std::optional<LinkId> dead);
/// Throws when one of the two tiles is dead itself.
void require_live_ends(const RoutingPolicy& policy, const Mesh& mesh, TileId source, TileId destination);

}  // namespace wafersim::topology
