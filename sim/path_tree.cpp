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

/// All the room there may be is asked for at once: it is memory when it is used, and nodes never move.
PathTree::PathTree(std::size_t most, std::size_t young)
    : young_(young), most_(most), limit_(std::min(young, most)), old_limit_(limit_) {
  // Nodes come also until somebody asks whether it is time.
  nodes_.reserve(most + young / 8);
}

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
  // So that a node costs about as much when it is collected as when it came: each end is looked at twice.
  const std::size_t young = std::max(young_, 3 * ends);
  if (first == 0) {
    if (kept > most_ / 2) return give_up();
    old_limit_ = kept + std::max(kept / 2, 2 * young);
  }
  if (old_ + young > most_) old_limit_ = old_;
  limit_ = std::min(old_ + young, most_);
}

void PathTree::give_up() {
  full_ = true;
  nodes_ = {};
  old_ = 0;
  limit_ = 1;  // there never is a node
}

}  // namespace wafersim::sim
