#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "topology/routing.h"

namespace wafersim::topology {

/// A range [begin, end) of ranks.
struct RankRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// A link towards the root.
struct UpLink {
  std::uint32_t parent;  ///< rank of the tile above
  Direction direction;   ///< from the child to the parent
};

/// Live tiles in the order in which they may become the root of their connected part: from the nearest to the
/// farthest from a corner of the mesh, then by id. The first of each part becomes its root: without faults
/// that is a corner, from where up*/down* has a minimal path for every pair.
std::vector<TileId> roots_near_corners(const Mesh& mesh);
/// From the nearest to the farthest from one corner.
std::vector<TileId> roots_near(const Mesh& mesh, Coord corner);

/// All live tiles ranked breadth first from the root of their connected part, part after part. `up` means to
/// a lower rank. A mesh is bipartite, so a link joins neighbouring levels; of rings of odd length one may join two
/// tiles of the same level.
class UpDownOrder {
 public:
  UpDownOrder(const Mesh& mesh, const std::vector<TileId>& roots);

  const std::vector<RankRange>& parts() const { return parts_; }
  TileId tile(std::uint32_t rank) const { return tiles_[rank]; }
  /// Only of live tiles.
  std::uint32_t rank(TileId tile) const { return rank_of_[tile]; }
  std::uint32_t live_tiles() const { return static_cast<std::uint32_t>(tiles_.size()); }
  /// Eastward and westward links come first.
  std::pair<const UpLink*, const UpLink*> up_links(std::uint32_t rank) const {
    return {up_links_.data() + first_up_[rank], up_links_.data() + first_up_[rank + 1]};
  }

 private:
  void rank_tiles(const Mesh& mesh, const std::vector<TileId>& roots);
  void collect_up_links(const Mesh& mesh);

  std::vector<TileId> tiles_;           ///< by rank
  std::vector<std::uint32_t> rank_of_;  ///< by tile
  std::vector<RankRange> parts_;        ///< connected parts
  std::vector<UpLink> up_links_;        ///< those of rank r start at first_up_[r]
  std::vector<std::uint32_t> first_up_;
};

/// The turns of the up*/down* rule: all but turning back and going up after down.
TurnSets turn_sets(const UpDownOrder& order, const Mesh& mesh);

}  // namespace wafersim::topology
