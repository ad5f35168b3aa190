#pragma once

#include <memory>
#include <string>

#include "topology/link_loads.h"
#include "topology/routing.h"

namespace wafersim::topology {

/// A route of `balanced` is at most this many hops longer than the one it was made from, which without faults
/// is minimal. On a mesh two hops are the shortest detour there is.
inline constexpr int kDetourHops = 2;

/// What balancing the routes has brought, in bytes of the demands it was made for; on links of another bandwidth as plain
/// ones (Mesh::plain_bytes()).
struct RoutingReport {
  std::string baseline;  ///< "xy"; "table" on rings and where dead tiles or links block a route of xy
  LoadSummary before;    ///< of the baseline
  LoadSummary after;
  Bytes bound = 0;                       ///< no routes at all have a smaller largest load (cut_bound())
  std::string turns;                     ///< the rule that keeps the routes free of deadlock, for people
  std::uint64_t moved_destinations = 0;  ///< destinations to which some route differs from the rule's own
};

struct BalancedRoutes {
  std::unique_ptr<Routing> routing;
  RoutingReport report;
};

/// Chooses routes that lower the largest link load of known traffic. The routes to one destination form a
/// tree: routes that meet stay together, so next(at, destination) needs no source.
///
/// Deadlock freedom: all routes keep to one set of turns whose dependency graph has no cycle. Without faults
/// these are the twelve turn models of Glass and Ni, starting from minimal routes; with faults or rings, the up*/down*
/// rule with its root in each of the four corners, starting from the routes of `table`. All are tried, the
/// best is kept; the first of equals.
///
/// For each set of turns: routes over the most loaded link move, destination by destination in the order of
/// their bytes on it, to the shortest way of which no link becomes as loaded as that one was, until nothing
/// on the most loaded link can move. For the best sets the same is then done with the other links, which
/// makes room for more. So without faults and rings the largest load is never above that of xy, with them never above
/// that of `table`. A tree always covers every live tile of its part of the mesh, demands or not.
///
/// Integers only, no random choice: the same demands give the same routes. Demands between tiles that no live
/// way joins are left out of the report; next() has no way for them. Throws PlanError for a mesh with faults
/// of more than 65,536 tiles.
BalancedRoutes balance_routes(const Mesh& mesh, const Demands& demands);

}  // namespace wafersim::topology
