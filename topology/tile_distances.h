#pragma once

#include <vector>

#include "topology/mesh.h"

namespace wafersim::topology {

/// Tiles ordered by Mesh::distance(). Private to this folder.
class TileDistances {
 public:
  /// `mesh` must outlive this.
  explicit TileDistances(const Mesh& mesh) : mesh_(mesh) {}

  /// All tiles, dead ones too, from the nearest to the farthest; equally near ones by id. Valid until the
  /// next call.
  const std::vector<TileId>& from(TileId tile) {
    return within(tile, {0, 0}, {mesh_.cols() - 1, mesh_.rows() - 1});
  }
  /// Those of the rectangle between two corners, both included.
  const std::vector<TileId>& within(TileId tile, Coord low, Coord high);

 private:
  const Mesh& mesh_;
  std::vector<TileId> order_;
  std::vector<std::uint32_t> first_;  ///< by distance, where in order_ the next tile goes
};

}  // namespace wafersim::topology
