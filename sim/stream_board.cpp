#include "sim/stream_board.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"

namespace wafersim::sim {

std::size_t StreamBoard::AddressHash::operator()(const Address& address) const {
  return mix_bits(mix_bits(std::uint64_t{address.tile} << 32 | address.from.source) ^ address.from.key);
}

/// That of a message that comes in, or is waited for.
std::uint32_t StreamBoard::entry_of(TileId tile, const StreamSource& from) {
  const auto [known, fresh] = by_address_.try_emplace({tile, from}, kNil);
  if (fresh) {
    known->second = entries_.take();
    Entry& entry = entries_[known->second];
    entry.tile = tile;
    entry.from = from;
  }
  return known->second;
}

std::uint32_t StreamBoard::begin(TileId tile, const StreamSource& from) {
  const std::uint32_t index = entry_of(tile, from);
  if (entries_[index].begun) {
    throw PlanError(fmt::format("two streamed messages with the key {:#x} are under way from tile {} to tile {} at a time",
                                from.key, from.source, tile));
  }
  entries_[index].begun = true;
  return index;
}

std::span<const std::uint32_t> StreamBoard::arrived(std::uint32_t index, Bytes bytes, Cycle usable_at, const ExactTime& tail) {
  const std::uint32_t fresh = arrivals_.take();
  arrivals_[fresh] = {kNil, bytes, usable_at, tail};
  Entry& entry = entries_[index];
  require_invariant(entry.first == kNil || arrivals_[entry.last].usable_at <= usable_at,
                    "packets of a streamed message come in order");
  (entry.first == kNil ? entry.first : arrivals_[entry.last].next) = fresh;
  entry.last = fresh;
  return entry.followers;
}

void StreamBoard::taken(std::uint32_t entry) {
  entries_[entry].taken = true;
  forget_if_done(entry);
}

std::uint32_t StreamBoard::follow(TileId tile, std::span<const StreamSource> sources, unsigned parts, std::uint32_t tag,
                                  Cycle now, std::vector<Cycle>& wake_ups) {
  const std::uint32_t send = followers_.take();
  followers_[send].parts_left = parts;
  followers_[send].tag = tag;
  for (const StreamSource& source : sources) {
    const std::uint32_t index = entry_of(tile, source);
    Entry& entry = entries_[index];
    entry.followers.push_back(send);
    followers_[send].entries.push_back(index);
    settle(entry, now);
    for (std::uint32_t at = entry.first; at != kNil; at = arrivals_[at].next) wake_ups.push_back(arrivals_[at].usable_at);
  }
  return send;
}

void StreamBoard::settle(Entry& entry, Cycle now) {
  while (entry.first != kNil && arrivals_[entry.first].usable_at <= now) {
    const Arrival& arrival = arrivals_[entry.first];
    entry.usable += arrival.bytes;
    entry.tail = ExactTime::later(entry.tail, arrival.tail);
    const std::uint32_t done = entry.first;
    entry.first = arrival.next;
    arrivals_.give_back(done);
  }
}

bool StreamBoard::usable(std::uint32_t send, Bytes bytes, Cycle now) {
  bool all = true;
  for (const std::uint32_t index : followers_[send].entries) {
    settle(entries_[index], now);
    all = all && entries_[index].usable >= bytes;
  }
  return all;
}

/// Where more than `bytes` are usable, the tail of these has passed: the packet behind it came after it through the port.
ExactTime StreamBoard::tail(std::uint32_t send, Bytes bytes) const {
  ExactTime latest;
  for (const std::uint32_t index : followers_[send].entries) {
    const Entry& entry = entries_[index];
    if (entry.usable == bytes) latest = ExactTime::later(latest, entry.tail);
  }
  return latest;
}

void StreamBoard::sent(std::uint32_t send) {
  Follower& follower = followers_[send];
  if (--follower.parts_left != 0) return;
  for (const std::uint32_t index : follower.entries) {
    std::erase(entries_[index].followers, send);
    forget_if_done(index);
  }
  followers_.give_back(send);
}

void StreamBoard::forget_if_done(std::uint32_t index) {
  Entry& entry = entries_[index];
  if (!entry.taken || !entry.followers.empty()) return;
  while (entry.first != kNil) {
    const std::uint32_t next = arrivals_[entry.first].next;
    arrivals_.give_back(entry.first);
    entry.first = next;
  }
  by_address_.erase({entry.tile, entry.from});
  entries_.give_back(index);
}

}  // namespace wafersim::sim
