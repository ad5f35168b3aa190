#include "sim/path_tree.h"

#include "base/error.h"

namespace wafersim::sim {
void PathTree::grow(PathRef& path, const PathNode& what) {
  require_invariant(path.to() <= what.to, "a chain of causes goes back in time");
  if (path.to() == what.to) return;
  if (path.node() != kNil && is_operation(what.kind)) {
    PathNode& last = nodes_[path.node()];
    if (last.holders == 1 && last.kind == what.kind && last.axis == what.axis && last.tile == what.tile &&
        last.other == what.other) {
      last.to = what.to;
      last.number += what.number;
      return;
    }
  }
  full_ = full_ || held_ == most_;
  if (full_) {
    path = {};
    return;
  }
  const std::uint32_t node = nodes_.take();
  nodes_[node] = what;
  // The node holds what the path held, and the path the node.
  nodes_[node].next = path.node_;
  nodes_[node].holders = 1;
  path.tree_ = this;
  path.node_ = node;
  ++held_;
}

/// What only this node held goes, too.
void PathTree::forget(std::uint32_t node) {
  while (true) {
    const std::uint32_t parent = nodes_[node].next;
    nodes_.give_back(node);
    --held_;
    if (parent == kNil || --nodes_[parent].holders != 0) return;
    node = parent;
  }
}

}  // namespace wafersim::sim
