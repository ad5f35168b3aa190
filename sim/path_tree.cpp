#include "sim/path_tree.h"

#include <algorithm>

#include "base/error.h"

namespace wafersim::sim {
namespace {

bool same_operations(const PathNode& a, const PathNode& b) {
  return a.mark == PathMark::none && b.mark == PathMark::none && is_operation(a.kind) && !a.parts && !b.parts && a.kind == b.kind &&
         a.axis == b.axis && a.tile == b.tile && a.other == b.other;
}

}  // namespace

void PathTree::backwards() { throw InternalError("a chain of causes goes back in time"); }

/// Parents come before their children: one pass back finds what is held, one forward moves it together.
void PathTree::compact(std::size_t first, std::size_t ends) {
  for (std::size_t i = nodes_.size(); i-- != first;) {
    const std::uint32_t holders = places_[i - first], parent = nodes_[i].parent;
    nodes_[i].alone = holders == 1;
    if (holders != 0 && parent != kNil && parent >= first) ++places_[parent - first];
  }
  std::size_t kept = first;
  for (std::size_t i = first; i < nodes_.size(); ++i) {
    std::uint32_t& place = places_[i - first];
    if (place == 0) continue;
    PathNode node = nodes_[i];
    if (node.parent != kNil && node.parent >= first) {
      node.parent = places_[node.parent - first];
      PathNode& parent = nodes_[node.parent];
      if (parent.alone && same_operations(parent, node)) {
        parent.to = node.to;
        parent.number += node.number;
        parent.alone = node.alone;
        place = node.parent;
        continue;
      }
    }
    place = static_cast<std::uint32_t>(kept);
    nodes_[kept++] = node;
  }
  nodes_.resize(kept);
  old_ = kept;
  // So that a node costs about as much when it is collected as when it came.
  const std::size_t young = std::max(young_, ends / 2);
  if (first == 0) {
    if (kept > most_ / 2) return overflow();
    old_limit_ = kept + std::max(kept / 2, 2 * young);
    // Up to the next time, and those that come until somebody asks whether it is time.
    nodes_.reserve(std::min(old_limit_ + 2 * young, most_) + young / 8);
  }
  if (old_ + young > most_) old_limit_ = old_;
  limit_ = std::min(old_ + young, most_);
}

void PathTree::overflow() {
  full_ = true;
  nodes_ = {};
  old_ = 0;
  limit_ = 1;  // there never is a node
}

}  // namespace wafersim::sim
