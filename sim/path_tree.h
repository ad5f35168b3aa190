#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/huge_pages.h"
#include "sim/measurements.h"
#include "sim/pool.h"

namespace wafersim::sim {

/// The end of a chain: its last node and the cycle that it has come to. Without a node: the start of the run.
struct PathRef {
  Cycle to = 0;
  std::uint32_t node = kNil;
};

/// Nodes that stand for no stretch of time of their own.
enum class PathMark : std::uint8_t {
  none,
  period,      ///< a chain ended here when a period began: its number, and that of the end (`link`)
  repetition,  ///< what was not simulated: repetitions (`number`) of a period, the last of which leads to one of its ends (`link`)
  replica      ///< what lies before it happened in another replica (`number`) likewise
};

/// A stretch of a chain, from the end of its parent (the start of the run, when it has none) to `to`.
struct PathNode {
  Cycle to = 0;
  /// Of operations: so many, one after the other. Of wires: cycles in router pipelines. Of waits at a link: the link.
  /// Where there are parts: the first one.
  std::uint32_t number = 0;
  /// Of wires: latency of links, of injection and of ejection. Where there are parts: the second one.
  std::uint32_t link = 0;
  std::uint32_t parent = kNil;
  TileId tile = kNoTile;
  std::uint32_t other = 0;  ///< of operations: the step; of messages: the destination
  PathKind kind = PathKind::wire;
  workloads::Axis axis = workloads::Axis::none;
  /// It has three parts. Of an operation: `kind`, memory_stall, memory_wait. Of a message that leaves its NIC:
  /// injection_queue (the kind), injection_room, wire.
  bool parts : 1 = false;
  bool alone : 1 = false;  ///< while nodes are collected: it has one child, and no chain ends here
  PathMark mark : 6 = PathMark::none;
};
static_assert(sizeof(PathNode) == 32);

/// The nodes of all chains, side by side in the order in which they came. What no chain leads over any more stays until
/// nodes are collected: every now and then whoever holds the ends of chains names all of them, and learns where they are
/// afterwards. Mostly only what came since the last time is looked through.
class PathTree {
 public:
  /// At most `most` nodes at a time, looked through after `young` new ones.
  explicit PathTree(std::size_t most, std::size_t young = kYoung);

  const PathNode& operator[](std::uint32_t node) const { return nodes_[node]; }
  std::size_t size() const { return nodes_.size(); }
  /// It has had too many nodes, or one with a number that is too large: from then on chains have an end but no nodes.
  bool full() const { return full_; }
  /// A number of a node; gives up when there is no room for it.
  std::uint32_t number(std::uint64_t value) {
    if (value > std::numeric_limits<std::uint32_t>::max()) [[unlikely]] give_up();
    return static_cast<std::uint32_t>(value);
  }
  /// It is as full as it can be.
  void give_up();

  /// Makes a chain longer, to `node.to`, by a node; nothing when it has come there already.
  void grow(PathRef& path, PathNode node) {
    if (path.to == node.to) return;
    if (path.to > node.to) backwards();
    path.to = node.to;
    if (full_) return;
    node.parent = path.node;
    path.node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(node);
  }

  /// Puts a mark at the end of a chain, which then has come to `mark.to`. Of repetitions: as its first node.
  void put(PathRef& path, PathNode mark) {
    path.to = mark.to;
    if (full_) return;
    mark.parent = mark.mark == PathMark::repetition ? kNil : path.node;
    path.node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(mark);
  }

  /// It is time to collect: where no chain ends but in what `for_each_end` visits.
  bool has_to_collect() const { return nodes_.size() >= limit_; }
  /// Forgets new nodes that no chain leads over; all of them when many have become old, or when asked to. Operations of a
  /// step one after the other that have but one chain over them become one node. `for_each_end(visit)` calls `visit`
  /// with each PathRef there is, each time the same ones.
  template <class ForEachEnd>
  void collect(const ForEachEnd& for_each_end, bool all = false) {
    const std::size_t first = all || old_ >= old_limit_ ? 0 : old_;
    places_.assign(nodes_.size() - first, 0);
    std::size_t ends = 0;
    for_each_end([&](const PathRef& end) {
      ++ends;
      if (end.node != kNil && end.node >= first) places_[end.node - first] += kEnd;
    });
    compact(first, ends);
    for_each_end([this, first](PathRef& end) {
      if (end.node == kNil) return;
      if (full_) {
        end.node = kNil;
      } else if (end.node >= first) {
        end.node = places_[end.node - first];
      }
    });
  }

 private:
  /// 4 MB. Of 2^14 to 2^19 none is faster in the quick start, and larger ones take more memory.
  static constexpr std::size_t kYoung = std::size_t{1} << 17;
  /// Counts as much as two children.
  static constexpr std::uint32_t kEnd = 2;

  [[noreturn]] static void backwards();
  void compact(std::size_t first, std::size_t ends);

  HugeVector<PathNode> nodes_;
  HugeVector<std::uint32_t> places_;  ///< while nodes are collected, by node: who holds it, then where it has gone
  std::size_t young_;
  std::size_t most_;
  std::size_t limit_;      ///< of nodes until they are collected
  std::size_t old_ = 0;    ///< nodes that have been collected
  std::size_t old_limit_;  ///< of them, until they are once more
  bool full_ = false;
};

}  // namespace wafersim::sim
