#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace wafersim::analysis {

/// Entries that wait for their match under a 64-bit key, first come, first served. One table for all keys, no memory of its own
/// for any of them.
template <class Entry>
class MessageBoard {
 public:
  void clear() {
    for (const std::size_t place : used_) queues_[place] = {};
    used_.clear();
    nodes_.clear();
    free_ = kNone;
  }

  void push(std::uint64_t key, const Entry& entry) {
    if (2 * (used_.size() + 1) > queues_.size()) grow();
    Queue& queue = queue_of(key);
    const std::uint32_t node = take_node(entry);
    (queue.first == kNone ? queue.first : nodes_[queue.last].next) = node;
    queue.last = node;
  }

  /// Takes the first entry under the key if `wanted` holds for it.
  template <class Wanted>
  std::optional<Entry> pop_if(std::uint64_t key, const Wanted& wanted) {
    if (queues_.empty()) return std::nullopt;
    Queue& queue = queues_[place_of(key)];
    if (queue.first == kNone || !wanted(nodes_[queue.first].entry)) return std::nullopt;
    const std::uint32_t node = queue.first;
    queue.first = nodes_[node].next;
    nodes_[node].next = free_;
    free_ = node;
    return nodes_[node].entry;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Queue {
    std::uint64_t key = 0;
    std::uint32_t first = kNone, last = kNone;
    bool taken = false;
  };
  struct Node {
    Entry entry;
    std::uint32_t next = kNone;
  };

  /// Where the key's queue is, or would be.
  std::size_t place_of(std::uint64_t key) const {
    const std::size_t mask = queues_.size() - 1;
    std::size_t place = static_cast<std::size_t>(key ^ key >> 32) & mask;
    while (queues_[place].taken && queues_[place].key != key) place = (place + 1) & mask;
    return place;
  }

  Queue& queue_of(std::uint64_t key) {
    const std::size_t place = place_of(key);
    if (!queues_[place].taken) {
      queues_[place] = {key, kNone, kNone, true};
      used_.push_back(place);
    }
    return queues_[place];
  }

  std::uint32_t take_node(const Entry& entry) {
    if (free_ == kNone) {
      nodes_.push_back({entry, kNone});
      return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    const std::uint32_t node = free_;
    free_ = nodes_[node].next;
    nodes_[node] = {entry, kNone};
    return node;
  }

  void grow() {
    std::vector<Queue> old(queues_.empty() ? 64 : 2 * queues_.size());
    old.swap(queues_);
    for (std::size_t& place : used_) {
      const Queue& queue = old[place];
      place = place_of(queue.key);
      queues_[place] = queue;
    }
  }

  std::vector<Queue> queues_;  ///< open addressing, a power of two
  std::vector<std::size_t> used_;  ///< places in it
  std::vector<Node> nodes_;
  std::uint32_t free_ = kNone;
};

}  // namespace wafersim::analysis
