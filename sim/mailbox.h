#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "sim/interfaces.h"

namespace wafersim::sim {

/// Matches the messages that reach a tile with the receives that its core has posted: by (source, key), in order of
/// posting.
class Mailbox {
 public:
  struct Waiting {
    ReceiveRequest request;
    Cycle posted = 0;
    std::uint64_t order = 0;
  };

  /// A receive is posted. Returns the message when it is already there.
  std::optional<std::uint32_t> take_message(const ReceiveRequest& request);
  void add_receive(const ReceiveRequest& request, Cycle now);

  /// A message is there. Returns the receive that waits for it.
  std::optional<ReceiveRequest> take_receive(TileId source, std::uint64_t key);
  void add_message(TileId source, std::uint64_t key, std::uint32_t message);

  bool empty() const { return receives_.empty() && messages_.empty(); }
  /// Receives that wait, ordered by time of posting, source and key.
  std::vector<Waiting> waiting() const;
  /// Messages that nobody asked for.
  std::vector<std::uint32_t> unclaimed() const;

 private:
  struct Address {
    TileId source;
    std::uint64_t key;
    bool operator==(const Address&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Address& a) const {
      return static_cast<std::size_t>((a.key ^ (std::uint64_t{a.source} << 40)) * 0x9e3779b97f4a7c15ULL);
    }
  };
  struct Landed {
    std::uint32_t message = kNil;
    std::uint64_t order = 0;
  };
  // More than one entry under an address is rare; `order` tells which came first.
  std::unordered_multimap<Address, Waiting, Hash> receives_;
  std::unordered_multimap<Address, Landed, Hash> messages_;
  std::uint64_t next_order_ = 0;
};

}  // namespace wafersim::sim
