// What routers need for packets that have more than one way: multicasts, and policies that choose or draw.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "sim/path_recorder.h"
#include "sim/router_engine.h"

namespace wafersim::sim {

/// The outputs of a multicast at the router of `tile`: notes them in the packet where there are several. A packet that came
/// from an injection port which reaches one output takes that one; others carry it to the rest.
[[gnu::noinline]] unsigned RouterEngine::first_branch(TileId tile, Packet& packet) const {
  unsigned outputs = network_.multicasts.tree(packet.destination).outputs(tile);
  constexpr unsigned kLocalBit = topology::output_bit(topology::Hop::local);
  require_invariant(outputs != 0, "a multicast reached a router that is not on its tree");
  const bool per_direction = locals_ == PortLayout::Locals::per_direction;
  if (packet.input >= mesh_ports_ && per_direction) return packet.input - mesh_ports_;
  if ((outputs & kLocalBit) != 0) outputs = (outputs & ~kLocalBit) | 1U << port_of(topology::Hop::local, packet);
  const bool parts = (outputs & (outputs - 1)) != 0;
  packet.branches = static_cast<std::uint16_t>(parts ? outputs : 0);
  return static_cast<unsigned>(std::countr_zero(outputs));
}

/// The output that a packet takes at `tile`, where no choice is left.
[[gnu::noinline]] void RouterEngine::foresee(TileId tile, Packet& packet) const {
  const unsigned entered = packet.travel.vc_class;
  const topology::Hop hop =
      network_.routes.take(packet.travel, tile, came_by(packet.input, mesh_ports_), packet.destination, kAllOutputs,
                           [](topology::Hop, const topology::VcRange&) { return 0U; });
  packet.output = static_cast<std::uint8_t>(port_of(hop, packet));
  packet.output_vc = static_cast<std::uint8_t>(network_.routes.vc_in_class(packet.vc, entered, packet.travel.vc_class));
}

/// The same here and now, by the room behind the outputs. A packet from an injection port that belongs to an output has chosen.
[[gnu::noinline]] void RouterEngine::choose_output(Packet& packet, Cycle now) {
  const unsigned entered = packet.travel.vc_class;
  const topology::OutputSet offered = offered_to(packet.input, mesh_ports_, locals_ == PortLayout::Locals::per_direction);
  const auto room = [&](topology::Hop output, const topology::VcRange& vcs) {
    Output& out = outputs_[static_cast<unsigned>(output)];
    Bytes bytes = 0;
    for (unsigned vc = vcs.first; vc < vcs.first + vcs.count; ++vc) bytes += outputs_.credit(out, vc).room(now, network_.credits);
    return bytes;
  };
  const topology::Hop hop =
      network_.routes.take(packet.travel, tile_, came_by(packet.input, mesh_ports_), packet.destination, offered, room);
  packet.output = static_cast<std::uint8_t>(port_of(hop, packet));
  packet.output_vc = static_cast<std::uint8_t>(network_.routes.vc_in_class(packet.vc, entered, packet.travel.vc_class));
}

/// Branches that turn bid that much after the arrival, the others at once.
[[gnu::noinline]] void RouterEngine::bid_where_ways_part(Packet& packet, Cycle arrived, Cycle now) {
  const Cycle turned = std::max(now, arrived + network_.turn_cycles);
  packet.fork = {static_cast<std::uint32_t>(turned - now), false};
  const Packet copy = packet;
  const bool others = bid_for_branches(copy, false, now);
  if (turned == now) {
    bid_for_branches(copy, true, now);
  } else if (others) {
    network_.calendar.post(*this, turned, kTurned, copy.input * vcs_ + copy.vc);
  }
}

/// Branches that turn, or those that do not. Whether there are others.
bool RouterEngine::bid_for_branches(Packet packet, bool turning, Cycle now) {
  bool others = false;
  for (unsigned left = packet.branches; left != 0; left &= left - 1) {
    const auto port = static_cast<unsigned>(std::countr_zero(left));
    if ((turn_cost(packet.input, port) != 0) == turning) {
      bid(packet, port, now);
    } else {
      others = true;
    }
  }
  return others;
}

/// As grant(), of a copy; the last one is the packet itself. The buffer is free when all have left.
[[gnu::noinline]] void RouterEngine::grant_branch(unsigned port, unsigned bit, InputVc& in, unsigned input_vc, Cycle now) {
  Output& out = outputs_[port];
  const std::uint32_t original = in.head;
  network_.packets[original].branches &= static_cast<std::uint16_t>(~(1U << port));
  const bool last = network_.packets[original].branches == 0;
  const std::uint32_t index = last ? original : network_.packets.take();
  Packet& packet = network_.packets[index];
  if (!last) {
    packet = network_.packets[original];
    packet.branches = 0;
    if (network_.path != nullptr) network_.path->copied(index, original);
  }
  const Cycle turn = turn_cost(packet.input, port);
  if (turn != 0) packet.bid_at += packet.fork.turn_wait;
  const Cycle held_from = std::max(now, out.clock.held_until());
  const Cycle others_until = out.clock.free_at();
  const ExactTime tail = out.clock.occupy(now, packet.bytes, packet.tail.after(turn), network_.ports[out.timing].rate);
  out.bidders &= ~(std::uint64_t{1} << bit);
  out.first_bit = static_cast<std::uint8_t>(bit + 1);
  // Of the latest copy so far: the cycle in which it leaves, and whether its credit is a cycle later.
  const Cycle leaves = std::max(out.clock.free_at(), now + 1);
  const bool later = tail.ceil() > leaves;
  Fork& fork = network_.packets[original].fork;
  if (leaves >= in.free_at) fork.credit_later = later || (leaves == in.free_at && fork.credit_later);
  in.free_at = std::max(in.free_at, leaves);
  if (network_.path != nullptr) {
    network_.path->turned(index, turn);
    network_.path->granted(index, {tile_, input_vc, port, now, others_until, in.free_at});
  }
  if (last) {
    const Cycle gone_at = in.free_at + (fork.credit_later ? 1 : 0);
    in.head = packet.next;
    if (in.head != kNil) bid_when_free(in, input_vc);
    return_credit(packet.input, packet.vc, packet.bytes, gone_at, now);
  }
  send(port, index, held_from, now, tail);
}

}  // namespace wafersim::sim
