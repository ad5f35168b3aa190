#pragma once

#include <string>
#include <vector>

#include "topology/routing.h"

namespace wafersim::topology {

/// A turn from one direction of travel into another.
struct Turn {
  Direction in;
  Direction out;
  bool operator==(const Turn&) const = default;
};

/// Two turns that no packet may take anywhere, one of each rotation, such that no cycle of links is left
/// (Glass and Ni, "The turn model for adaptive routing", 1992). Turning back is never permitted.
struct TurnModel {
  std::string name;  ///< "no S>W, N>W"
  Turn clockwise;
  Turn counterclockwise;

  bool permits(Direction in, Direction out) const {
    const Turn turn{in, out};
    return out != opposite(in) && turn != clockwise && turn != counterclockwise;
  }
  /// A packet may go along the row first and then along the column, whatever the two directions: dimension
  /// order (`xy`) keeps to the model.
  bool permits_xy() const;
};

/// The twelve turn models whose dependency graph has no cycle; the four that permit `xy` come first.
const std::vector<TurnModel>& turn_models();

/// What a model permits on the live links of a mesh.
TurnSets turn_sets(const TurnModel& model, const Mesh& mesh);

/// Minimal routes under a turn model that need no table: along the row first where the model permits the turn
/// that follows, otherwise along the column first. Knows no way round faults.
Hop quadrant_order_hop(const TurnModel& model, Coord at, Coord destination);

}  // namespace wafersim::topology
