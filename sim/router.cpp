#include "sim/router.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "base/error.h"

namespace wafersim::sim {

Router::Router(sc_core::sc_module_name name, TileId tile, NetworkContext& network)
    : sc_module(name),
      network_(network),
      tile_(tile),
      vcs_(static_cast<unsigned>(network.hardware.virtual_channels)),
      single_local_(network.hardware.nic_ports == models::NicPorts::single) {
  require_invariant((kMeshPorts + 1) * vcs_ <= 64, "a router has at most 12 virtual channels");
  const unsigned ports = kMeshPorts + local_ports(network.hardware.nic_ports);
  inputs_.resize(std::size_t{ports} * vcs_);
  outputs_.resize(ports);
  credits_.resize(std::size_t{kMeshPorts} * vcs_);
  for (CreditCounter& counter : credits_) counter.set_capacity(network.hardware.vc_buffer_bytes);
  packets_in.bind(*this);
  credits_in.bind(*this);
  network.calendar.add(*this, Rank::router);
}

void Router::end_of_elaboration() {
  for (unsigned port = 0; port < kMeshPorts; ++port) {
    if (packets_out[port].size() != 0) next_router_[port] = packets_out[port].operator->();
    if (credits_out[port].size() != 0) upstream_[port] = credits_out[port].operator->();
  }
  if (ejection.size() != 0) nic_ = ejection.operator->();
  if (injection_credits.size() != 0) nic_credits_ = injection_credits.operator->();
}

void Router::receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) {
  const Cycle pipeline = network_.hardware.router_cycles;
  network_.packets[packet].tail = tail_at.after(pipeline);
  network_.calendar.post(*this, head_at + pipeline, kArrive, packet);
}

void Router::credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) {
  Output& out = outputs_[output];
  CreditCounter& counter = credits_[output * vcs_ + vc];
  counter.give(bytes, at, network_.calendar.now(), network_.credits);
  --out.uncredited;
  out.credits_full_at = std::max(out.credits_full_at, at);
  if (counter.waiting) {
    counter.waiting = false;
    wake(output, at);
  }
}

void Router::update(unsigned kind, std::uint32_t payload) {
  if (kind == kArrive) {
    const Packet& packet = network_.packets[payload];
    const unsigned index = packet.input * vcs_ + packet.vc;
    InputVc& in = inputs_[index];
    if (in.head != kNil) {
      network_.packets[in.tail].next = payload;
      in.tail = payload;
      return;
    }
    in.head = in.tail = payload;
    if (in.free_at <= network_.calendar.now()) {
      start_bidding(index);
    } else {
      network_.calendar.post(*this, in.free_at, kHeadFree, index);
    }
  } else if (kind == kHeadFree) {
    start_bidding(payload);
  } else {
    Output& out = outputs_[payload];
    if (out.wake_at != network_.calendar.now()) return;  // an earlier wake-up took its place
    out.wake_at = kNever;
    pending_outputs_ |= 1u << payload;
    network_.calendar.request_evaluation(*this);
  }
}

unsigned Router::output_for(const Packet& packet) const {
  const topology::Hop hop = network_.routing.next(tile_, packet.destination);
  if (hop != topology::Hop::local) {
    require_invariant(hop != topology::Hop::unreachable, "a packet reached a router without a way on");
    return static_cast<unsigned>(hop);
  }
  if (single_local_) return kMeshPorts;
  return kMeshPorts + (packet.input < kMeshPorts ? packet.input : kSelfLane);
}

void Router::start_bidding(unsigned input_vc) {
  InputVc& in = inputs_[input_vc];
  const Cycle now = network_.calendar.now();
  in.bid_at = now;
  const unsigned output = output_for(network_.packets[in.head]);
  Output& out = outputs_[output];
  // An arbiter with no bids and full credits is back in its first position.
  if (out.bidders == 0 && out.uncredited == 0 && out.credits_full_at < now) out.first_bit = 0;
  out.bidders |= std::uint64_t{1} << bid_bit(input_vc / vcs_, input_vc % vcs_);
  pending_outputs_ |= 1u << output;
  network_.calendar.request_evaluation(*this);
}

void Router::evaluate() {
  std::uint32_t pending = pending_outputs_;
  pending_outputs_ = 0;
  for (; pending != 0; pending &= pending - 1) arbitrate(static_cast<unsigned>(std::countr_zero(pending)));
}

unsigned Router::input_vc_of_bit(unsigned output, unsigned bit) const {
  if (bit < kMeshPorts * vcs_) return bit;
  const unsigned vc = bit - kMeshPorts * vcs_;
  unsigned lane = 0;
  if (!single_local_) lane = output < kMeshPorts ? output : kSelfLane;
  return (kMeshPorts + lane) * vcs_ + vc;
}

bool Router::can_grant(unsigned output, unsigned bit) {
  if (output >= kMeshPorts) return true;  // the NIC always consumes
  const Packet& packet = network_.packets[inputs_[input_vc_of_bit(output, bit)].head];
  return credits_[output * vcs_ + packet.vc].has_room(packet.bytes, network_.calendar.now(), network_.credits);
}

void Router::arbitrate(unsigned output) {
  Output& out = outputs_[output];
  if (out.bidders == 0) return;
  const Cycle now = network_.calendar.now();
  if (out.clock.free_at() > now || out.last_grant == now) {
    wake(output, std::max(out.clock.free_at(), now + 1));
    return;
  }
  const std::uint64_t from_first = ~std::uint64_t{0} << out.first_bit;
  for (const std::uint64_t part : {out.bidders & from_first, out.bidders & ~from_first}) {
    for (std::uint64_t left = part; left != 0; left &= left - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(left));
      if (!can_grant(output, bit)) continue;
      grant(output, bit);
      if (out.bidders != 0) wake(output, std::max(out.clock.free_at(), now + 1));
      return;
    }
  }
  wait_for_credit(output);
}

void Router::grant(unsigned output, unsigned bit) {
  const Cycle now = network_.calendar.now();
  const models::HardwareModel& hardware = network_.hardware;
  Output& out = outputs_[output];
  const unsigned input_vc = input_vc_of_bit(output, bit);
  InputVc& in = inputs_[input_vc];
  const std::uint32_t index = in.head;
  Packet& packet = network_.packets[index];

  const bool mesh = output < kMeshPorts;
  const ExactTime tail =
      out.clock.occupy(now, packet.bytes, packet.tail, mesh ? network_.link_rate : network_.ejection_rate);
  const Cycle held_from = std::max(now, out.tail_at);
  out.tail_at = tail.ceil();
  out.last_grant = now;
  out.bidders &= ~(std::uint64_t{1} << bit);
  out.first_bit = static_cast<std::uint8_t>((bit + 1) % ((kMeshPorts + 1) * vcs_));

  // The packet behind bids in the cycle in which this one has left, also when that is in the middle of a cycle: the port
  // carries the remainder.
  in.head = packet.next;
  in.free_at = std::max(out.clock.free_at(), now + 1);
  if (in.head != kNil) network_.calendar.post(*this, in.free_at, kHeadFree, input_vc);

  const unsigned input = packet.input;
  const Cycle credit_at = tail.ceil() + hardware.credit_cycles;
  if (input >= kMeshPorts) {
    nic_credits_->credit(input - kMeshPorts, packet.vc, packet.bytes, credit_at);
  } else {
    // Output ports of the neighbour are named from its side.
    upstream_[input]->credit((input + 2) % kMeshPorts, packet.vc, packet.bytes, credit_at);
  }

  const Cycle queued = now - in.bid_at;
  packet.queued += queued;
  packet.next = kNil;
  if (!mesh) {
    nic_->eject(index, tail);
    return;
  }
  PortStatistics& statistics = statistics_[output];
  statistics.busy += out.tail_at - std::min(out.tail_at, held_from);
  statistics.bytes_by_axis[static_cast<std::size_t>(packet.axis)] += packet.bytes;
  statistics.packets += 1;
  statistics.queued += queued;
  credits_[output * vcs_ + packet.vc].take(packet.bytes);
  ++out.uncredited;
  packet.input = static_cast<std::uint8_t>((output + 2) % kMeshPorts);
  next_router_[output]->receive(index, now + hardware.link_cycles, tail.after(hardware.link_cycles));
}

void Router::wait_for_credit(unsigned output) {
  Cycle earliest = kNever;
  for (std::uint64_t left = outputs_[output].bidders; left != 0; left &= left - 1) {
    const unsigned input_vc = input_vc_of_bit(output, static_cast<unsigned>(std::countr_zero(left)));
    CreditCounter& counter = credits_[output * vcs_ + network_.packets[inputs_[input_vc].head].vc];
    const Cycle next = counter.next_arrival(network_.credits);
    if (next == kNever) counter.waiting = true;
    earliest = std::min(earliest, next);
  }
  if (earliest != kNever) wake(output, earliest);
}

void Router::wake(unsigned output, Cycle at) {
  Output& out = outputs_[output];
  if (out.wake_at <= at) return;
  out.wake_at = at;
  network_.calendar.post(*this, at, kArbitrate, output);
}

std::string Router::describe_stall() const {
  std::string text;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].head == kNil) continue;
    const Packet& packet = network_.packets[inputs_[i].head];
    const Message& message = network_.messages[packet.message];
    text += fmt::format("{}: input port {} VC {} holds a packet of {} B from tile {} to tile {}\n", this->name(),
                        i / vcs_, i % vcs_, packet.bytes, message.source, message.destination);
  }
  return text;
}

}  // namespace wafersim::sim
