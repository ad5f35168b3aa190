#include "sim/router_engine.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "base/error.h"
#include "sim/fleet.h"

namespace wafersim::sim {

namespace {

/// Output ports of a neighbour are named from its side.
constexpr unsigned opposite(unsigned port) { return (port + 2) % kMeshPorts; }

}  // namespace

RouterEngine::RouterEngine(TileId tile, NetworkContext& network)
    : tile_(tile),
      network_(network),
      vcs_(static_cast<std::uint8_t>(network.hardware.virtual_channels)),
      single_local_(network.hardware.nic_ports == models::NicPorts::single),
      inputs_(network.arena.make_array<InputVc>(std::size_t{kMeshPorts + local_ports(network.hardware.nic_ports)} * vcs_)),
      outputs_(network.arena, kMeshPorts + local_ports(network.hardware.nic_ports), vcs_, network.hardware.vc_buffer_bytes),
      statistics_(network.arena.make_array<PortStatistics>(kMeshPorts)) {
  require_invariant((kMeshPorts + 1U) * vcs_ <= 64, "a router has at most 12 virtual channels");
  if (!single_local_) {
    for (unsigned port = 0; port < outputs_.size(); ++port) {
      outputs_[port].local_shift = static_cast<std::uint8_t>(std::min(port, kSelfLane) * vcs_);
    }
  }
  add_to_fleet(network.calendar, *this, Rank::router);
}

void RouterEngine::connect_output(unsigned port, RouterEngine* router, PacketSink* other) {
  Output& out = outputs_[port];
  out.next_tile = router != nullptr ? router->tile_ : kNoTile;
  out.next_router = router;
  if (router != nullptr) {
    const ClientHandle handle = Calendar::handle(*router);
    out.next_id = handle.id;
    out.next_lane = handle.lane;
  }
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
  announce(Calendar::handle(*this), tile_, packet, head_at, tail_at);
}

/// Tells a router, this one or a neighbour of ours, of a packet.
void RouterEngine::announce(ClientHandle router, TileId tile, std::uint32_t index, Cycle head_at, const ExactTime& tail_at) {
  const Cycle pipeline = network_.router_cycles;
  Packet& packet = network_.packets[index];
  packet.tail = tail_at.after(pipeline);
  if (network_.routes.plain()) [[likely]] {
    packet.output = static_cast<std::uint8_t>(port_of(network_.routes.next(tile, packet.destination), packet.input));
    packet.output_vc = packet.vc;
  } else if (network_.routes.kind() == PacketRoutes::Kind::foreseen) {
    foresee(tile, packet);
  }
  network_.calendar.post(router, head_at + pipeline, kArrive + packet.input, index);
}

unsigned RouterEngine::port_of(topology::Hop hop, unsigned input) const {
  if (hop != topology::Hop::local) {
    require_invariant(hop != topology::Hop::unreachable, "a packet reached a router without a way on");
    return static_cast<unsigned>(hop);
  }
  if (single_local_) return kMeshPorts;
  return kMeshPorts + (input < kMeshPorts ? input : kSelfLane);
}

/// The output that a packet takes at `tile`, where no choice is left.
[[gnu::noinline]] void RouterEngine::foresee(TileId tile, Packet& packet) const {
  const unsigned entered = packet.travel.vc_class;
  const topology::Hop hop = network_.routes.take(packet.travel, tile, came_by(packet.input), packet.destination, kAllOutputs,
                                                 [](topology::Hop, const topology::VcRange&) { return 0U; });
  packet.output = static_cast<std::uint8_t>(port_of(hop, packet.input));
  packet.output_vc = static_cast<std::uint8_t>(network_.routes.vc_in_class(packet.vc, entered, packet.travel.vc_class));
}

/// The same here and now, by the room behind the outputs. A packet from an injection port that belongs to an output has chosen.
[[gnu::noinline]] void RouterEngine::choose_output(Packet& packet, Cycle now) {
  const unsigned entered = packet.travel.vc_class;
  const topology::OutputSet offered = offered_to(packet.input, single_local_);
  const auto room = [&](topology::Hop output, const topology::VcRange& vcs) {
    Output& out = outputs_[static_cast<unsigned>(output)];
    Bytes bytes = 0;
    for (unsigned vc = vcs.first; vc < vcs.first + vcs.count; ++vc) bytes += outputs_.credit(out, vc).room(now, network_.credits);
    return bytes;
  };
  const topology::Hop hop =
      network_.routes.take(packet.travel, tile_, came_by(packet.input), packet.destination, offered, room);
  packet.output = static_cast<std::uint8_t>(port_of(hop, packet.input));
  packet.output_vc = static_cast<std::uint8_t>(network_.routes.vc_in_class(packet.vc, entered, packet.travel.vc_class));
}

void RouterEngine::credit(unsigned port, unsigned vc, Bytes bytes, Cycle at) {
  take_credit(port, vc, bytes, at, network_.calendar.now());
}

void RouterEngine::take_credit(unsigned port, unsigned vc, Bytes bytes, Cycle at, Cycle now) {
  Output& out = outputs_[port];
  CreditCounter& counter = outputs_.credit(out, vc);
  counter.give(bytes, at, now, network_.credits);
  --out.uncredited;
  out.credits_full_at = std::max(out.credits_full_at, at);
  if (counter.stop_waiting()) [[unlikely]] wake(port, out, at);
}

void RouterEngine::prefetch_visit(const RouterEngine* router, unsigned input, unsigned vcs) {
  const char* const start = reinterpret_cast<const char*>(router);
  __builtin_prefetch(start);
  __builtin_prefetch(start + 64);
  // Computed, not read; where the arena began a new block between the two, the hint is wrong and nothing else.
  __builtin_prefetch(start + sizeof(RouterEngine) + input * vcs * sizeof(InputVc));
}

void RouterEngine::prefetch(unsigned kind, std::uint32_t payload) const {
  if (kind >= kArrive) [[likely]] {
    __builtin_prefetch(&network_.packets[payload]);
    __builtin_prefetch(&inputs_[(kind - kArrive) * vcs_]);
  } else if (kind == kHeadFree) {
    __builtin_prefetch(&inputs_[payload]);
  } else {
    outputs_.prefetch(payload);
  }
}

void RouterEngine::prefetch_more(unsigned kind, std::uint32_t payload) const {
  if (kind < kArrive) return;
  const Packet& packet = network_.packets[payload];
  outputs_.prefetch(packet.output);
  if (packet.input >= kMeshPorts) __builtin_prefetch(nic_credits_);
  if (packet.output >= kMeshPorts) {
    const char* const nic = reinterpret_cast<const char*>(nic_);
    __builtin_prefetch(nic);
    __builtin_prefetch(nic + 64);
    __builtin_prefetch(&network_.messages[packet.message]);
  }
}

/// For one of the outputs, as most often there is only one; the bit of the local port stands in when there is none.
void RouterEngine::prefetch_evaluation() const {
  const auto port = static_cast<unsigned>(std::countr_zero(pending_outputs_ | 1u << kMeshPorts));
  outputs_.prefetch(port);
  // A local port has none; asking for those of a mesh port costs less than to find out.
  const PortStatistics& statistics = statistics_[port % kMeshPorts];
  __builtin_prefetch(&statistics);
  __builtin_prefetch(reinterpret_cast<const char*>(&statistics) + 64);
}

void RouterEngine::prefetch_evaluation_more() const {
  const auto port = static_cast<unsigned>(std::countr_zero(pending_outputs_ | 1u << kMeshPorts));
  const Output& out = outputs_[port];
  if (out.bidders == 0) return;
  const auto bit = static_cast<unsigned>(std::countr_zero(out.bidders));
  __builtin_prefetch(&network_.packets[inputs_[input_vc_of_bit(out, bit)].head]);
  // The grant will return a credit there.
  const unsigned input = bit / vcs_;
  if (input >= kMeshPorts) {
    __builtin_prefetch(nic_credits_);
  } else if (upstream_router_[input] != nullptr) {
    upstream_router_[input]->outputs_.prefetch(opposite(input));
  }
}

void RouterEngine::update(unsigned kind, std::uint32_t payload) {
  const Cycle now = network_.calendar.current();
  if (kind >= kArrive) [[likely]] {
    const unsigned input_vc = (kind - kArrive) * vcs_ + network_.packets[payload].vc;
    InputVc& in = inputs_[input_vc];
    if (in.head != kNil) {
      network_.packets[in.tail].next = payload;
      in.tail = payload;
      return;
    }
    in.head = in.tail = payload;
    if (in.free_at <= now) {
      start_bidding(payload, now);
    } else {
      bid_when_free(in, input_vc);
    }
  } else if (kind == kHeadFree) {
    start_bidding(inputs_[payload].head, now);
  } else {
    Output& out = outputs_[payload];
    if (out.wake_at != now) return;  // an earlier wake-up took its place
    out.wake_at = kNever;
    request_arbitration(payload);
  }
}

/// The head of a VC bids when the packet ahead has left. When the output that it wants is held until then or longer, its bid
/// is entered at once: nobody is granted before. Nor can the arbiter return to its first position meanwhile: the credit of the
/// packet that holds the port comes after that packet has left (a router of ours sees to that).
void RouterEngine::bid_when_free(const InputVc& in, unsigned input_vc) {
  Packet& packet = network_.packets[in.head];
  const unsigned port = packet.output;
  Output& out = outputs_[port];
  const bool unknown = network_.routes.kind() == PacketRoutes::Kind::adaptive;
  if (out.next_tile == kNoTile || out.clock.free_at() < in.free_at || unknown) {
    network_.calendar.post(*this, in.free_at, kHeadFree, input_vc);
    return;
  }
  packet.bid_at = in.free_at;
  out.bidders |= std::uint64_t{1} << bid_bit(packet.input, packet.vc);
  wake(port, out, out.clock.free_at());
}

/// `index` is the packet at the head of its VC.
void RouterEngine::start_bidding(std::uint32_t index, Cycle now) {
  Packet& packet = network_.packets[index];
  packet.bid_at = now;
  if (network_.routes.kind() == PacketRoutes::Kind::adaptive) [[unlikely]] choose_output(packet, now);
  const unsigned port = packet.output;
  Output& out = outputs_[port];
  // An arbiter with no bids and full credits is back in its first position.
  const bool rested = (out.bidders == 0) & (out.uncredited == 0) & (out.credits_full_at < now);
  out.first_bit = static_cast<std::uint8_t>(out.first_bit * static_cast<unsigned>(!rested));
  out.bidders |= std::uint64_t{1} << bid_bit(packet.input, packet.vc);
  if (out.clock.free_at() > now) return wake(port, out, out.clock.free_at());  // which this cycle cannot change
  request_arbitration(port);
}

void RouterEngine::request_arbitration(unsigned port) {
  pending_outputs_ |= 1u << port;
  network_.calendar.request_evaluation(*this);
}

void RouterEngine::evaluate() {
  const Cycle now = network_.calendar.current();
  std::uint32_t pending = pending_outputs_;
  pending_outputs_ = 0;
  for (; pending != 0; pending &= pending - 1) arbitrate(static_cast<unsigned>(std::countr_zero(pending)), now);
}

/// Called at most once a cycle for an output, so that it grants at most one bidder a cycle.
void RouterEngine::arbitrate(unsigned port, Cycle now) {
  Output& out = outputs_[port];
  if (out.bidders == 0) return;
  if (out.clock.free_at() > now) return wake(port, out, out.clock.free_at());
  // From first_bit on, round to it again. There are at most 60 positions, so those beyond wrap into the unused ones.
  const unsigned first = out.first_bit;
  for (std::uint64_t left = std::rotr(out.bidders, static_cast<int>(first)); left != 0; left &= left - 1) {
    const unsigned bit = (static_cast<unsigned>(std::countr_zero(left)) + first) % 64;
    const unsigned input_vc = input_vc_of_bit(out, bit);
    InputVc& in = inputs_[input_vc];
    const Packet& packet = network_.packets[in.head];
    // The NIC always consumes.
    if (port >= kMeshPorts || outputs_.credit(out, packet.output_vc).has_room(packet.bytes, now, network_.credits)) {
      grant(port, bit, in, input_vc, now);
      if (out.bidders != 0) wake(port, out, std::max(out.clock.free_at(), now + 1));
      return;
    }
  }
  wait_for_credit(port, out);
}

void RouterEngine::grant(unsigned port, unsigned bit, InputVc& in, unsigned input_vc, Cycle now) {
  Output& out = outputs_[port];
  const std::uint32_t index = in.head;
  Packet& packet = network_.packets[index];

  const bool mesh = port < kMeshPorts;
  const Cycle held_from = std::max(now, out.clock.held_until());
  const ExactTime tail =
      out.clock.occupy(now, packet.bytes, packet.tail, mesh ? network_.link_rate : network_.ejection_rate);
  const Cycle gone_at = tail.ceil();
  out.bidders &= ~(std::uint64_t{1} << bit);
  out.first_bit = static_cast<std::uint8_t>(bit + 1);  // behind the last: from the first again

  // The packet behind bids in the cycle in which this one has left, also when that is in the middle of a cycle: the port
  // carries the remainder.
  in.head = packet.next;
  in.free_at = std::max(out.clock.free_at(), now + 1);
  if (in.head != kNil) bid_when_free(in, input_vc);

  return_credit(packet.input, packet.vc, packet.bytes, gone_at + network_.credit_cycles, now);

  const Cycle queued = now - packet.bid_at;
  packet.queued += queued;
  packet.next = kNil;
  if (!mesh) {
    nic_->eject(index, tail);
    return;
  }
  PortStatistics& statistics = statistics_[port];
  statistics.busy += gone_at - std::min(gone_at, held_from);
  statistics.bytes_by_axis[static_cast<std::size_t>(packet.axis)] += packet.bytes;
  statistics.packets += 1;
  statistics.queued += queued;
  outputs_.credit(out, packet.output_vc).take(packet.bytes);
  ++out.uncredited;
  packet.vc = packet.output_vc;
  packet.input = static_cast<std::uint8_t>(opposite(port));
  forward(port, out, index, now, tail);
}

void RouterEngine::return_credit(unsigned input, unsigned vc, Bytes bytes, Cycle at, Cycle now) {
  if (input >= kMeshPorts) return nic_credits_->credit(input - kMeshPorts, vc, bytes, at);
  RouterEngine* const upstream = upstream_router_[input];
  if (upstream != nullptr) [[likely]] return upstream->take_credit(opposite(input), vc, bytes, at, now);
  upstream_other_[input]->credit(opposite(input), vc, bytes, at);
}

void RouterEngine::forward(unsigned port, Output& out, std::uint32_t index, Cycle now, const ExactTime& tail) {
  const Cycle link = network_.link_cycles;
  if (out.next_tile != kNoTile) [[likely]] {
    const Packet& packet = network_.packets[index];
    prefetch_visit(out.next_router, packet.input, vcs_);
    if (packet.destination == out.next_tile) __builtin_prefetch(network_.nics[out.next_tile]);
    announce({out.next_id, out.next_lane}, out.next_tile, index, now + link, tail.after(link));
  } else {
    next_other_[port]->receive(index, now + link, tail.after(link));
  }
}

/// Out of line, as the other functions that few packets need: inlined they take registers from those that all need.
[[gnu::noinline]] void RouterEngine::wait_for_credit(unsigned port, Output& out) {
  const Cycle now = network_.calendar.current();
  Cycle earliest = kNever;
  for (std::uint64_t left = out.bidders; left != 0; left &= left - 1) {
    const unsigned input_vc = input_vc_of_bit(out, static_cast<unsigned>(std::countr_zero(left)));
    CreditCounter& counter = outputs_.credit(out, network_.packets[inputs_[input_vc].head].output_vc);
    const Cycle next = counter.next_arrival(now);
    if (next == kNever) counter.wait();
    earliest = std::min(earliest, next);
  }
  if (earliest != kNever) wake(port, out, earliest);
}

[[gnu::noinline]] void RouterEngine::wake(unsigned port, Output& out, Cycle at) {
  if (out.wake_at <= at) return;
  out.wake_at = at;
  network_.calendar.post(*this, at, kArbitrate, port);
}

std::string RouterEngine::describe_stall(const std::string& name) const {
  std::string text;
  for (unsigned i = 0; i < outputs_.size() * vcs_; ++i) {
    if (inputs_[i].head == kNil) continue;
    const Packet& packet = network_.packets[inputs_[i].head];
    const Message& message = network_.messages[packet.message];
    text += fmt::format("{}: input port {} VC {} holds a packet of {} B from tile {} to tile {}\n", name,
                        i / vcs_, i % vcs_, packet.bytes, message.source, message.destination);
  }
  return text;
}

}  // namespace wafersim::sim
