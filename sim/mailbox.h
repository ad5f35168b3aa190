#pragma once

#include <memory_resource>
#include <optional>
#include <vector>

#include "base/units.h"
#include "sim/interfaces.h"
#include "sim/packet.h"

namespace wafersim::sim {

/// Entries that are found by (source, key), those of one address in order of insertion: open addressing with linear probing,
/// entries in one block. An entry has `source` (kNoTile in a free slot), `key` and `order`.
template <class Entry>
class AddressTable {
 public:
  explicit AddressTable(std::pmr::memory_resource* tables) : slots_(tables) {}
  bool empty() const { return size_ == 0; }

  void add(const Entry& entry) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    insert(entry);
    ++size_;
  }

  /// Removes and returns the first inserted entry of the address.
  std::optional<Entry> take(TileId source, std::uint64_t key) {
    if (size_ == 0) return std::nullopt;
    std::size_t oldest = slots_.size();
    for (std::size_t at = home(source, key); used(at); at = next(at)) {
      const Entry& entry = slots_[at];
      if (entry.source != source || entry.key != key) continue;
      if (oldest == slots_.size() || entry.order < slots_[oldest].order) oldest = at;
    }
    if (oldest == slots_.size()) return std::nullopt;
    const Entry found = slots_[oldest];
    erase(oldest);
    --size_;
    return found;
  }

  void prefetch(TileId source, std::uint64_t key) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[home(source, key)]);
  }

  /// A hint that calls come soon; the first lines, which is all of most tables.
  void prefetch_first() const {
    if (slots_.empty()) return;
    const char* const first = reinterpret_cast<const char*>(slots_.data());
    for (std::size_t offset = 0; offset < 192; offset += 64) __builtin_prefetch(first + offset);
  }

  void clear() {
    for (Entry& entry : slots_) entry.source = kNoTile;
    size_ = 0;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Entry& entry : slots_) {
      if (entry.source != kNoTile) visit(entry);
    }
  }

 private:
  bool used(std::size_t at) const { return slots_[at].source != kNoTile; }
  std::size_t home(TileId source, std::uint64_t key) const {
    const std::uint64_t hash = (key ^ (std::uint64_t{source} << 40)) * 0x9e3779b97f4a7c15ULL;
    return static_cast<std::size_t>(hash >> 32) & (slots_.size() - 1);
  }
  std::size_t next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }

  void insert(const Entry& entry) {
    std::size_t at = home(entry.source, entry.key);
    while (used(at)) at = next(at);
    slots_[at] = entry;
  }

  void grow() {
    std::pmr::vector<Entry> old(slots_.empty() ? 4 : slots_.size() * 2, slots_.get_allocator());
    old.swap(slots_);
    for (const Entry& entry : old) {
      if (entry.source != kNoTile) insert(entry);
    }
  }

  /// Closes the gap: moves back every later entry of the cluster that may not be found across a free slot.
  void erase(std::size_t gap) {
    for (std::size_t at = next(gap); used(at); at = next(at)) {
      const std::size_t wanted = home(slots_[at].source, slots_[at].key);
      const std::size_t mask = slots_.size() - 1;
      if (((at - wanted) & mask) < ((at - gap) & mask)) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap].source = kNoTile;
  }

  std::pmr::vector<Entry> slots_;  ///< a power of two, at most half full
  std::size_t size_ = 0;
};

/// Matches the messages that reach a tile with the receives that its core has posted: by (source, key), in order of
/// posting.
class Mailbox {
 public:
  explicit Mailbox(std::pmr::memory_resource* tables) : receives_(tables), messages_(tables) {}

  /// A receive that waits.
  struct Waiting {
    std::uint64_t key = 0;
    std::uint64_t token = 0;
    Bytes bytes = 0;
    Cycle posted = 0;
    TileId source = kNoTile;
    std::uint32_t order = 0;
  };

  /// A receive is posted. Returns the message when it is already there.
  std::optional<std::uint32_t> take_message(TileId source, std::uint64_t key);
  void add_receive(const ReceiveRequest& request, Cycle now);

  /// A message is there. Returns the receive that waits for it.
  std::optional<Waiting> take_receive(TileId source, std::uint64_t key) { return receives_.take(source, key); }
  /// A hint that take_receive comes soon.
  void prefetch_receive(TileId source, std::uint64_t key) const { receives_.prefetch(source, key); }
  /// A hint that calls for receives come soon.
  void prefetch_receives() const { receives_.prefetch_first(); }
  void add_message(TileId source, std::uint64_t key, std::uint32_t message);

  /// Its state, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive, TileId tile, MessagePool& pool);

  /// Receives that wait, ordered by time of posting, source and key.
  std::vector<Waiting> waiting() const;
  /// Messages that nobody asked for.
  std::vector<std::uint32_t> unclaimed() const;

 private:
  struct Landed {
    std::uint64_t key = 0;
    TileId source = kNoTile;
    std::uint32_t order = 0;
    std::uint32_t message = kNil;
  };
  AddressTable<Waiting> receives_;
  AddressTable<Landed> messages_;
  std::uint32_t next_order_ = 0;
};

}  // namespace wafersim::sim
