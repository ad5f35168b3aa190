#include "sim/router_engine.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "base/error.h"
#include "sim/fleet.h"
#include "sim/path_recorder.h"
#include "sim/trains.h"

namespace wafersim::sim {

namespace {

/// Positions that the bidders of an output have, a bit each.
constexpr unsigned kBidBits = 64;

/// Input ports whose packets can want the same output.
unsigned bid_ports(const PortLayout& layout) { return layout.mesh + (layout.per_direction() ? 1U : layout.local); }

}  // namespace

RouterEngine::RouterEngine(TileId tile, NetworkContext& network)
    : tile_(tile),
      network_(network),
      vcs_(static_cast<std::uint8_t>(network.hardware.virtual_channels)),
      mesh_ports_(network.layout.mesh),
      locals_(network.layout.locals),
      last_bid_port_(static_cast<std::uint8_t>(bid_ports(network.layout) - 1)),
      mesh_vcs_(static_cast<std::uint8_t>(mesh_ports_ * vcs_)),
      inputs_(network.arena.make_array<InputVc>(std::size_t{network.layout.count()} * vcs_)),
      outputs_(network.arena, network.layout.count(), vcs_, network.hardware.vc_buffer_bytes),
      statistics_(network.arena.make_array<PortStatistics>(mesh_ports_)),
      terminals_(network.arena.make_array<TerminalIf*>(locals_ == PortLayout::Locals::per_tile ? network.layout.local : 0)),
      neighbours_(network.arena.make_array<RouterIf*>(mesh_ports_)) {
  if (bid_ports(network.layout) * vcs_ > kBidBits) {
    throw PlanError(fmt::format("router.virtual_channels: {} is out of range; a router of {} ports has at most {} with packets",
                                network.hardware.virtual_channels, network.layout.count(), kBidBits / bid_ports(network.layout)));
  }
  for (unsigned port = 0; port < outputs_.size(); ++port) {
    const bool mesh = port < mesh_ports_;
    outputs_[port].timing =
        mesh ? network.timing_of_link(topology::Mesh::link(tile, static_cast<topology::Direction>(port))) : network.timing_of_ejection();
  }
  if (locals_ == PortLayout::Locals::per_direction) {
    for (unsigned port = 0; port < outputs_.size(); ++port) {
      outputs_[port].local_shift = static_cast<std::uint8_t>(std::min(port, network.layout.self_lane()) * vcs_);
    }
  }
  add_to_fleet(network.calendar, *this, Rank::router);
}

void RouterEngine::connect(unsigned port, RouterEngine* router, RouterIf* other) {
  Output& out = outputs_[port];
  out.next_tile = router != nullptr ? router->tile_ : kNoTile;
  out.next_router = router;
  if (router != nullptr) {
    const ClientHandle handle = Calendar::handle(*router);
    out.next_id = handle.id;
    out.next_lane = handle.lane;
  }
  upstream_router_[port] = router;
  neighbours_[port] = other;
}

void RouterEngine::connect_nic(unsigned slot, TerminalIf* nic) {
  (locals_ == PortLayout::Locals::per_tile ? terminals_[slot] : terminal_) = nic;
}

void RouterEngine::receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) {
  announce(Calendar::handle(*this), tile_, packet, head_at, tail_at);
}

/// Tells a router, this one or a neighbour of ours, of a packet.
void RouterEngine::announce(ClientHandle router, TileId tile, std::uint32_t index, Cycle head_at, const ExactTime& tail_at) {
  const Cycle pipeline = network_.router_cycles;
  Packet& packet = network_.packets[index];
  if (packet.multicast) [[unlikely]] {
    packet.output = static_cast<std::uint8_t>(first_branch(tile, packet));
    packet.output_vc = packet.vc;
  } else if (network_.routes.plain()) [[likely]] {
    packet.output = static_cast<std::uint8_t>(port_of(network_.routes.next(tile, packet.destination), packet));
    packet.output_vc = packet.vc;
  } else if (network_.routes.kind() == PacketRoutes::Kind::foreseen) {
    foresee(tile, packet);
  }
  packet.tail = tail_at.after(pipeline + known_turn(packet));
  network_.calendar.post(router, head_at + pipeline, kArrive + std::min<unsigned>(packet.input, kArrivalKinds - 1), index);
}

unsigned RouterEngine::port_of(topology::Hop hop, const Packet& packet) const {
  if (hop != topology::Hop::local) {
    require_invariant(hop != topology::Hop::unreachable, "a packet reached a router without a way on");
    return static_cast<unsigned>(hop);
  }
  switch (locals_) {
    case PortLayout::Locals::per_direction:
      return mesh_ports_ + std::min<unsigned>(packet.input, mesh_ports_);
    case PortLayout::Locals::per_tile:
      return mesh_ports_ + network_.mesh.slot(packet.destination);
    case PortLayout::Locals::single:
      break;
  }
  return mesh_ports_;
}

/// What the pipeline is longer by from an input to an output.
Cycle RouterEngine::turn_cost(unsigned input, unsigned output) const {
  return turns(input, output, mesh_ports_) ? network_.turn_cycles : 0;
}

/// The same for a packet that has been announced, as far as its one output is known.
Cycle RouterEngine::known_turn(const Packet& packet) const {
  if (network_.turn_cycles == 0) [[likely]] return 0;
  if (packet.branches != 0 || network_.routes.kind() == PacketRoutes::Kind::adaptive) return 0;
  return turn_cost(packet.input, packet.output);
}

void RouterEngine::credit(unsigned port, unsigned vc, Bytes bytes, Cycle at) {
  take_credit(port, outputs_[port], vc, bytes, at, network_.calendar.now());
}

void RouterEngine::take_credit(unsigned port, Output& out, unsigned vc, Bytes bytes, Cycle at, Cycle now) {
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
  } else if (kind == kHeadFree || kind == kTurned) {
    __builtin_prefetch(&inputs_[payload]);
  } else {
    outputs_.prefetch(payload);
  }
}

void RouterEngine::prefetch_more(unsigned kind, std::uint32_t payload) const {
  if (kind < kArrive) return;
  const Packet& packet = network_.packets[payload];
  outputs_.prefetch(packet.output);
  if (packet.input >= mesh_ports_) __builtin_prefetch(terminal_of(packet.input));
  if (packet.output >= mesh_ports_) {
    const char* const nic = reinterpret_cast<const char*>(terminal_of(packet.output));
    __builtin_prefetch(nic);
    __builtin_prefetch(nic + 64);
    __builtin_prefetch(&network_.messages[packet.message]);
  }
}

/// For one of the outputs, as most often there is only one; the bit of the local port stands in when there is none.
void RouterEngine::prefetch_evaluation() const {
  const auto port = static_cast<unsigned>(std::countr_zero(pending_outputs_ | 1u << mesh_ports_));
  outputs_.prefetch(port);
  // A local port has none; asking for those of a mesh port costs less than to find out.
  const PortStatistics& statistics = statistics_[port & (mesh_ports_ - 1U)];
  __builtin_prefetch(&statistics);
  __builtin_prefetch(reinterpret_cast<const char*>(&statistics) + 64);
}

void RouterEngine::prefetch_evaluation_more() const {
  const auto port = static_cast<unsigned>(std::countr_zero(pending_outputs_ | 1u << mesh_ports_));
  const Output& out = outputs_[port];
  if (out.bidders == 0) return;
  const auto bit = static_cast<unsigned>(std::countr_zero(out.bidders));
  __builtin_prefetch(&network_.packets[inputs_[input_vc_of_bit(out, bit)].head]);
  // The grant will return a credit there.
  const unsigned input = bit / vcs_;
  if (input >= mesh_ports_) {
    __builtin_prefetch(terminal_);
  } else if (upstream_router_[input] != nullptr) {
    upstream_router_[input]->outputs_.prefetch(opposite_port(input));
  }
}

void RouterEngine::update(unsigned kind, std::uint32_t payload) {
  const Cycle now = network_.calendar.current();
  if (kind >= kArrive) [[likely]] {
    Packet& packet = network_.packets[payload];
    const unsigned input_vc = packet.input * vcs_ + packet.vc;
    InputVc& in = inputs_[input_vc];
    const Cycle ready = now + known_turn(packet);
    if (network_.path != nullptr) [[unlikely]] network_.path->arrived(payload, now, network_.router_cycles, ready - now);
    packet.bid_at = ready;
    if (in.head != kNil) {
      network_.packets[in.tail].next = payload;
      in.tail = payload;
      return;
    }
    in.head = in.tail = payload;
    if (in.free_at <= now && ready == now) {
      start_bidding(payload, now);
    } else {
      bid_when_free(in, input_vc);
    }
  } else if (kind == kHeadFree) {
    start_bidding(inputs_[payload].head, now);
  } else if (kind == kTurned) {
    const Packet& packet = network_.packets[inputs_[payload].head];
    if (packet.branches == 0) {
      bid(packet, packet.output, now);
    } else {
      bid_for_branches(packet, true, now);
    }
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
  const Cycle from = std::max(in.free_at, packet.bid_at);
  const bool unknown = network_.routes.kind() == PacketRoutes::Kind::adaptive || packet.branches != 0;
  if (out.next_tile == kNoTile || out.clock.free_at() < from || unknown || out.first_bit == Trains::kHeld) {
    network_.calendar.post(*this, from, kHeadFree, input_vc);
    return;
  }
  packet.bid_at = from;
  out.bidders |= std::uint64_t{1} << bid_bit(packet.input, packet.vc);
  wake(port, out, out.clock.free_at());
}

/// `index` is the packet at the head of its VC.
void RouterEngine::start_bidding(std::uint32_t index, Cycle now) {
  Packet& packet = network_.packets[index];
  const Cycle arrived = packet.bid_at;
  packet.bid_at = now;
  if (packet.branches != 0) [[unlikely]] return bid_where_ways_part(packet, arrived, now);
  if (network_.routes.kind() == PacketRoutes::Kind::adaptive) [[unlikely]] {
    choose_output(packet, now);
    // The turn begins when it is chosen.
    if (const Cycle turn = turn_cost(packet.input, packet.output)) {
      packet.tail = packet.tail.after(turn);
      packet.bid_at = now + turn;
      if (network_.path != nullptr) network_.path->turned(index, turn);
      return network_.calendar.post(*this, now + turn, kTurned, packet.input * vcs_ + packet.vc);
    }
  }
  bid(packet, packet.output, now);
}

/// Where a train held the output, its packets come into being: references to packets do not outlive this.
void RouterEngine::bid(const Packet& packet, unsigned port, Cycle now) {
  Output& out = outputs_[port];
  const unsigned bit = bid_bit(packet.input, packet.vc);
  if (out.first_bit == Trains::kHeld) [[unlikely]] settle_holder(out);
  // An arbiter with no bids and full credits is back in its first position.
  const bool rested = (out.bidders == 0) & (out.uncredited == 0) & (out.credits_full_at < now);
  out.first_bit = static_cast<std::uint8_t>(out.first_bit * static_cast<unsigned>(!rested));
  out.bidders |= std::uint64_t{1} << bit;
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
  // From first_bit on, round to it again. Positions beyond those that there are wrap into unused ones.
  const unsigned first = out.first_bit;
  for (std::uint64_t left = std::rotr(out.bidders, static_cast<int>(first)); left != 0; left &= left - 1) {
    const unsigned bit = (static_cast<unsigned>(std::countr_zero(left)) + first) % 64;
    const unsigned input_vc = input_vc_of_bit(out, bit);
    InputVc& in = inputs_[input_vc];
    const Packet& packet = network_.packets[in.head];
    // The NIC always consumes.
    if (port >= mesh_ports_ || outputs_.credit(out, packet.output_vc).has_room(packet.bytes, now, network_.credits)) {
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
  if (packet.branches != 0) [[unlikely]] return grant_branch(port, bit, in, input_vc, now);

  const Cycle held_from = std::max(now, out.clock.held_until());
  const Cycle others_until = out.clock.free_at();
  const ExactTime tail = out.clock.occupy(now, packet.bytes, packet.tail, network_.ports[out.timing].rate);
  const Cycle gone_at = tail.ceil();
  out.bidders &= ~(std::uint64_t{1} << bit);
  out.first_bit = static_cast<std::uint8_t>(bit + 1);  // behind the last: from the first again

  // The packet behind bids in the cycle in which this one has left, also when that is in the middle of a cycle: the port
  // carries the remainder.
  in.head = packet.next;
  in.free_at = std::max(out.clock.free_at(), now + 1);
  if (network_.path != nullptr) [[unlikely]] {
    network_.path->granted(index, {tile_, input_vc, port, now, others_until, in.free_at});
  }
  if (in.head != kNil) bid_when_free(in, input_vc);

  return_credit(packet.input, packet.vc, packet.bytes, gone_at, now);

  send(port, index, held_from, now, tail);
}

/// A granted packet leaves.
void RouterEngine::send(unsigned port, std::uint32_t index, Cycle held_from, Cycle now, const ExactTime& tail) {
  Output& out = outputs_[port];
  Packet& packet = network_.packets[index];
  const Cycle gone_at = tail.ceil();
  const Cycle queued = now - packet.bid_at;
  packet.queued += queued;
  packet.next = kNil;
  if (port >= mesh_ports_) {
    terminal_of(port)->eject(index, now, tail);
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
  packet.input = static_cast<std::uint8_t>(opposite_port(port));
  forward(port, out, index, now, tail);
}

/// The place of a packet that has gone at `gone_at` is known upstream when the credit is back over the link.
void RouterEngine::return_credit(unsigned input, unsigned vc, Bytes bytes, Cycle gone_at, Cycle now) {
  if (input >= mesh_ports_) {
    const unsigned lane = locals_ == PortLayout::Locals::per_direction ? input - mesh_ports_ : 0;
    return terminal_of(input)->credit(lane, vc, bytes, gone_at + network_.hardware.credit_cycles);
  }
  RouterEngine* const upstream = upstream_router_[input];
  if (upstream != nullptr) [[likely]] {
    const unsigned port = opposite_port(input);
    Output& out = upstream->outputs_[port];
    return upstream->take_credit(port, out, vc, bytes, gone_at + network_.ports[out.timing].credit_cycles, now);
  }
  // The link there and the link back are alike.
  neighbours_[input]->credit(opposite_port(input), vc, bytes, gone_at + network_.ports[outputs_[input].timing].credit_cycles);
}

void RouterEngine::forward(unsigned port, Output& out, std::uint32_t index, Cycle now, const ExactTime& tail) {
  const Cycle link = network_.ports[out.timing].link_cycles;
  if (out.next_tile != kNoTile) [[likely]] {
    const Packet& packet = network_.packets[index];
    prefetch_visit(out.next_router, packet.input, vcs_);
    if (packet.destination == out.next_tile) __builtin_prefetch(network_.nics[out.next_tile]);
    announce({out.next_id, out.next_lane}, out.next_tile, index, now + link, tail.after(link));
  } else {
    neighbours_[port]->receive(index, now + link, tail.after(link));
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

}  // namespace wafersim::sim
