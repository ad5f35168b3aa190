#include "workloads/reduction_tree.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace wafersim::workloads {
namespace {

/// k_tree, see StreamedAlgorithm.
int towards_middle(int at, int last, int group) {
  const int number = (at + group / 2) / group;
  const int first = std::min(number * group, last);
  if (at == first && number > 0) return (number - 1) * group;
  return at > first ? at - 1 : at + 1;
}

/// To whom tile `at` > 0 of a line of the tiles 0 .. `last` to tile 0 sends.
int towards_first(StreamedAlgorithm algorithm, int at, int last, int group) {
  switch (algorithm) {
    case StreamedAlgorithm::chain:
      return at - 1;
    case StreamedAlgorithm::star:
      return 0;
    case StreamedAlgorithm::tree:
      return at & (at - 1);
    case StreamedAlgorithm::two_phase:
      return at % group != 0 ? at - 1 : at - group;
    case StreamedAlgorithm::k_tree:
      return towards_middle(at, last, group);
    case StreamedAlgorithm::ring:
    case StreamedAlgorithm::router_multicast:
      break;
  }
  throw InternalError("not a reduction tree");
}

}  // namespace

ReductionTree::ReductionTree(StreamedAlgorithm algorithm, const topology::Shape& shape, topology::Coord root, int row_group,
                             int column_group)
    : shape_(shape), parents_(static_cast<std::size_t>(shape.size()), -1), children_(parents_.size()) {
  order_.reserve(parents_.size());
  // On either side of tile `from` of a line.
  const auto towards = [algorithm](int from, int at, int tiles, int group) {
    const int last = at > from ? tiles - 1 - from : from;
    const int away = towards_first(algorithm, std::abs(at - from), last, group);
    return at > from ? from + away : from - away;
  };
  for (int rank = 0; rank < shape.size(); ++rank) {
    const int x = rank % shape.cols;
    const int y = rank / shape.cols;
    if (x == root.x && y == root.y) continue;
    const int to = x != root.x ? y * shape.cols + towards(root.x, x, shape.cols, row_group)
                               : towards(root.y, y, shape.rows, column_group) * shape.cols + root.x;
    parents_[static_cast<std::size_t>(rank)] = to;
    children_[static_cast<std::size_t>(to)].push_back(rank);
  }
  order_.push_back(root.y * shape.cols + root.x);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::vector<int>& below = children_[static_cast<std::size_t>(order_[i])];
    order_.insert(order_.end(), below.begin(), below.end());
  }
  require_invariant(order_.size() == parents_.size(), "a reduction tree reaches all tiles");
  std::vector<int> height(parents_.size(), 0);  // hops to the farthest tile below
  for (std::size_t i = order_.size() - 1; i > 0; --i) {
    const int rank = order_[i];
    int& above = height[static_cast<std::size_t>(parent(rank))];
    above = std::max(above, height[static_cast<std::size_t>(rank)] + hops(rank, parent(rank)));
  }
  const auto reach = [&](int rank) { return height[static_cast<std::size_t>(rank)] + hops(rank, parent(rank)); };
  for (std::vector<int>& list : children_) {
    std::stable_sort(list.begin(), list.end(), [&](int a, int b) { return reach(a) > reach(b); });
  }
}

int ReductionTree::hops(int rank, int to) const {
  return std::abs(rank % shape_.cols - to % shape_.cols) + std::abs(rank / shape_.cols - to / shape_.cols);
}

/// All edges lie in a row or in the root's column, so every link of the rows and of that column is used towards the root:
/// one less than tiles. The chains of k_tree that lead away from it use a link the other way for each of their tiles.
models::SpatialTerms ReductionTree::terms(const Rational& bytes) const {
  std::int64_t energy = 0;
  std::int64_t most_children = 1;
  std::int64_t outward = 0;
  std::vector<std::int64_t> depth(parents_.size(), 0), distance(parents_.size(), 0);
  for (const int rank : order_) {
    if (rank == root()) continue;
    const auto at = static_cast<std::size_t>(rank);
    const auto to = static_cast<std::size_t>(parent(rank));
    energy += hops(rank, parent(rank));
    if (hops(rank, root()) < hops(parent(rank), root())) ++outward;
    depth[at] = depth[to] + 1;
    distance[at] = distance[to] + hops(rank, parent(rank));
    most_children = std::max(most_children, static_cast<std::int64_t>(children_[to].size()));
  }
  return {bytes * Rational(most_children), bytes * Rational(energy), size() - 1 + outward,
          *std::max_element(distance.begin(), distance.end()), *std::max_element(depth.begin(), depth.end())};
}

}  // namespace wafersim::workloads
