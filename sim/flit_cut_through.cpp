#include <algorithm>

#include "base/error.h"
#include "sim/flit_engine.h"

namespace wafersim::sim {

/// The head of a VC is the first of its VC from this cycle on, and wants its output from then, or when it has turned.
template <unsigned kPorts>
void FlitEngine<kPorts>::start_bidding(std::uint32_t router, State& state, PortVc at, Cycle now) {
  InputVc& from = inputs_of(router)[local(at)];
  const Flit flit = buffers_[from.base + from.first];
  require_invariant(flit.head(), "a packet's flits mixed with another's in a virtual channel");
  find_output(router, from, at, flit.packet());
  if (packets_[flit.packet()].multicast != 0 && fork(router, from, at, flit.packet())) [[unlikely]] {
    return bid_for_branches(router, state, at, now);
  }
  if (const Cycle turn = turn_cost(at.port, from.output); turn != 0) {
    // The turn begins when it is known: at the arrival, or where outputs are chosen by room, now.
    const bool chosen = routes_.kind() == PacketRoutes::Kind::adaptive;
    const Cycle turned = (chosen ? now : arrived_[flit.packet()]) + turn;
    if (turned > now) {
      from.state = VcState::routing;
      turning_.slot(turned).push_back({router, at, from.output});
      return;
    }
  }
  bid(router, state, at, from.output, now);
}

template <unsigned kPorts>
void FlitEngine<kPorts>::bid(std::uint32_t router, State& state, PortVc at, unsigned output, Cycle now) {
  InputVc& from = inputs_of(router)[local(at)];
  if (from.state == VcState::forked) [[unlikely]] {
    fork_at(router, at).branches[output].ready_at = now;
  } else {
    from.state = VcState::active;
    if (report_heads_) ready_at_[input_vc(router, at.port, at.vc)] = now;
  }
  Held& out = held_[std::size_t{router} * kPorts + output];
  // An arbiter with no bids and full credits is back in its first position.
  const bool rests = state.switch_requests[output].ports == 0 && out.uncredited == 0 && out.last_credit < now;
  if (rests) out.first = {};
  state.request_switch(output, at.port, at.vc);
}

template <unsigned kPorts>
void FlitEngine<kPorts>::evaluate_cut_through(std::uint32_t router, Cycle now) {
  State& state = routers_[router];
  end_packets(router, state, now);
  bool busy = false;
  for (unsigned output = 0; output < kPorts; ++output) {
    Held& out = held_[std::size_t{router} * kPorts + output];
    if (!out.held && (state.wants_switch >> output & 1U) != 0) arbitrate(router, state, output, now);
    if (out.held) busy = stream(router, state, output, now) || busy;
  }
  // Others that wait are visited again with a credit, or when the packet that has their output goes on.
  if (busy) return;
  active_[router / 64] &= ~(std::uint64_t{1} << (router % 64));
}

/// Outputs that have taken all of a packet are free, and the heads behind these packets bid.
template <unsigned kPorts>
void FlitEngine<kPorts>::end_packets(std::uint32_t router, State& state, Cycle now) {
  for (unsigned output = 0; output < kPorts; ++output) {
    Held& out = held_[std::size_t{router} * kPorts + output];
    if (!out.held || out.until > now) continue;
    out.held = false;
    InputVc& from = inputs_of(router)[local(out.by)];
    if (from.state == VcState::forked && !end_branch(router, from, out.by, output)) continue;
    from.state = VcState::idle;
    if (from.count != 0) start_bidding(router, state, out.by, now);
  }
}

/// Grants a free output to the first bidder whose packet has room behind it.
template <unsigned kPorts>
void FlitEngine<kPorts>::arbitrate(std::uint32_t router, State& state, unsigned output, Cycle now) {
  Held& out = held_[std::size_t{router} * kPorts + output];
  VcRequests<kPorts> left = state.switch_requests[output];
  for (PortVc start = out.first; left.ports != 0;) {
    const PortVc input = first_from(left, start);
    const InputVc& from = inputs_of(router)[local(input)];
    const std::uint32_t packet = buffers_[from.base + from.first].packet();
    const std::uint32_t flits = packets_[packet].flits;
    OutputVc& to = outputs_of(router)[local(output, from.output_vc)];
    const bool mesh = output < kMesh;
    if (!mesh || to.credits >= flits) {
      state.withdraw_switch(output, input.port, input.vc);
      out.held = true;
      out.by = input;
      out.since = now;
      out.sent = 0;
      out.until = kNever;
      out.first = {input.port, static_cast<std::uint8_t>(input.vc + 1)};
      if (out.first.vc == vcs_) out.first = {static_cast<std::uint8_t>((input.port + 1U) % kPorts), 0};
      if (from.state == VcState::forked) [[unlikely]] {
        const Branch& branch = fork_at(router, input).branches[output];
        terminals_.head_sent(router, output, branch.packet, now - branch.ready_at);
      } else if (report_heads_) {
        terminals_.head_sent(router, output, packet, now - ready_at_[input_vc(router, input.port, input.vc)]);
      }
      if (!mesh) return;
      to.credits -= flits;
      ++out.uncredited;
      return;
    }
    left.remove(input.port, input.vc);
    start = input;
  }
}

/// The cycle from which on the link has taken all of a packet, or of a copy of it, whose tail leaves now. No link takes it in
/// less than its own time, or before the link behind has.
template <unsigned kPorts>
Cycle FlitEngine<kPorts>::tail_gone(std::uint32_t packet, const Held& out, Cycle pace, Cycle now) {
  if (!paced_) return now + 1;
  if (packet >= tail_at_.size()) tail_at_.resize(packet + packet / 2 + 64, 0);
  return std::max({now + 1, out.since + packets_[packet].flits * pace, tail_at_[packet]});
}

/// Sends the next flit of the packet that holds the output; a slow link takes them at its pace. False when nothing can be done
/// before the next flit arrives.
template <unsigned kPorts>
bool FlitEngine<kPorts>::stream(std::uint32_t router, State& state, unsigned output, Cycle now) {
  Held& out = held_[std::size_t{router} * kPorts + output];
  if (out.until != kNever) return true;
  const PortVc input = out.by;
  InputVc& from = inputs_of(router)[local(input)];
  Fork* const fork = from.state == VcState::forked ? &fork_at(router, input) : nullptr;
  if (from.count <= (fork != nullptr ? out.sent : 0)) return false;
  const bool mesh = output < kMesh;
  const LinkDelay& link = link_delays_[mesh ? state.link_class[output] : 0];
  const Cycle pace = mesh ? link.flit : 1;
  if (now < out.since + out.sent * pace) return true;
  const Flit flit = fork != nullptr ? flit_of_branch(from, fork->branches[output], out.sent) : pop(from);
  ++out.sent;
  if (!flit.tail()) {
    forward(router, state, {static_cast<std::uint8_t>(output), from.output_vc}, flit, now);
    return true;
  }
  out.until = tail_gone(fork != nullptr ? fork->packet : flit.packet(), out, pace, now);
  // A terminal's flit counts from the last cycle of its own on.
  forward(router, state, {static_cast<std::uint8_t>(output), from.output_vc}, flit, mesh ? now : out.until - 1);
  if (paced_ && flit.packet() >= tail_at_.size()) tail_at_.resize(flit.packet() + flit.packet() / 2 + 64, 0);
  if (paced_) tail_at_[flit.packet()] = mesh ? out.until + link.arrival : 0;
  if (mesh) held_cycles_[router * topology::kDirections + output] += out.until - out.since;
  if (fork == nullptr) [[likely]] {
    give_back_packet(router, state, input, flit, out.until);
    return true;
  }
  fork->left = static_cast<PortSet>(fork->left & ~(1U << output));
  fork->gone = std::max(fork->gone, out.until);
  if (fork->left == 0) give_back_packet(router, state, input, {fork->packet, false, true}, fork->gone);
  return true;
}

/// The room of a packet with this tail is free from cycle `gone` on.
template <unsigned kPorts>
void FlitEngine<kPorts>::give_back_packet(std::uint32_t router, const State& state, PortVc input, Flit flit, Cycle gone) {
  if (input.port < kMesh) {
    const std::uint32_t flits = packets_[flit.packet()].flits;
    const Cycle delay = link_delays_[state.link_class[input.port]].credit;
    packet_credits_.slot(gone - 1 + delay).push_back({state.upstream[input.port] + input.vc, flits});
  } else {
    terminals_.injection_credit(router, input.port - kMesh, input.vc, flit, gone - 1 + credit_delay_);
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::take_packet_credit(const PacketCredit& credit, Cycle now) {
  const std::uint32_t router = credit.output_vc >> (kPortBits + vc_bits_);
  const unsigned output = credit.output_vc >> vc_bits_ & ((1U << kPortBits) - 1);
  outputs_[credit.output_vc].credits += credit.flits;
  Held& out = held_[std::size_t{router} * kPorts + output];
  --out.uncredited;
  out.last_credit = now;
  if ((routers_[router].wants_switch >> output & 1U) != 0) activate(router);
}

// The functions that the other sources of the class call.
#define WAFERSIM_INSTANTIATE(kPorts)                                                                         \
  template void FlitEngine<kPorts>::evaluate_cut_through(std::uint32_t, Cycle);                              \
  template void FlitEngine<kPorts>::start_bidding(std::uint32_t, FlitEngine<kPorts>::State&, PortVc, Cycle); \
  template void FlitEngine<kPorts>::bid(std::uint32_t, FlitEngine<kPorts>::State&, PortVc, unsigned, Cycle); \
  template void FlitEngine<kPorts>::take_packet_credit(const FlitEngine<kPorts>::PacketCredit&, Cycle)

WAFERSIM_INSTANTIATE(kSinglePort);
WAFERSIM_INSTANTIATE(kPortPerDirection);
WAFERSIM_INSTANTIATE(kManyPorts);

}  // namespace wafersim::sim
