#pragma once

#include <memory>
#include <string>

#include "topology/routing_policy.h"

namespace wafersim::topology {

/// Which turns an adaptive policy permits and where they lead. Stateless, safe to call from many threads.
class AdaptiveRule {
 public:
  virtual ~AdaptiveRule() = default;
  /// A packet that travels in direction `in` may leave `at` in direction `out`.
  virtual bool permits(Coord at, Direction in, Direction out) const = 0;
  /// Without faults: the outputs that bring a packet nearer and from which it has a minimal permitted way,
  /// never none; `at` is not the destination, `came` as in RoutingPolicy::outputs().
  virtual OutputSet outputs(Coord at, Hop came, Coord destination) const = 0;
};

/// Minimal routes in one class of virtual channels; of the outputs that a rule permits a packet may take any.
///
/// On a mesh with faults a packet does not see the outputs from which no live permitted way is left: a byte
/// for each pair of tiles. Throws PlanError when a pair of live tiles has no way at all, and above 65,536
/// tiles. `mesh` must outlive the result.
std::unique_ptr<RoutingPolicy> make_adaptive_routing(const Mesh& mesh, std::string name,
                                                     std::unique_ptr<AdaptiveRule> rule);

/// What rules choose from: the directions along the row and along the column that bring a packet nearer.
struct Productive {
  std::optional<Direction> row;
  std::optional<Direction> column;
};
constexpr Productive productive(Coord at, Coord destination) {
  using enum Direction;
  Productive result;
  if (at.x != destination.x) result.row = destination.x > at.x ? east : west;
  if (at.y != destination.y) result.column = destination.y > at.y ? south : north;
  return result;
}

}  // namespace wafersim::topology
