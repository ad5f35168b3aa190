#pragma once

#include <cstdint>
#include <optional>

#include "base/rational.h"
#include "topology/mesh.h"

namespace wafersim::topology {

std::uint64_t live_tiles(const Mesh& mesh);

/// Hops of the shortest live paths between live tiles that are connected, in order: from each to each.
struct DistanceMetrics {
  std::uint32_t parts = 0;       ///< connected parts of the live mesh; pairs of different parts are left out
  int diameter = 0;              ///< hops of the farthest pair
  std::optional<Rational> mean;  ///< hops, pairs of a tile with itself included; nothing without live tiles
  std::optional<Rational> mean_of_others;  ///< without those; nothing with fewer than two connected tiles
};

/// In closed form without faults, else by a search from each live tile, with Boost.Graph. Nothing above
/// 65,536 tiles with faults: the searches would take longer than anyone waits.
std::optional<DistanceMetrics> measure_distances(const Mesh& mesh);

/// A straight cut that parts the first columns or rows from the others: between two neighbouring lines, and on a ring
/// between its last and its first tile, too.
struct StraightCut {
  bool between_columns = true;
  int before = 0;                ///< the line on the west or north side of it
  std::uint64_t links = 0;       ///< live ones across it, one way; as many lead back
  Rational rate{0};              ///< their bandwidth, in plain links
  std::uint64_t low_tiles = 0;   ///< live ones on its west or north side
  std::uint64_t high_tiles = 0;  ///< on the other
};

/// All straight cuts: between columns from west to east, then between rows from north to south.
std::vector<StraightCut> straight_cuts(const Mesh& mesh);

/// Of the cuts through the middle (with an odd number of lines, those on either side of the middle one) the
/// one with the least bandwidth, the first among equals. Nothing on a single tile.
std::optional<StraightCut> bisection(const Mesh& mesh);

/// Bytes that each live tile can send to random live tiles, itself included, in the time in which a plain link
/// carries one byte: no routes let more over the straight cuts. Nothing when no cut binds.
std::optional<Rational> uniform_cut_bound(const Mesh& mesh);

}  // namespace wafersim::topology
