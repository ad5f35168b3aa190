#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/routing_policy.h"

namespace wafersim::topology {

/// A routing function: the policy whose outputs depend on place and destination only.
class Routing : public RoutingPolicy {
 public:
  /// The output that a packet for `destination` takes at the router that goes by `at`; `unreachable` when the policy has no
  /// live way.
  virtual Hop next(TileId at, TileId destination) const = 0;

  /// Where next() is `unreachable`: the dead output that the policy insists on, or nothing when no live way
  /// exists at all. For messages only.
  virtual std::optional<Direction> blocked_output(TileId at, TileId destination) const;
  /// Set when every route goes straight to the destination's coordinate in this dimension and then straight
  /// in the other, with nothing in its way: what traffic loads the links with then has a short cut.
  virtual std::optional<Dimension> straight_first() const { return std::nullopt; }
  /// The turns that the routes on `mesh` may take. Unless a policy knows better these are exactly the turns
  /// of the routes between all pairs of live tiles, found by asking next() for each (time quadratic in the
  /// tiles).
  virtual TurnSets permitted_turns(const Mesh& mesh) const;

  const Routing* fixed(unsigned) const final { return this; }
  OutputSet outputs(TileId at, Hop came, const Travel& travel) const final;
  TurnSets class_turns(const Mesh& mesh, unsigned vc_class) const override;
  ExpectedLoads expected_loads(const Mesh& mesh, const Demands& demands) const final;
  std::optional<ExpectedLoads> uniform_loads(const Mesh& mesh) const final;
};

/// The names that make_routing accepts.
const std::vector<std::string>& routing_names();

/// Makes the routing function `name` on `mesh` (which must outlive it): `xy` and `yx` (dimension order; x
/// first or y first), `table` (shortest live paths under the up*/down* rule, for meshes with faults),
/// `balanced` (made for `demands`, which the others ignore; see topology/balanced_routing.h). Throws
/// PlanError for an unknown name, and for `table` and `balanced` when their tables would be too large.
std::unique_ptr<Routing> make_routing(const std::string& name, const Mesh& mesh, const Demands& demands = {});

/// The links of the route in order; empty when source and destination have the same router.
/// Throws PlanError naming the source, the destination and the dead tile or link when the way is blocked.
std::vector<LinkId> route(const Routing& routing, const Mesh& mesh, TileId source, TileId destination);

/// Throws as route() does when a packet from `source` to `destination` might find no live way. Policies that
/// are no routing functions have one for every pair of live tiles.
void require_way(const RoutingPolicy& policy, const Mesh& mesh, TileId source, TileId destination);

}  // namespace wafersim::topology
