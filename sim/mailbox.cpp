#include "sim/mailbox.h"

#include <algorithm>
#include <tuple>

namespace wafersim::sim {

std::optional<std::uint32_t> Mailbox::take_message(TileId source, std::uint64_t key) {
  const auto landed = messages_.take(source, key);
  if (!landed) return std::nullopt;
  return landed->message;
}

void Mailbox::add_receive(const ReceiveRequest& request, Cycle now) {
  receives_.add({request.key, request.token, request.bytes, now, request.source, next_order_++});
}

void Mailbox::add_message(TileId source, std::uint64_t key, std::uint32_t message) {
  messages_.add({key, source, next_order_++, message});
}

std::vector<Mailbox::Waiting> Mailbox::waiting() const {
  std::vector<Waiting> all;
  receives_.for_each([&](const Waiting& entry) { all.push_back(entry); });
  std::sort(all.begin(), all.end(), [](const Waiting& a, const Waiting& b) {
    return std::tie(a.posted, a.source, a.key) < std::tie(b.posted, b.source, b.key);
  });
  return all;
}

std::vector<std::uint32_t> Mailbox::unclaimed() const {
  std::vector<std::uint32_t> all;
  messages_.for_each([&](const Landed& entry) { all.push_back(entry.message); });
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace wafersim::sim
