#include "sim/mailbox.h"

#include <algorithm>
#include <tuple>

namespace wafersim::sim {
namespace {

/// Removes and returns the entry under `address` that came first.
template <class Map, class Address>
std::optional<typename Map::mapped_type> take_first(Map& map, const Address& address) {
  auto [first, last] = map.equal_range(address);
  if (first == last) return std::nullopt;
  auto oldest = first;
  for (auto it = std::next(first); it != last; ++it) {
    if (it->second.order < oldest->second.order) oldest = it;
  }
  const auto value = oldest->second;
  map.erase(oldest);
  return value;
}

}  // namespace

std::optional<std::uint32_t> Mailbox::take_message(const ReceiveRequest& request) {
  const auto landed = take_first(messages_, Address{request.source, request.key});
  if (!landed) return std::nullopt;
  return landed->message;
}

void Mailbox::add_receive(const ReceiveRequest& request, Cycle now) {
  receives_.emplace(Address{request.source, request.key}, Waiting{request, now, next_order_++});
}

std::optional<ReceiveRequest> Mailbox::take_receive(TileId source, std::uint64_t key) {
  const auto waiting = take_first(receives_, Address{source, key});
  if (!waiting) return std::nullopt;
  return waiting->request;
}

void Mailbox::add_message(TileId source, std::uint64_t key, std::uint32_t message) {
  messages_.emplace(Address{source, key}, Landed{message, next_order_++});
}

std::vector<Mailbox::Waiting> Mailbox::waiting() const {
  std::vector<Waiting> all;
  for (const auto& [address, entry] : receives_) all.push_back(entry);
  std::sort(all.begin(), all.end(), [](const Waiting& a, const Waiting& b) {
    return std::tie(a.posted, a.request.source, a.request.key) < std::tie(b.posted, b.request.source, b.request.key);
  });
  return all;
}

std::vector<std::uint32_t> Mailbox::unclaimed() const {
  std::vector<std::uint32_t> all;
  for (const auto& [address, landed] : messages_) all.push_back(landed.message);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace wafersim::sim
