#include <algorithm>

#include "base/error.h"
#include "sim/flit_engine.h"

namespace wafersim::sim {
namespace {

constexpr std::uint8_t after(unsigned index, unsigned count) {
  return static_cast<std::uint8_t>(index + 1 == count ? 0 : index + 1);
}
/// The request behind `at`, in the order of ports, then VCs.
constexpr PortVc after(PortVc at, unsigned ports, unsigned vcs) {
  if (at.vc + 1U < vcs) return {at.port, static_cast<std::uint8_t>(at.vc + 1)};
  return {after(at.port, ports), 0};
}
constexpr PortVc port_vc(unsigned port, unsigned vc) {
  return {static_cast<std::uint8_t>(port), static_cast<std::uint8_t>(vc)};
}
/// Of the VCs of `output`, the first that a pointer over all outputs' VCs comes to.
constexpr unsigned first_vc(VcSet vcs, unsigned output, PortVc pointer) {
  return first_from(vcs, pointer.port == output ? pointer.vc : 0U);
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

/// One cycle of a router: every stage decides on the state that the cycle began with, then what was decided is done.
/// Inlining the stages was measured to save a tenth.
template <unsigned kPorts>
[[gnu::flatten]] void FlitEngine<kPorts>::evaluate_wormhole(std::uint32_t router, Cycle now) {
  State& state = routers_[router];
  InputVc* const in = inputs_of(router);
  OutputVc* const out = outputs_of(router);
  Grants<VcGrant> vc_grants;
  Grants<SwitchGrant> switch_grants;
  const PortSet heads_wait_for = state.wants_vc;
  if (heads_wait_for != 0) allocate_vcs(state, in, out, vc_grants);
  if (state.wants_switch != 0 || (stages_.speculative && heads_wait_for != 0)) {
    allocate_switch(router, state, in, switch_grants, now);
    if (open_forks_ != 0) [[unlikely]] fan_out(router, state, in, switch_grants, now);
  }
  // What is known or taken from the next cycle on has no part in what this one decided.
  const bool long_vc = stages_.vc_allocation > 1;
  const bool long_switch = stages_.switch_allocation > 1;
  if (long_switch) begin_long_switch_stage(router, state, switch_grants, now);
  if (long_vc && heads_wait_for != 0) begin_long_vc_stage(router, state, in, vc_grants, heads_wait_for, now);
  if (state.routing != 0) end_routing(router, state);
  if (!long_vc) {
    for (const VcGrant& grant : vc_grants) take_vc(router, state, in, out, grant);
  }
  if (!long_switch) {
    for (const SwitchGrant& grant : switch_grants) use_switch(router, state, grant, now);
  }
  if (!can_act(state, in)) active_[router / 64] &= ~(std::uint64_t{1} << (router % 64));
}

template <unsigned kPorts>
bool FlitEngine<kPorts>::can_act(const State& state, const InputVc* in) const {
  if (state.wants_switch != 0 || state.routing != 0) return true;
  if (vc_groups_.size() > 1) [[unlikely]] return waits_for_free_vc(state, in);
  for (std::uint32_t outputs = state.wants_vc; outputs != 0; outputs &= outputs - 1) {
    if (state.free_vcs[first_of(outputs)] != 0) return true;
  }
  return false;
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
  from.state = VcState::routing;
  if (routing == 1) {
    state.routing_vcs[at.port] = with(state.routing_vcs[at.port], at.vc);
    state.routing = with(state.routing, at.port);
  } else {
    const Cycle end = front_since + routing - 1;
    stage_ends_.slot(end).push_back({router, StageEnd::Stage::routing, true, at, {}});
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::wait_for_vc(State& state, InputVc& from, PortVc at) {
  from.state = VcState::waiting;
  state.request_vc(from.output, at.port, at.vc);
}

/// Routes computed in this cycle: from the next one on their heads ask for a VC.
template <unsigned kPorts>
void FlitEngine<kPorts>::end_routing(std::uint32_t router, State& state) {
  for (std::uint32_t ports = state.routing; ports != 0; ports &= ports - 1) {
    const unsigned port = first_of(ports);
    for (std::uint32_t vcs = state.routing_vcs[port]; vcs != 0; vcs &= vcs - 1) {
      const PortVc at = port_vc(port, first_of(vcs));
      wait_for_vc(state, inputs_of(router)[local(at)], at);
    }
    state.routing_vcs[port] = 0;
  }
  state.routing = 0;
}

template <unsigned kPorts>
void FlitEngine<kPorts>::allocate_vcs(State& state, InputVc* in, OutputVc* out, Grants<VcGrant>& grants) {
  for (std::uint32_t outputs = state.wants_vc; outputs != 0; outputs &= outputs - 1) {
    const unsigned output = first_of(outputs);
    const VcSet free = state.free_vcs[output];
    if (free == 0) continue;
    if (vc_groups_.size() > 1) [[unlikely]] {
      allocate_by_group(state, output, in, out, grants);
    } else {
      allocate_output(state.vc_requests[output], free, output, in, out, grants);
    }
  }
}

/// The VCs of an output that are free and may be taken by those who ask for one.
template <unsigned kPorts>
void FlitEngine<kPorts>::allocate_output(const VcRequests<kPorts>& requests, VcSet free, unsigned output, InputVc* in,
                                         OutputVc* out, Grants<VcGrant>& grants) {
  if (requests.only_one()) {
    const PortVc input = port_vc(first_of(requests.ports), first_of(requests.vcs[first_of(requests.ports)]));
    InputVc& from = in[local(input)];
    const PortVc chosen = port_vc(output, first_vc(free, output, from.accept));
    out[local(chosen)].grant = after(input, kPorts, vcs_);
    from.accept = after(chosen, kPorts, vcs_);
    grants.add({input, chosen});
  } else if (allocator_ == models::Allocator::islip) {
    grant_first(requests, free, output, in, out, grants);
  } else {
    choose_first(requests, free, output, in, out, grants);
  }
}

/// iSLIP: every free VC grants one of the heads, which accepts one of those that were granted to it.
template <unsigned kPorts>
void FlitEngine<kPorts>::grant_first(const VcRequests<kPorts>& requests, VcSet free_vcs, unsigned output, InputVc* in,
                                     OutputVc* out, Grants<VcGrant>& grants) {
  std::array<PortVc, models::kMaxFlitVcs> granted;  // inputs with a grant, each once
  unsigned count = 0;
  for (std::uint32_t free = free_vcs; free != 0; free &= free - 1) {
    const unsigned vc = first_of(free);
    const PortVc input = first_from(requests, out[local(output, vc)].grant);
    VcSet& offered = offered_[std::size_t{input.port} * models::kMaxFlitVcs + input.vc];
    if (offered == 0) granted[count++] = input;
    offered = with(offered, vc);
  }
  for (unsigned i = 0; i < count; ++i) {
    const PortVc input = granted[i];
    VcSet& offered = offered_[std::size_t{input.port} * models::kMaxFlitVcs + input.vc];
    InputVc& from = in[local(input)];
    const PortVc accepted = port_vc(output, first_vc(offered, output, from.accept));
    offered = 0;
    out[local(accepted)].grant = after(input, kPorts, vcs_);
    from.accept = after(accepted, kPorts, vcs_);
    grants.add({input, accepted});
  }
}

/// Input first: every head chooses a free VC, each VC takes one of those that chose it.
template <unsigned kPorts>
void FlitEngine<kPorts>::choose_first(const VcRequests<kPorts>& requests, VcSet free, unsigned output, InputVc* in,
                                      OutputVc* out, Grants<VcGrant>& grants) {
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
    grants.add({input, taken});
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

template <unsigned kPorts>
void FlitEngine<kPorts>::allocate_switch(std::uint32_t router, State& state, const InputVc* in, Grants<SwitchGrant>& grants,
                                         Cycle now) {
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
  if (allocator_ == models::Allocator::round_robin) return choose_switch(state, speculators, outputs, speculative, grants);
  std::array<PortSet, kPorts> offered{};  // by input
  PortSet inputs = 0;
  for (std::uint32_t left = outputs; left != 0; left &= left - 1) {
    const unsigned output = first_of(left);
    std::uint32_t ports = state.switch_requests[output].ports;
    if ((speculative >> output & 1U) != 0) ports |= speculators[output].ports;
    const unsigned port = first_from(ports, state.switch_grant[output]);
    if (has_one(outputs)) return grant_switch(state, speculators, port, output, grants);
    offered[port] = with(offered[port], output);
    inputs = with(inputs, port);
  }
  for (std::uint32_t left = inputs; left != 0; left &= left - 1) {
    const unsigned port = first_of(left);
    grant_switch(state, speculators, port, first_from(offered[port], state.switch_accept[port]), grants);
  }
}

/// Of the VCs of `port` that want `output`, those that have theirs go before those that speculate.
template <unsigned kPorts>
void FlitEngine<kPorts>::grant_switch(State& state, const Speculators& speculators, unsigned port, unsigned output,
                                      Grants<SwitchGrant>& grants) {
  VcSet vcs = state.switch_requests[output].vcs[port];
  const bool speculative = vcs == 0;
  if (speculative) vcs = speculators[output].vcs[port];
  const unsigned vc = first_from(vcs, state.switch_vc[port]);
  state.switch_grant[output] = after(port, kPorts);
  state.switch_accept[port] = after(output, kPorts);
  state.switch_vc[port] = after(vc, vcs_);
  grants.add({port_vc(port, vc), static_cast<std::uint8_t>(output), speculative});
}

/// Input first: every input chooses an output, each output takes one of the inputs that chose it; speculation last, in both.
template <unsigned kPorts>
void FlitEngine<kPorts>::choose_switch(State& state, const Speculators& speculators, PortSet outputs, PortSet speculative,
                                       Grants<SwitchGrant>& grants) {
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
    grant_switch(state, speculators, first_from(choosers, state.switch_grant[output]), output, grants);
  }
}

/// The output VC belongs to the input VC from here to the packet's tail.
template <unsigned kPorts>
void FlitEngine<kPorts>::take_vc(std::uint32_t router, State& state, InputVc* in, OutputVc* out, const VcGrant& grant) {
  InputVc& from = in[local(grant.input)];
  if (stages_.vc_allocation == 1) state.withdraw_vc(grant.output.port, grant.input.port, grant.input.vc);
  if (from.state == VcState::forked) [[unlikely]] {
    take_branch_vc(router, grant.input, grant.output);
  } else {
    from.state = VcState::active;
    from.output_vc = grant.output.vc;
  }
  out[local(grant.output)].owner = grant.input;
  state.free_vcs[grant.output.port] = without(state.free_vcs[grant.output.port], grant.output.vc);
  if ((state.credit_vcs[grant.output.port] >> grant.output.vc & 1U) != 0) {
    state.request_switch(grant.output.port, grant.input.port, grant.input.vc);
  }
  activate(router);
}

template <unsigned kPorts>
void FlitEngine<kPorts>::use_switch(std::uint32_t router, State& state, const SwitchGrant& grant, Cycle now) {
  // Lost when the head got no VC in the same cycle, or one without room.
  if (grant.speculative && !may_send(router, state, grant.input, grant.output)) return;
  if (inputs_of(router)[local(grant.input)].state == VcState::forked) [[unlikely]] {
    return send_branch(router, state, grant.input, grant.output, now);
  }
  send(router, state, grant.input, now);
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
    state.free_vcs[output.port] = with(state.free_vcs[output.port], output.vc);
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
  template void FlitEngine<kPorts>::allocate_output(const VcRequests<kPorts>&, VcSet, unsigned, InputVc*, OutputVc*,  \
      FlitEngine<kPorts>::Grants<FlitEngine<kPorts>::VcGrant>&);                                                      \
  template void FlitEngine<kPorts>::start_packet(std::uint32_t, FlitEngine<kPorts>::State&, InputVc&, PortVc, Cycle); \
  template void FlitEngine<kPorts>::wait_for_vc(FlitEngine<kPorts>::State&, InputVc&, PortVc);                        \
  template void FlitEngine<kPorts>::take_vc(std::uint32_t, FlitEngine<kPorts>::State&, InputVc*, OutputVc*, const    \
      FlitEngine<kPorts>::VcGrant&);                                                                                  \
  template bool FlitEngine<kPorts>::take_room(std::uint32_t, FlitEngine<kPorts>::State&, PortVc, Cycle);              \
  template void FlitEngine<kPorts>::give_back_place(std::uint32_t, const FlitEngine<kPorts>::State&, PortVc, Flit,    \
      Cycle);                                                                                                         \
  template void FlitEngine<kPorts>::send(std::uint32_t, FlitEngine<kPorts>::State&, PortVc, Cycle)

WAFERSIM_INSTANTIATE(kSinglePort);
WAFERSIM_INSTANTIATE(kPortPerDirection);
WAFERSIM_INSTANTIATE(kManyPorts);

}  // namespace wafersim::sim
