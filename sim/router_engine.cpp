#include "sim/router_engine.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "base/error.h"

namespace wafersim::sim {

RouterEngine::RouterEngine(TileId tile, NetworkContext& network)
    : tile_(tile),
      vcs_(static_cast<unsigned>(network.hardware.virtual_channels)),
      single_local_(network.hardware.nic_ports == models::NicPorts::single),
      network_(network) {
  require_invariant((kMeshPorts + 1) * vcs_ <= 64, "a router has at most 12 virtual channels");
  const unsigned ports = kMeshPorts + local_ports(network.hardware.nic_ports);
  inputs_.resize(std::size_t{ports} * vcs_);
  outputs_.resize(ports);
  credits_.resize(std::size_t{kMeshPorts} * vcs_);
  for (CreditCounter& counter : credits_) counter.set_capacity(network.hardware.vc_buffer_bytes);
  network.calendar.add(*this, Rank::router);
}

void RouterEngine::connect_output(unsigned port, RouterEngine* router, PacketSink* other) {
  next_router_[port] = router;
  next_other_[port] = other;
}

void RouterEngine::connect_input(unsigned port, RouterEngine* router, CreditSink* other) {
  upstream_router_[port] = router;
  upstream_other_[port] = other;
}

void RouterEngine::connect_nic(EjectionSink* nic, CreditSink* nic_credits) {
  nic_ = nic;
  nic_credits_ = nic_credits;
}

void RouterEngine::receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) {
  const Cycle pipeline = network_.hardware.router_cycles;
  Packet& arriving = network_.packets[packet];
  arriving.tail = tail_at.after(pipeline);
  arriving.output = static_cast<std::uint8_t>(output_for(arriving));
  network_.calendar.post(*this, head_at + pipeline, kArrive + arriving.input, packet);
}

void RouterEngine::credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) {
  Output& out = outputs_[output];
  CreditCounter& counter = credits_[output * vcs_ + vc];
  counter.give(bytes, at, network_.calendar.now(), network_.credits);
  --out.uncredited;
  out.credits_full_at = std::max(out.credits_full_at, at);
  if (counter.stop_waiting()) wake(output, at);
}

void RouterEngine::prefetch(unsigned kind, std::uint32_t payload) const {
  if (kind >= kArrive) {
    __builtin_prefetch(&network_.packets[payload]);
    __builtin_prefetch(&inputs_[(kind - kArrive) * vcs_]);
  } else if (kind == kHeadFree) {
    __builtin_prefetch(&inputs_[payload]);
  } else {
    __builtin_prefetch(&outputs_[payload]);
  }
}

void RouterEngine::prefetch_more(unsigned kind, std::uint32_t payload) const {
  if (kind < kArrive) return;
  const Packet& packet = network_.packets[payload];
  __builtin_prefetch(&outputs_[packet.output]);
  if (packet.output < kMeshPorts) __builtin_prefetch(next_router_[packet.output]);
  prefetch_upstream(packet.input, packet.vc);
}

void RouterEngine::prefetch_evaluation() const {
  for (std::uint32_t pending = pending_outputs_; pending != 0; pending &= pending - 1) {
    const auto output = static_cast<unsigned>(std::countr_zero(pending));
    __builtin_prefetch(&outputs_[output]);
    if (output >= kMeshPorts) continue;
    __builtin_prefetch(&credits_[output * vcs_]);
    __builtin_prefetch(&statistics_[output]);
  }
}

/// The grant to come will return a credit there.
void RouterEngine::prefetch_upstream(unsigned input, unsigned vc) const {
  if (input >= kMeshPorts || upstream_router_[input] == nullptr) return;
  const RouterEngine& upstream = *upstream_router_[input];
  const unsigned output = (input + 2) % kMeshPorts;
  __builtin_prefetch(&upstream.outputs_[output]);
  __builtin_prefetch(&upstream.credits_[output * vcs_ + vc]);
}

/// The functions of a packet's way are small and called millions of times a second: inlined into the two entry points they
/// cost an eighth less.
[[gnu::flatten]] void RouterEngine::update(unsigned kind, std::uint32_t payload) {
  if (kind >= kArrive) {
    const Packet& packet = network_.packets[payload];
    const unsigned index = (kind - kArrive) * vcs_ + packet.vc;
    InputVc& in = inputs_[index];
    if (in.head != kNil) {
      network_.packets[in.tail].next = payload;
      in.tail = payload;
      return;
    }
    in.head = in.tail = payload;
    if (in.free_at <= network_.calendar.now()) {
      start_bidding(payload);
    } else {
      network_.calendar.post(*this, in.free_at, kHeadFree, index);
    }
  } else if (kind == kHeadFree) {
    start_bidding(inputs_[payload].head);
  } else {
    Output& out = outputs_[payload];
    if (out.wake_at != network_.calendar.now()) return;  // an earlier wake-up took its place
    out.wake_at = kNever;
    pending_outputs_ |= 1u << payload;
    network_.calendar.request_evaluation(*this);
  }
}

unsigned RouterEngine::output_for(const Packet& packet) const {
  const topology::Hop hop = network_.routing.next(tile_, packet.destination);
  if (hop != topology::Hop::local) {
    require_invariant(hop != topology::Hop::unreachable, "a packet reached a router without a way on");
    return static_cast<unsigned>(hop);
  }
  if (single_local_) return kMeshPorts;
  return kMeshPorts + (packet.input < kMeshPorts ? packet.input : kSelfLane);
}

/// `index` is the packet at the head of its VC.
void RouterEngine::start_bidding(std::uint32_t index) {
  const Cycle now = network_.calendar.now();
  Packet& packet = network_.packets[index];
  packet.bid_at = now;
  Output& out = outputs_[packet.output];
  // An arbiter with no bids and full credits is back in its first position.
  if (out.bidders == 0 && out.uncredited == 0 && out.credits_full_at < now) out.first_bit = 0;
  out.bidders |= std::uint64_t{1} << bid_bit(packet.input, packet.vc);
  pending_outputs_ |= 1u << packet.output;
  network_.calendar.request_evaluation(*this);
}

[[gnu::flatten]] void RouterEngine::evaluate() {
  const Cycle now = network_.calendar.now();
  std::uint32_t pending = pending_outputs_;
  pending_outputs_ = 0;
  for (; pending != 0; pending &= pending - 1) arbitrate(static_cast<unsigned>(std::countr_zero(pending)), now);
}

unsigned RouterEngine::input_vc_of_bit(unsigned output, unsigned bit) const {
  if (bit < kMeshPorts * vcs_) return bit;
  const unsigned vc = bit - kMeshPorts * vcs_;
  unsigned lane = 0;
  if (!single_local_) lane = output < kMeshPorts ? output : kSelfLane;
  return (kMeshPorts + lane) * vcs_ + vc;
}

bool RouterEngine::can_grant(unsigned output, unsigned bit, Cycle now) {
  if (output >= kMeshPorts) return true;  // the NIC always consumes
  const Packet& packet = network_.packets[inputs_[input_vc_of_bit(output, bit)].head];
  return credits_[output * vcs_ + packet.vc].has_room(packet.bytes, now, network_.credits);
}

/// Called at most once a cycle for an output, so that it grants at most one bidder a cycle.
void RouterEngine::arbitrate(unsigned output, Cycle now) {
  Output& out = outputs_[output];
  if (out.bidders == 0) return;
  if (out.clock.free_at() > now) return wake(output, out.clock.free_at());
  const std::uint64_t from_first = ~std::uint64_t{0} << out.first_bit;
  for (const std::uint64_t part : {out.bidders & from_first, out.bidders & ~from_first}) {
    for (std::uint64_t left = part; left != 0; left &= left - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(left));
      if (!can_grant(output, bit, now)) continue;
      grant(output, bit, now);
      if (out.bidders != 0) wake(output, std::max(out.clock.free_at(), now + 1));
      return;
    }
  }
  wait_for_credit(output);
}

void RouterEngine::grant(unsigned output, unsigned bit, Cycle now) {
  Output& out = outputs_[output];
  const unsigned input_vc = input_vc_of_bit(output, bit);
  InputVc& in = inputs_[input_vc];
  const std::uint32_t index = in.head;
  Packet& packet = network_.packets[index];

  const bool mesh = output < kMeshPorts;
  const Cycle held_from = std::max(now, out.clock.held_until());
  const ExactTime tail =
      out.clock.occupy(now, packet.bytes, packet.tail, mesh ? network_.link_rate : network_.ejection_rate);
  out.bidders &= ~(std::uint64_t{1} << bit);
  out.first_bit = static_cast<std::uint8_t>(bit + 1 == (kMeshPorts + 1) * vcs_ ? 0 : bit + 1);

  // The packet behind bids in the cycle in which this one has left, also when that is in the middle of a cycle: the port
  // carries the remainder.
  in.head = packet.next;
  in.free_at = std::max(out.clock.free_at(), now + 1);
  if (in.head != kNil) network_.calendar.post(*this, in.free_at, kHeadFree, input_vc);

  return_credit(packet.input, packet.vc, packet.bytes, tail.ceil() + network_.hardware.credit_cycles);

  const Cycle queued = now - packet.bid_at;
  packet.queued += queued;
  packet.next = kNil;
  if (!mesh) {
    nic_->eject(index, tail);
    return;
  }
  PortStatistics& statistics = statistics_[output];
  statistics.busy += tail.ceil() - std::min(tail.ceil(), held_from);
  statistics.bytes_by_axis[static_cast<std::size_t>(packet.axis)] += packet.bytes;
  statistics.packets += 1;
  statistics.queued += queued;
  credits_[output * vcs_ + packet.vc].take(packet.bytes);
  ++out.uncredited;
  packet.input = static_cast<std::uint8_t>((output + 2) % kMeshPorts);
  forward(output, index, now, tail);
}

void RouterEngine::return_credit(unsigned input, unsigned vc, Bytes bytes, Cycle at) {
  if (input >= kMeshPorts) return nic_credits_->credit(input - kMeshPorts, vc, bytes, at);
  // Output ports of the neighbour are named from its side.
  const unsigned output = (input + 2) % kMeshPorts;
  if (upstream_router_[input] != nullptr) [[likely]] return upstream_router_[input]->credit(output, vc, bytes, at);
  upstream_other_[input]->credit(output, vc, bytes, at);
}

void RouterEngine::forward(unsigned output, std::uint32_t packet, Cycle now, const ExactTime& tail) {
  const Cycle link = network_.hardware.link_cycles;
  const Cycle head_at = now + link;
  if (next_router_[output] != nullptr) [[likely]] {
    next_router_[output]->receive(packet, head_at, tail.after(link));
  } else {
    next_other_[output]->receive(packet, head_at, tail.after(link));
  }
}

void RouterEngine::wait_for_credit(unsigned output) {
  Cycle earliest = kNever;
  for (std::uint64_t left = outputs_[output].bidders; left != 0; left &= left - 1) {
    const unsigned input_vc = input_vc_of_bit(output, static_cast<unsigned>(std::countr_zero(left)));
    CreditCounter& counter = credits_[output * vcs_ + network_.packets[inputs_[input_vc].head].vc];
    const Cycle next = counter.next_arrival();
    if (next == kNever) counter.wait();
    earliest = std::min(earliest, next);
  }
  if (earliest != kNever) wake(output, earliest);
}

void RouterEngine::wake(unsigned output, Cycle at) {
  Output& out = outputs_[output];
  if (out.wake_at <= at) return;
  out.wake_at = at;
  network_.calendar.post(*this, at, kArbitrate, output);
}

std::string RouterEngine::describe_stall(const std::string& name) const {
  std::string text;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].head == kNil) continue;
    const Packet& packet = network_.packets[inputs_[i].head];
    const Message& message = network_.messages[packet.message];
    text += fmt::format("{}: input port {} VC {} holds a packet of {} B from tile {} to tile {}\n", name,
                        i / vcs_, i % vcs_, packet.bytes, message.source, message.destination);
  }
  return text;
}

}  // namespace wafersim::sim
