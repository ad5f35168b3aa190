#pragma once

#include <unordered_map>
#include <vector>

#include "sim/interfaces.h"
#include "sim/pool.h"
#include "sim/port_clock.h"

namespace wafersim::sim {

/// Which parts of streamed messages have come in where, and the sends that follow them (workloads::Op::follows): a packet of
/// such a send may leave when the same bytes of every message that it follows are usable. One board for all tiles of a
/// network; entries are addressed by index and live as long as somebody may ask for them.
///
/// Packets of a message come in order, and messages that are followed by one send are cut into the same packets.
class StreamBoard {
 public:
  /// The first packet of a streamed message comes in. Returns the message's entry. Throws PlanError when another message of
  /// the same address is under way.
  std::uint32_t begin(TileId tile, const StreamSource& from);
  /// A packet of the message came in: its bytes may be used from cycle `usable_at` on, the last of them not before `tail`.
  /// Returns the sends that follow it so far.
  std::span<const std::uint32_t> arrived(std::uint32_t entry, Bytes bytes, Cycle usable_at, const ExactTime& tail);
  /// The core has taken the message.
  void taken(std::uint32_t entry);

  /// A send of the tile follows these messages, none of which the core has taken, in `parts` parts that each send everything
  /// once; `tag` is kept for its owner. The cycles after `now` in which more of them will be usable, as far as known, are
  /// appended to `wake_ups`.
  std::uint32_t follow(TileId tile, std::span<const StreamSource> sources, unsigned parts, std::uint32_t tag, Cycle now,
                       std::vector<Cycle>& wake_ups);
  std::uint32_t tag(std::uint32_t send) const { return followers_[send].tag; }
  /// The entries that it follows.
  std::span<const std::uint32_t> followed(std::uint32_t send) const { return followers_[send].entries; }
  /// Whether the first `bytes` bytes of all that `send` follows are usable in cycle `now`.
  bool usable(std::uint32_t send, Bytes bytes, Cycle now);
  /// After usable(): when the last of these bytes may leave at the earliest.
  ExactTime tail(std::uint32_t send, Bytes bytes) const;
  /// One part of the send has left whole; after the last one the send follows nothing any more.
  void sent(std::uint32_t send);

 private:
  struct Arrival {
    std::uint32_t next = kNil;
    Bytes bytes = 0;
    Cycle usable_at = 0;
    ExactTime tail;
  };
  struct Entry {
    std::uint32_t next = kNil;
    TileId tile = kNoTile;
    StreamSource from;
    bool begun = false;
    bool taken = false;
    std::vector<std::uint32_t> followers;
    std::uint32_t first = kNil;  ///< arrivals that are not usable yet, the earliest first
    std::uint32_t last = kNil;
    Bytes usable = 0;
    ExactTime tail;              ///< of the last byte that is
  };
  struct Follower {
    std::uint32_t next = kNil;
    unsigned parts_left = 0;
    std::uint32_t tag = 0;
    std::vector<std::uint32_t> entries;
  };
  struct Address {
    TileId tile;
    StreamSource from;
    bool operator==(const Address&) const = default;
  };
  struct AddressHash {
    std::size_t operator()(const Address& address) const;
  };

  std::uint32_t entry_of(TileId tile, const StreamSource& from);
  void settle(Entry& entry, Cycle now);
  void forget_if_done(std::uint32_t entry);

  Pool<Arrival> arrivals_;
  Pool<Entry> entries_;
  Pool<Follower> followers_;
  std::unordered_map<Address, std::uint32_t, AddressHash> by_address_;
};

}  // namespace wafersim::sim
