#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/demand.h"
#include "topology/mesh.h"

namespace wafersim::topology {

/// Where a packet goes next: one of the four directions, or `local` when it is at its destination.
enum class Hop : std::uint8_t { north = 0, east = 1, south = 2, west = 3, local = 4, unreachable = 5 };

constexpr Hop to_hop(Direction direction) { return static_cast<Hop>(direction); }
/// The direction of a hop to a neighbour; nothing for `local` and `unreachable`.
constexpr std::optional<Direction> to_direction(Hop hop) {
  if (hop >= Hop::local) return std::nullopt;
  return static_cast<Direction>(hop);
}

/// By link slot: the set of outputs, a turn_bit each, that a packet which came over this link may leave by.
using TurnSets = std::vector<std::uint8_t>;
constexpr std::uint8_t turn_bit(Direction out) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(out));
}

/// The dimension along which a packet goes first.
enum class Dimension : std::uint8_t { x, y };

/// A deterministic routing function. Stateless after construction, safe to call from many threads.
class Routing {
 public:
  virtual ~Routing() = default;
  virtual const std::string& name() const = 0;
  /// The output that a packet for `destination` takes at `at`; `unreachable` when the policy has no live way.
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
};

/// The names that make_routing accepts.
const std::vector<std::string>& routing_names();

/// Makes the routing function `name` on `mesh` (which must outlive it): `xy` and `yx` (dimension order; x
/// first or y first), `table` (shortest live paths under the up*/down* rule, for meshes with faults),
/// `balanced` (made for `demands`, which the others ignore; see topology/balanced_routing.h). Throws
/// PlanError for an unknown name, and for `table` and `balanced` when their tables would be too large.
std::unique_ptr<Routing> make_routing(const std::string& name, const Mesh& mesh, const Demands& demands = {});

/// The links of the route in order; empty when source = destination.
/// Throws PlanError naming the source, the destination and the dead tile or link when the way is blocked.
std::vector<LinkId> route(const Routing& routing, const Mesh& mesh, TileId source, TileId destination);

/// Checks the channel dependency graph of the routes between all live pairs (built with Boost.Graph from the
/// turns that the routing permits, not from simulated traffic). Returns an empty vector when it is acyclic,
/// else the links of one cycle.
std::vector<LinkId> find_dependency_cycle(const Routing& routing, const Mesh& mesh);

}  // namespace wafersim::topology
