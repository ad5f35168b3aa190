#pragma once

#include <utility>

#include "sim/measurements.h"
#include "sim/pool.h"

namespace wafersim::sim {

/// A stretch of a chain, from the end of its parent (the start of the run, when it has none) to `to`.
struct PathNode {
  std::uint32_t next = kNil;  ///< the parent; of free nodes, as Pool wants
  std::uint32_t holders = 0;  ///< children and PathRefs
  Cycle to = 0;
  Cycle router = 0;  ///< of wires: in router pipelines
  Cycle link =
      0;  ///< of wires: latency of links, of injection and of ejection; of memory stalls: what was computed
  TileId tile = kNoTile;
  std::uint32_t other = 0;   ///< of operations: the step; of messages: the destination
  std::uint32_t number = 0;  ///< of operations: so many, one after the other; of link_queue: the link
  PathKind kind = PathKind::wire;
  workloads::Axis axis = workloads::Axis::none;
};

class PathTree;

/// Holds the end of a chain. Without a node: the start of the run.
class PathRef {
 public:
  PathRef() = default;
  PathRef(PathTree& tree, std::uint32_t node) : tree_(&tree), node_(node) { hold(); }
  PathRef(const PathRef& other) : tree_(other.tree_), node_(other.node_) { hold(); }
  PathRef(PathRef&& other) noexcept : tree_(other.tree_), node_(std::exchange(other.node_, kNil)) {}
  PathRef& operator=(PathRef other) noexcept {
    std::swap(tree_, other.tree_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~PathRef();

  std::uint32_t node() const { return node_; }
  /// The cycle that the chain has come to.
  Cycle to() const;

 private:
  friend class PathTree;
  void hold() const;

  PathTree* tree_ = nullptr;
  std::uint32_t node_ = kNil;
};

/// The nodes of all chains, each held by its children and by the ends of chains: 48 bytes each.
class PathTree {
 public:
  /// `most` nodes at a time, and no more.
  explicit PathTree(std::size_t most) : most_(most) {}

  const PathNode& operator[](std::uint32_t node) const { return nodes_[node]; }
  /// Makes the chain longer, to `what.to`, by a node; nothing when it has come there already. Where the last
  /// node is of the same operations and nobody else holds it, that becomes longer. With too many nodes the
  /// tree is full: from then on chains end at the start of the run.
  void grow(PathRef& path, const PathNode& what);

  void hold(std::uint32_t node) { ++nodes_[node].holders; }
  void release(std::uint32_t node) {
    if (--nodes_[node].holders == 0) forget(node);
  }
  std::size_t held() const { return held_; }
  bool full() const { return full_; }

 private:
  void forget(std::uint32_t node);

  Pool<PathNode> nodes_;
  std::size_t most_;
  std::size_t held_ = 0;
  bool full_ = false;
};

inline PathRef::~PathRef() {
  if (tree_ != nullptr && node_ != kNil) tree_->release(node_);
}
inline void PathRef::hold() const {
  if (tree_ != nullptr && node_ != kNil) tree_->hold(node_);
}
inline Cycle PathRef::to() const { return node_ == kNil ? 0 : (*tree_)[node_].to; }

}  // namespace wafersim::sim
