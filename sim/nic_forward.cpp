#include <bit>

#include "base/error.h"
#include "sim/nic.h"
#include "sim/path_recorder.h"

namespace wafersim::sim {

/// Messages with more to them than a sender and a receiver: those that follow what comes in, and those to several receivers.

void Nic::post_forward(const SendRequest& request, std::span<const TileId> receivers, std::span<const StreamSource> follows) {
  require_invariant(!receivers.empty(), "a message to nobody was sent");
  bytes_sent_ += request.bytes;
  bytes_copied_ += (receivers.size() - 1) * request.bytes;
  std::vector<std::uint32_t> parts;
  if (receivers.size() == 1) {
    parts.push_back(open_message(request, receivers.front()));
  } else {
    parts = open_multicast(request, receivers);
  }
  ++messages_sent_;
  if (network_.hardware.fidelity == models::Fidelity::ideal) return forward_ideal(parts, follows);
  if (!follows.empty()) follow(parts, follows);
  for (const std::uint32_t part : parts) launch(part);
}

/// Opens the messages of all receivers. Returns what is to be launched: the carriers; on the ideal network the messages.
std::vector<std::uint32_t> Nic::open_multicast(const SendRequest& request, std::span<const TileId> receivers) {
  const std::uint32_t multicast = network_.multicasts.open(tile_, receivers);
  std::vector<std::uint32_t> messages;
  for (const TileId receiver : receivers) {
    const std::uint32_t index = open_message(request, receiver);
    network_.messages[index].special = true;
    network_.messages[index].multicast = multicast;
    network_.multicasts.add_message(multicast, index);
    messages.push_back(index);
  }
  if (network_.hardware.fidelity == models::Fidelity::ideal) return messages;

  std::vector<std::uint32_t> carriers;
  const auto add_carrier = [&](unsigned lane) {
    const std::uint32_t index = network_.messages.take();
    const Message& like = network_.messages[messages.front()];
    Message& carrier = network_.messages[index];
    carrier = like;
    carrier.lane = static_cast<std::uint8_t>(lane);
    if (network_.path != nullptr) network_.path->carried(index, messages.front());
    network_.multicasts.add_carrier(multicast, index);
    carriers.push_back(index);
  };
  if (lanes_.size() == 1) {
    add_carrier(0);
  } else {
    // An injection port reaches one output of the router.
    for (unsigned out = network_.multicasts.tree(multicast).outputs(tile_); out != 0; out &= out - 1) {
      add_carrier(static_cast<unsigned>(std::countr_zero(out)));
    }
  }
  return carriers;
}

/// `parts` send the same bytes, each once, as they come in.
void Nic::follow(std::span<const std::uint32_t> parts, std::span<const StreamSource> follows) {
  std::uint32_t lanes = 0;
  for (const std::uint32_t part : parts) lanes |= 1U << lane_of(network_.messages[part]);
  std::vector<Cycle> wake_ups;
  const std::uint32_t send = network_.streams.follow(tile_, follows, static_cast<unsigned>(parts.size()), lanes,
                                                     network_.calendar.now(), wake_ups);
  for (const std::uint32_t part : parts) {
    network_.messages[part].special = true;
    network_.messages[part].follows = send;
  }
  for (const Cycle at : wake_ups) network_.calendar.post(*this, at, kStream, send);
}

unsigned Nic::lane_of(const Message& message) const {
  return message.special && message.multicast != kNil ? message.lane : lane_for(message.destination);
}

/// Whether the next `bytes` bytes of a ready message may be injected.
bool Nic::may_leave(const Message& message, Bytes bytes, Cycle now) {
  if (message.follows == kNil) return true;
  return network_.streams.usable(message.follows, message.bytes - message.bytes_to_inject + bytes, now);
}

/// The next packet of a message is injected. Returns the time before which its tail may not leave.
ExactTime Nic::mark(Packet& packet, std::uint32_t index) {
  const Message& message = network_.messages[index];
  if (message.multicast != kNil) {
    packet.multicast = true;
    packet.destination = message.multicast;
    network_.multicasts.injected(message.multicast, network_.calendar.current());
  }
  if (message.follows == kNil) return {};
  const Bytes end = message.bytes - message.bytes_to_inject + packet.bytes;
  if (network_.path != nullptr) network_.path->follows(index, network_.streams.followed(message.follows), end);
  return network_.streams.tail(message.follows, end);
}

/// One part of what was posted has left. Whether all have.
bool Nic::all_left(const Message& message) {
  return message.multicast == kNil || network_.multicasts.carrier_left(message.multicast);
}

/// A packet of a message comes in.
void Nic::take_in(Message& message, std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) {
  if (message.multicast != kNil && message.injected == kNever) {
    message.injected = network_.multicasts.injected_at(message.multicast);
  }
  if (!message.streamed) return;
  if (message.stream == kNil) {
    message.stream = network_.streams.begin(tile_, {message.source, message.key});
    if (network_.path != nullptr) network_.path->stream_begun(message.stream);
  }
  const models::HardwareModel& hardware = network_.hardware;
  const Cycle use = hardware.ejection_cycles + hardware.message_overhead + hardware.stream_cycles;
  const Bytes bytes = network_.packets[packet].bytes;
  if (network_.path != nullptr) network_.path->stream_arrived(message.stream, packet, bytes, head_at + use);
  for (const std::uint32_t send : network_.streams.arrived(message.stream, bytes, head_at + use, tail_at.after(use))) {
    network_.calendar.post(*this, head_at + use, kStream, send);
  }
}

/// The core has taken a message.
void Nic::taken(const Message& message) {
  if (message.stream != kNil) network_.streams.taken(message.stream);
  if (message.multicast == kNil) return;
  for (const std::uint32_t carrier : network_.multicasts.taken(message.multicast)) {
    if (network_.path != nullptr) network_.path->gone(carrier);
    network_.messages.give_back(carrier);
  }
}

void Nic::forward_ideal(std::span<const std::uint32_t> messages, std::span<const StreamSource> follows) {
  for (std::size_t i = 1; i < messages.size(); ++i) network_.messages[messages[i - 1]].next = messages[i];
  if (follows.empty()) return deliver_all_ideal(messages.front());
  std::vector<Cycle> wake_ups;
  const Cycle now = network_.calendar.now();
  const std::uint32_t send = network_.streams.follow(tile_, follows, 1, messages.front(), now, wake_ups);
  if (network_.streams.usable(send, network_.messages[messages.front()].bytes, now)) release_ideal(send);
}

/// The messages linked by Message::next, which were posted at once.
void Nic::deliver_all_ideal(std::uint32_t first) {
  const std::uint64_t token = network_.messages[first].send_token;
  for (std::uint32_t index = first; index != kNil;) {
    const std::uint32_t next = network_.messages[index].next;
    deliver_ideal(index);
    index = next;
  }
  core_->send_done(token);
}

void Nic::release_ideal(std::uint32_t send) {
  const std::uint32_t first = network_.streams.tag(send);
  network_.streams.sent(send);
  deliver_all_ideal(first);
}

/// A message is there, all at once.
void Nic::take_in_ideal(Message& message) {
  if (!message.streamed) return;
  const Cycle now = network_.calendar.now();
  const Bytes bytes = message.bytes;
  message.stream = network_.streams.begin(tile_, {message.source, message.key});
  const std::span<const std::uint32_t> sends = network_.streams.arrived(message.stream, bytes, now, {now, 0});
  for (const std::uint32_t send : std::vector<std::uint32_t>(sends.begin(), sends.end())) {
    if (network_.streams.usable(send, bytes, now)) release_ideal(send);
  }
}

}  // namespace wafersim::sim
