#include "workloads/reduction_tree.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/error.h"

namespace wafersim::workloads {
namespace {

/// To whom tile `at` > 0 of a line to tile 0 sends.
int towards_first(StreamedAlgorithm algorithm, int at, int group) {
  switch (algorithm) {
    case StreamedAlgorithm::chain:
      return at - 1;
    case StreamedAlgorithm::star:
      return 0;
    case StreamedAlgorithm::tree:
      return at & (at - 1);
    case StreamedAlgorithm::two_phase:
      return at % group != 0 ? at - 1 : at - group;
    case StreamedAlgorithm::ring:
    case StreamedAlgorithm::router_multicast:
      break;
  }
  throw InternalError("not a reduction tree");
}

}  // namespace

ReductionTree::ReductionTree(StreamedAlgorithm algorithm, const topology::Shape& shape, topology::Coord root, int row_group,
                             int column_group)
    : shape_(shape), order_(static_cast<std::size_t>(shape.size())), parents_(order_.size(), -1), children_(parents_.size()) {
  // On either side of tile `from` of a line.
  const auto towards = [algorithm](int from, int at, int group) {
    const int away = towards_first(algorithm, std::abs(at - from), group);
    return at > from ? from + away : from - away;
  };
  for (int rank = 0; rank < shape.size(); ++rank) {
    const int x = rank % shape.cols;
    const int y = rank / shape.cols;
    if (x == root.x && y == root.y) continue;
    const int to = x != root.x ? y * shape.cols + towards(root.x, x, row_group)
                               : towards(root.y, y, column_group) * shape.cols + root.x;
    parents_[static_cast<std::size_t>(rank)] = to;
    children_[static_cast<std::size_t>(to)].push_back(rank);
  }
  // A tile's parent is nearer to the root's column, or in it and nearer to the root.
  std::iota(order_.begin(), order_.end(), 0);
  const auto place = [&](int rank) {
    return std::pair(std::abs(rank % shape.cols - root.x), std::abs(rank / shape.cols - root.y));
  };
  std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) { return place(a) < place(b); });
  std::vector<int> height(parents_.size(), 0);  // hops to the farthest tile below
  for (std::size_t i = order_.size() - 1; i > 0; --i) {
    const int rank = order_[i];
    int& above = height[static_cast<std::size_t>(parent(rank))];
    above = std::max(above, height[static_cast<std::size_t>(rank)] + hops_to_parent(rank));
  }
  const auto reach = [&](int rank) { return height[static_cast<std::size_t>(rank)] + hops_to_parent(rank); };
  for (std::vector<int>& list : children_) {
    std::stable_sort(list.begin(), list.end(), [&](int a, int b) { return reach(a) > reach(b); });
  }
}

int ReductionTree::hops_to_parent(int rank) const {
  const int to = parent(rank);
  return std::abs(rank % shape_.cols - to % shape_.cols) + std::abs(rank / shape_.cols - to / shape_.cols);
}

/// All edges lie in a row or in the root's column, so every link of the rows and of that column is used: one less than tiles.
models::SpatialTerms ReductionTree::terms(const Rational& bytes) const {
  std::int64_t hops = 0;
  std::int64_t most_children = 1;
  std::vector<std::int64_t> depth(parents_.size(), 0), distance(parents_.size(), 0);
  for (const int rank : order_) {
    if (rank == root()) continue;
    const auto at = static_cast<std::size_t>(rank);
    const auto to = static_cast<std::size_t>(parent(rank));
    hops += hops_to_parent(rank);
    depth[at] = depth[to] + 1;
    distance[at] = distance[to] + hops_to_parent(rank);
    most_children = std::max(most_children, static_cast<std::int64_t>(children_[to].size()));
  }
  return {bytes * Rational(most_children), bytes * Rational(hops), size() - 1,
          *std::max_element(distance.begin(), distance.end()), *std::max_element(depth.begin(), depth.end())};
}

}  // namespace wafersim::workloads
