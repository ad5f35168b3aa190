#include "base/error.h"
#include "sim/flit_engine.h"

namespace wafersim::sim {

/// The head of a VC wants its output from this cycle on.
template <unsigned kPorts>
void FlitEngine<kPorts>::start_bidding(std::uint32_t router, State& state, PortVc at, Cycle now) {
  InputVc& from = inputs_of(router)[local(at)];
  const Flit flit = buffers_[from.base + from.first];
  require_invariant(flit.head(), "a packet's flits mixed with another's in a virtual channel");
  from.state = VcState::active;
  find_output(router, from, at, flit.packet());
  if (report_heads_) ready_at_[input_vc(router, at.port, at.vc)] = now;
  Held& out = held_[std::size_t{router} * kPorts + from.output];
  // An arbiter with no bids and full credits is back in its first position.
  const bool rests = state.switch_requests[from.output].ports == 0 && out.uncredited == 0 && out.last_credit < now;
  if (rests) out.first = {};
  state.request_switch(from.output, at.port, at.vc);
}

template <unsigned kPorts>
void FlitEngine<kPorts>::evaluate_cut_through(std::uint32_t router, Cycle now) {
  State& state = routers_[router];
  // Heads behind a tail that left in the last cycle.
  for (std::uint32_t ports = state.routing; ports != 0; ports &= ports - 1) {
    const unsigned port = first_of(ports);
    for (std::uint32_t vcs = state.routing_vcs[port]; vcs != 0; vcs &= vcs - 1) {
      start_bidding(router, state, {static_cast<std::uint8_t>(port), static_cast<std::uint8_t>(first_of(vcs))}, now);
    }
    state.routing_vcs[port] = 0;
  }
  state.routing = 0;
  bool busy = false;
  for (unsigned output = 0; output < kPorts; ++output) {
    Held& out = held_[std::size_t{router} * kPorts + output];
    if (!out.held && (state.wants_switch >> output & 1U) != 0) arbitrate(router, state, output, now);
    if (out.held) busy = stream(router, state, output, now) || busy;
  }
  if (busy || state.wants_switch != 0 || state.routing != 0) return;
  active_[router / 64] &= ~(std::uint64_t{1} << (router % 64));
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
    const bool mesh = output < kMeshPorts;
    if (!mesh || to.credits >= flits) {
      state.withdraw_switch(output, input.port, input.vc);
      out.held = true;
      out.by = input;
      out.first = {input.port, static_cast<std::uint8_t>(input.vc + 1)};
      if (out.first.vc == vcs_) out.first = {static_cast<std::uint8_t>((input.port + 1U) % kPorts), 0};
      if (report_heads_) terminals_.head_sent(router, output, packet, now - ready_at_[input_vc(router, input.port, input.vc)]);
      if (!mesh) return;
      to.credits -= flits;
      ++out.uncredited;
      return;
    }
    left.remove(input.port, input.vc);
    start = input;
  }
}

/// Sends the next flit of the packet that holds the output. False when nothing can be done before the next flit arrives.
template <unsigned kPorts>
bool FlitEngine<kPorts>::stream(std::uint32_t router, State& state, unsigned output, Cycle now) {
  Held& out = held_[std::size_t{router} * kPorts + output];
  const PortVc input = out.by;
  InputVc& from = inputs_of(router)[local(input)];
  if (from.count == 0) return false;
  const Flit flit = pop(from);
  forward(router, state, {static_cast<std::uint8_t>(output), from.output_vc}, flit, now);
  if (!flit.tail()) return true;
  if (input.port < kMeshPorts) {
    const std::uint32_t flits = packets_[flit.packet()].flits;
    packet_credits_.slot(now + credit_delay_).push_back({state.upstream[input.port] + input.vc, flits});
  } else {
    terminals_.injection_credit(router, input.port - kMeshPorts, input.vc, flit, now + credit_delay_);
  }
  out.held = false;
  from.state = VcState::idle;
  if (from.count != 0) {
    state.routing_vcs[input.port] = static_cast<VcSet>(state.routing_vcs[input.port] | 1U << input.vc);
    state.routing = static_cast<PortSet>(state.routing | 1U << input.port);
    from.state = VcState::routing;
  }
  return true;
}

template <unsigned kPorts>
void FlitEngine<kPorts>::take_packet_credit(const PacketCredit& credit, Cycle now) {
  const std::uint32_t router = credit.output_vc >> (kPortBits + vc_bits_);
  const unsigned output = credit.output_vc >> vc_bits_ & ((1U << kPortBits) - 1);
  outputs_[credit.output_vc].credits += credit.flits;
  Held& out = held_[std::size_t{router} * kPorts + output];
  --out.uncredited;
  out.last_credit = now;
  // A router with bids is active.
}

// The functions that the other sources of the class call.
using SinglePort = FlitEngine<kSinglePort>;
using PortPerDirection = FlitEngine<kPortPerDirection>;
template void FlitEngine<kSinglePort>::evaluate_cut_through(std::uint32_t, Cycle);
template void FlitEngine<kSinglePort>::start_bidding(std::uint32_t, SinglePort::State&, PortVc, Cycle);
template void FlitEngine<kSinglePort>::take_packet_credit(const SinglePort::PacketCredit&, Cycle);
template void FlitEngine<kPortPerDirection>::evaluate_cut_through(std::uint32_t, Cycle);
template void FlitEngine<kPortPerDirection>::start_bidding(std::uint32_t, PortPerDirection::State&, PortVc, Cycle);
template void FlitEngine<kPortPerDirection>::take_packet_credit(const PortPerDirection::PacketCredit&, Cycle);

}  // namespace wafersim::sim
