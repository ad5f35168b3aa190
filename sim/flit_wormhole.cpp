#include <algorithm>

#include "base/error.h"
#include "sim/flit_engine.h"

namespace wafersim::sim {
namespace {

constexpr std::uint8_t after(unsigned index, unsigned count) {
  const unsigned next = index + 1;
  return static_cast<std::uint8_t>(next & (0U - static_cast<unsigned>(next != count)));
}
/// The request behind `at`, in the order of ports, then VCs.
constexpr PortVc after(PortVc at, unsigned ports, unsigned vcs) {
  const std::uint8_t vc = after(at.vc, vcs);
  const unsigned port = at.port + static_cast<unsigned>(vc == 0);
  return {static_cast<std::uint8_t>(port & (0U - static_cast<unsigned>(port != ports))), vc};
}
constexpr PortVc port_vc(unsigned port, unsigned vc) {
  return {static_cast<std::uint8_t>(port), static_cast<std::uint8_t>(vc)};
}
/// Of the VCs of `output`, the first that a pointer over all outputs' VCs comes to.
constexpr unsigned first_vc(VcSet vcs, unsigned output, PortVc pointer) {
  return first_from(vcs, pointer.vc & (0U - static_cast<unsigned>(pointer.port == output)));
}

template <class Set>
Set without(Set set, unsigned member) {
  return static_cast<Set>(set & ~(1U << member));
}
template <class Set>
Set with(Set set, unsigned member) {
  return static_cast<Set>(set | 1U << member);
}

}  // namespace

/// One cycle of a router: every stage decides on the state that the cycle began with. What one does must not be seen by one that
/// decides later in here: the switch chooses between the VCs that have theirs before more VCs are given away, and flits leave,
/// which frees VCs, after that. Inlining the stages was measured to save a tenth.
template <unsigned kPorts>
[[gnu::flatten]] void FlitEngine<kPorts>::evaluate_wormhole(std::uint32_t router, Cycle now) {
  State& state = routers_[router];
  InputVc* const in = inputs_of(router);
  OutputVc* const out = outputs_of(router);
  const bool long_vc = stages_.vc_allocation > 1;
  const bool long_switch = stages_.switch_allocation > 1;
  const bool listed = long_switch || open_forks_ != 0;
  SwitchOffers offers = offer_switch(router, state, in, now);
  Grants<SwitchGrant> switch_grants;
  if (listed) [[unlikely]] {
    accept_switch(state, offers, [&](PortVc input, unsigned output, bool speculative) {
      switch_grants.add({input, static_cast<std::uint8_t>(output), speculative});
    });
    if (open_forks_ != 0) fan_out(router, state, in, switch_grants, now);
    if (long_switch) begin_long_switch_stage(router, state, switch_grants, now);
  }
  if (long_vc) [[unlikely]] {
    Grants<VcGrant> vc_grants;
    const PortSet heads_wait_for = state.wants_vc;
    allocate_vcs(state, in, out, [&](PortVc input, PortVc output) { vc_grants.add({input, output}); });
    if (heads_wait_for != 0) begin_long_vc_stage(router, state, in, vc_grants, heads_wait_for, now);
  } else {
    allocate_vcs(state, in, out, [&](PortVc input, PortVc output) { take_vc(router, state, in, out, input, output); });
  }
  if (state.routing != 0) state.end_routing();
  if (!listed) [[likely]] {
    accept_switch(state, offers, [&](PortVc input, unsigned output, bool speculative) {
      use_switch(router, state, input, output, speculative, now);
    });
  } else if (!long_switch) {
    for (const SwitchGrant& grant : switch_grants) {
      use_switch(router, state, grant.input, grant.output, grant.speculative, now);
    }
  }
  active_[router / 64] &= ~(std::uint64_t{!can_act(state, in)} << (router % 64));
}

template <unsigned kPorts>
bool FlitEngine<kPorts>::can_act(const State& state, const InputVc* in) const {
  if (vc_groups_.size() > 1) [[unlikely]] {
    return (state.wants_switch | state.routing) != 0 || waits_for_free_vc(state, in);
  }
  return (state.wants_switch | state.routing | (state.wants_vc & state.has_free_vc)) != 0;
}

/// The head of a packet is the first flit of its VC from cycle `front_since` on, which is now or the next one.
template <unsigned kPorts>
void FlitEngine<kPorts>::start_packet(std::uint32_t router, State& state, InputVc& from, PortVc at, Cycle front_since) {
  const Flit flit = buffers_[from.base + from.first];
  require_invariant(flit.head(), "a packet's flits mixed with another's in a virtual channel");
  find_output(router, from, at, flit.packet());
  if (packets_[flit.packet()].multicast != 0 && fork(router, from, at, flit.packet())) [[unlikely]] {
    return start_branches(router, state, at, front_since);
  }
  const Cycle routing = static_cast<Cycle>(stages_.routing) + turn_cost(at.port, from.output);
  if (report_heads_) {
    const auto allocation = static_cast<Cycle>(stages_.speculative ? 0 : stages_.vc_allocation);
    ready_at_[input_vc(router, at.port, at.vc)] = front_since + routing + allocation;
  }
  if (routing == 0) return wait_for_vc(state, from, at);
  if (routing == 1) {
    from.state = VcState::waiting;
    state.request_vc_next(from.output, at.port, at.vc);
  } else {
    from.state = VcState::routing;
    const Cycle end = front_since + routing - 1;
    stage_ends_.slot(end).push_back({router, StageEnd::Stage::routing, true, at, {}});
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::wait_for_vc(State& state, InputVc& from, PortVc at) {
  from.state = VcState::waiting;
  state.request_vc(from.output, at.port, at.vc);
}

/// Calls `granted` with the input VC and the output VC of every grant.
template <unsigned kPorts>
template <class Granted>
void FlitEngine<kPorts>::allocate_vcs(State& state, InputVc* in, OutputVc* out, const Granted& granted) {
  for (std::uint32_t outputs = state.wants_vc & state.has_free_vc; outputs != 0; outputs &= outputs - 1) {
    const unsigned output = first_of(outputs);
    const VcSet free = state.free_vcs[output];
    if (vc_groups_.size() > 1) [[unlikely]] {
      allocate_by_group(state, output, in, out, granted);
    } else {
      allocate_output(state.vc_requests[output], free, output, in, out, granted);
    }
  }
}

/// Heads of different groups never ask for the same VC.
template <unsigned kPorts>
template <class Granted>
void FlitEngine<kPorts>::allocate_by_group(const State& state, unsigned output, InputVc* in, OutputVc* out,
                                           const Granted& granted) {
  for (const VcSet group : vc_groups_) {
    const auto free = static_cast<VcSet>(state.free_vcs[output] & group);
    if (free == 0) continue;
    const VcRequests<kPorts> requests = requests_with_any(state.vc_requests[output], in, group);
    if (requests.ports != 0) allocate_output(requests, free, output, in, out, granted);
  }
}

/// The VCs of an output that are free and may be taken by those who ask for one.
template <unsigned kPorts>
template <class Granted>
void FlitEngine<kPorts>::allocate_output(const VcRequests<kPorts>& requests, VcSet free, unsigned output, InputVc* in,
                                         OutputVc* out, const Granted& granted) {
  if (requests.only_one()) {
    const PortVc input = port_vc(first_of(requests.ports), first_of(requests.vcs[first_of(requests.ports)]));
    InputVc& from = in[local(input)];
    const PortVc chosen = port_vc(output, first_vc(free, output, from.accept));
    out[local(chosen)].grant = after(input, kPorts, vcs_);
    from.accept = after(chosen, kPorts, vcs_);
    granted(input, chosen);
  } else if (allocator_ == models::Allocator::islip) {
    grant_first(requests, free, output, in, out, granted);
  } else {
    choose_first(requests, free, output, in, out, granted);
  }
}

/// iSLIP: every free VC grants one of the heads, which accepts one of those that were granted to it.
template <unsigned kPorts>
template <class Granted>
void FlitEngine<kPorts>::grant_first(const VcRequests<kPorts>& requests, VcSet free_vcs, unsigned output, InputVc* in,
                                     OutputVc* out, const Granted& granted) {
  std::array<PortVc, models::kMaxFlitVcs> heads;  // with a grant, each once
  unsigned count = 0;
  for (std::uint32_t free = free_vcs; free != 0; free &= free - 1) {
    const unsigned vc = first_of(free);
    const PortVc input = first_from(requests, out[local(output, vc)].grant);
    VcSet& offered = offered_[std::size_t{input.port} * models::kMaxFlitVcs + input.vc];
    if (offered == 0) heads[count++] = input;
    offered = with(offered, vc);
  }
  for (unsigned i = 0; i < count; ++i) {
    const PortVc input = heads[i];
    VcSet& offered = offered_[std::size_t{input.port} * models::kMaxFlitVcs + input.vc];
    InputVc& from = in[local(input)];
    const PortVc accepted = port_vc(output, first_vc(offered, output, from.accept));
    offered = 0;
    out[local(accepted)].grant = after(input, kPorts, vcs_);
    from.accept = after(accepted, kPorts, vcs_);
    granted(input, accepted);
  }
}

/// Input first: every head chooses a free VC, each VC takes one of those that chose it.
template <unsigned kPorts>
template <class Granted>
void FlitEngine<kPorts>::choose_first(const VcRequests<kPorts>& requests, VcSet free, unsigned output, InputVc* in,
                                      OutputVc* out, const Granted& granted) {
  std::array<VcRequests<kPorts>, models::kMaxFlitVcs> chosen{};
  VcSet wanted = 0;
  for (std::uint32_t ports = requests.ports; ports != 0; ports &= ports - 1) {
    const unsigned port = first_of(ports);
    for (std::uint32_t vcs = requests.vcs[port]; vcs != 0; vcs &= vcs - 1) {
      const unsigned vc = first_vc(free, output, in[local(port, first_of(vcs))].accept);
      chosen[vc].add(port, first_of(vcs));
      wanted = with(wanted, vc);
    }
  }
  for (std::uint32_t vcs = wanted; vcs != 0; vcs &= vcs - 1) {
    const PortVc taken = port_vc(output, first_of(vcs));
    const PortVc input = first_from(chosen[taken.vc], out[local(taken)].grant);
    out[local(taken)].grant = after(input, kPorts, vcs_);
    in[local(input)].accept = after(taken, kPorts, vcs_);
    granted(input, taken);
  }
}

/// Outputs at which heads without a VC may bid for the switch: those with a VC that is free and has room.
template <unsigned kPorts>
PortSetOf<kPorts> FlitEngine<kPorts>::speculative_outputs(const State& state, const Speculators& speculators) const {
  PortSet result = 0;
  if (!stages_.speculative) return result;
  for (std::uint32_t outputs = state.wants_vc; outputs != 0; outputs &= outputs - 1) {
    const unsigned output = first_of(outputs);
    if ((state.free_vcs[output] & state.credit_vcs[output]) == 0) continue;
    if (speculators[output].ports != 0) result = with(result, output);
  }
  return result;
}

/// iSLIP: every output offers itself to one of the inputs that want it.
template <unsigned kPorts>
typename FlitEngine<kPorts>::SwitchOffers FlitEngine<kPorts>::offer_switch(std::uint32_t router, const State& state,
                                                                           const InputVc* in, Cycle now) {
  const bool grouped = stages_.speculative && vc_groups_.size() > 1;
  if (grouped) [[unlikely]] find_speculators(state, in);
  const Speculators& speculators = grouped ? speculators_ : state.vc_requests;
  const PortSet speculative = speculative_outputs(state, speculators);
  PortSet outputs = state.wants_switch | speculative;
  if (slow_ports_) {
    for (std::uint32_t left = outputs; left != 0; left &= left - 1) {
      if (!port_free(router, first_of(left), now)) outputs = without(outputs, first_of(left));
    }
  }
  SwitchOffers offers;
  if (allocator_ == models::Allocator::round_robin) [[unlikely]] {
    choose_switch(state, speculators, outputs, speculative, offers);
    return offers;
  }
  for (std::uint32_t left = outputs; left != 0; left &= left - 1) {
    const unsigned output = first_of(left);
    std::uint32_t ports = state.switch_requests[output].ports;
    if (stages_.speculative && (speculative >> output & 1U) != 0) ports |= speculators[output].ports;
    offers.add(state, speculators, first_from(ports, state.switch_grant[output]), output);
  }
  return offers;
}

/// Of the VCs of `port` that want `output`, those that have theirs go before those that speculate.
template <unsigned kPorts>
void FlitEngine<kPorts>::SwitchOffers::add(const State& state, const Speculators& speculators, unsigned port,
                                           unsigned output) {
  outputs[port] = with(outputs[port], output);
  inputs = with(inputs, port);
  vcs[output] = state.switch_requests[output].vcs[port];
  if (vcs[output] != 0) [[likely]] return;
  vcs[output] = speculators[output].vcs[port];
  speculative = with(speculative, output);
}

/// Every input accepts one of the outputs that are offered to it. Calls `granted` with the input VC and the output of every
/// grant, and whether it is speculative.
template <unsigned kPorts>
template <class Granted>
void FlitEngine<kPorts>::accept_switch(State& state, const SwitchOffers& offers, const Granted& granted) {
  for (std::uint32_t left = offers.inputs; left != 0; left &= left - 1) {
    const unsigned port = first_of(left);
    const unsigned output = first_from(offers.outputs[port], state.switch_accept[port]);
    const unsigned vc = first_from(offers.vcs[output], state.switch_vc[port]);
    state.switch_grant[output] = after(port, kPorts);
    state.switch_accept[port] = after(output, kPorts);
    state.switch_vc[port] = after(vc, vcs_);
    granted(port_vc(port, vc), output, (offers.speculative >> output & 1U) != 0);
  }
}

/// Input first: every input chooses an output, each output offers itself to one of those that chose it; speculation last in both.
template <unsigned kPorts>
void FlitEngine<kPorts>::choose_switch(const State& state, const Speculators& speculators, PortSet outputs,
                                       PortSet speculative, SwitchOffers& offers) {
  std::array<PortSet, kPorts> firm{};   // by input: outputs
  std::array<PortSet, kPorts> hopeful{};
  PortSet inputs = 0;
  for (std::uint32_t left = outputs; left != 0; left &= left - 1) {
    const unsigned output = first_of(left);
    const PortSet ports = state.switch_requests[output].ports;
    const bool speculates = (speculative >> output & 1U) != 0;
    const PortSet others = speculates ? speculators[output].ports : PortSet{0};
    for (std::uint32_t bits = ports; bits != 0; bits &= bits - 1) firm[first_of(bits)] = with(firm[first_of(bits)], output);
    for (std::uint32_t bits = others; bits != 0; bits &= bits - 1) {
      hopeful[first_of(bits)] = with(hopeful[first_of(bits)], output);
    }
    inputs = static_cast<PortSet>(inputs | ports | others);
  }
  std::array<PortSet, kPorts> firm_inputs{};  // by output
  std::array<PortSet, kPorts> hopeful_inputs{};
  PortSet wanted = 0;
  for (std::uint32_t left = inputs; left != 0; left &= left - 1) {
    const unsigned port = first_of(left);
    const bool is_firm = firm[port] != 0;
    const unsigned output = first_from(is_firm ? firm[port] : hopeful[port], state.switch_accept[port]);
    PortSet& choosers = is_firm ? firm_inputs[output] : hopeful_inputs[output];
    choosers = with(choosers, port);
    wanted = with(wanted, output);
  }
  for (std::uint32_t left = wanted; left != 0; left &= left - 1) {
    const unsigned output = first_of(left);
    const PortSet choosers = firm_inputs[output] != 0 ? firm_inputs[output] : hopeful_inputs[output];
    offers.add(state, speculators, first_from(choosers, state.switch_grant[output]), output);
  }
}

/// The output VC belongs to the input VC from here to the packet's tail.
template <unsigned kPorts>
void FlitEngine<kPorts>::take_vc(std::uint32_t router, State& state, InputVc* in, OutputVc* out, PortVc input, PortVc output) {
  InputVc& from = in[local(input)];
  if (stages_.vc_allocation == 1) state.withdraw_vc(output.port, input.port, input.vc);
  if (from.state == VcState::forked) [[unlikely]] {
    take_branch_vc(router, input, output);
  } else {
    from.state = VcState::active;
    from.output_vc = output.vc;
  }
  out[local(output)].owner = input;
  state.take_free_vc(output.port, output.vc);
  if ((state.credit_vcs[output.port] >> output.vc & 1U) != 0) state.request_switch(output.port, input.port, input.vc);
  activate(router);
}

template <unsigned kPorts>
void FlitEngine<kPorts>::use_switch(std::uint32_t router, State& state, PortVc input, unsigned output, bool speculative,
                                    Cycle now) {
  // Lost when the head got no VC in the same cycle, or one without room.
  if (speculative && !may_send(router, state, input, output)) return;
  if (inputs_of(router)[local(input)].state == VcState::forked) [[unlikely]] {
    return send_branch(router, state, input, output, now);
  }
  send(router, state, input, now);
}

/// A flit goes to a VC of an output. Whether there is room for another.
template <unsigned kPorts>
bool FlitEngine<kPorts>::take_room(std::uint32_t router, State& state, PortVc output, Cycle now) {
  if (output.port >= kMesh && !limited_ejection_) return true;
  if (output.port >= kMesh) sink_credits_.slot(now + sink_delay_).push_back(input_vc(router, output.port, output.vc));
  if (--outputs_of(router)[local(output)].credits != 0) return true;
  state.credit_vcs[output.port] = without(state.credit_vcs[output.port], output.vc);
  return false;
}

/// `flit` has left its place in a buffer.
template <unsigned kPorts>
void FlitEngine<kPorts>::give_back_place(std::uint32_t router, const State& state, PortVc input, Flit flit, Cycle now) {
  if (input.port < kMesh) {
    credits_out_[state.link_class[input.port]]->push_back(state.upstream[input.port] + input.vc);
  } else {
    terminals_.injection_credit(router, input.port - kMesh, input.vc, flit, now + credit_delay_);
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::send(std::uint32_t router, State& state, PortVc input, Cycle now) {
  InputVc& from = inputs_of(router)[local(input)];
  const PortVc output{from.output, from.output_vc};
  const Flit flit = pop(from);
  if (report_heads_ && flit.head()) {
    terminals_.head_sent(router, output.port, flit.packet(), now - ready_at_[input_vc(router, input.port, input.vc)]);
  }
  forward(router, state, output, flit, now);
  const bool room = take_room(router, state, output, now);
  give_back_place(router, state, input, flit, now);
  if (flit.tail()) {
    state.free_vc(output.port, output.vc);
    state.withdraw_switch(output.port, input.port, input.vc);
    from.state = VcState::idle;
    if (from.count != 0) start_packet(router, state, from, input, now + 1);
  } else if (!room || from.count == 0) {
    state.withdraw_switch(output.port, input.port, input.vc);
  }
}

// The functions that the other sources of the class call.
#define WAFERSIM_INSTANTIATE(kPorts)                                                                                  \
  template void FlitEngine<kPorts>::evaluate_wormhole(std::uint32_t, Cycle);                                          \
  template void FlitEngine<kPorts>::start_packet(std::uint32_t, FlitEngine<kPorts>::State&, InputVc&, PortVc, Cycle); \
  template void FlitEngine<kPorts>::wait_for_vc(FlitEngine<kPorts>::State&, InputVc&, PortVc);                        \
  template void FlitEngine<kPorts>::take_vc(std::uint32_t, FlitEngine<kPorts>::State&, InputVc*, OutputVc*, PortVc,  \
      PortVc);                                                                                  \
  template bool FlitEngine<kPorts>::take_room(std::uint32_t, FlitEngine<kPorts>::State&, PortVc, Cycle);              \
  template void FlitEngine<kPorts>::give_back_place(std::uint32_t, const FlitEngine<kPorts>::State&, PortVc, Flit,    \
      Cycle);                                                                                                         \
  template void FlitEngine<kPorts>::send(std::uint32_t, FlitEngine<kPorts>::State&, PortVc, Cycle)

WAFERSIM_INSTANTIATE(kSinglePort);
WAFERSIM_INSTANTIATE(kPortPerDirection);
WAFERSIM_INSTANTIATE(kManyPorts);

}  // namespace wafersim::sim
