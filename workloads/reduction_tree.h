#pragma once

#include <vector>

#include "models/spatial_cost.h"
#include "topology/mesh.h"
#include "workloads/streamed_collective.h"

namespace wafersim::workloads {

/// Who sends to whom in a reduction of a rectangle of tiles to one of them; by rank, row by row. Read the other way, who
/// sends to whom in a broadcast.
class ReductionTree {
 public:
  /// `algorithm` is one of the trees; the groups are those of two_phase and k_tree.
  ReductionTree(StreamedAlgorithm algorithm, const topology::Shape& shape, topology::Coord root, int row_group, int column_group);
  /// Of a single row to its tile `root`.
  static ReductionTree line(StreamedAlgorithm algorithm, int tiles, int root, int group) {
    return {algorithm, {1, tiles}, {root, 0}, group, group};
  }

  int size() const { return shape_.size(); }
  int root() const { return order_.front(); }
  /// -1 at the root.
  int parent(int rank) const { return parents_[static_cast<std::size_t>(rank)]; }
  /// Those whose way to the root is longest through here first: the order in which a tile serves them.
  const std::vector<int>& children(int rank) const { return children_[static_cast<std::size_t>(rank)]; }
  /// What a reduction or broadcast of `bytes` along the tree asks of the mesh.
  models::SpatialTerms terms(const Rational& bytes) const;

 private:
  int hops(int rank, int to) const;

  topology::Shape shape_;
  std::vector<int> order_;  ///< each after its parent
  std::vector<int> parents_;
  std::vector<std::vector<int>> children_;
};

}  // namespace wafersim::workloads
