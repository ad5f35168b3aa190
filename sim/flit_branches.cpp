// Multicasts where their ways part: copies of the packet at the front of an input VC leave by several outputs, each when it
// can. Flits stay in the buffer until all copies have them.
#include <algorithm>

#include "base/error.h"
#include "sim/flit_engine.h"

namespace wafersim::sim {

/// By which outputs a multicast leaves a router. An injection port which reaches one output leads there; others carry the
/// packet to the rest.
template <unsigned kPorts>
PortSetOf<kPorts> FlitEngine<kPorts>::branches_of(std::uint32_t router, unsigned input, std::uint32_t packet) const {
  const topology::OutputSet outputs = multicasts_->tree(packets_[packet].destination).outputs(router);
  require_invariant(outputs != 0, "a multicast reached a router that is not on its tree");
  if (input >= kMesh && layout_.per_direction()) return static_cast<PortSet>(1U << (input - kMesh));
  constexpr unsigned kLocalBit = topology::output_bit(topology::Hop::local);
  unsigned ports = outputs & ~kLocalBit;
  if ((outputs & kLocalBit) != 0) ports |= 1U << port_of(topology::Hop::local, input, router);
  return static_cast<PortSet>(ports);
}

/// False when the packet, a multicast, has but one way on. Otherwise its copies are there, and ask for nothing yet.
template <unsigned kPorts>
bool FlitEngine<kPorts>::fork(std::uint32_t router, InputVc& from, PortVc at, std::uint32_t packet) {
  const PortSet outputs = branches_of(router, at.port, packet);
  if (has_one(outputs)) return false;
  require_invariant(packets_[packet].flits <= from.mask + 1U, "a multicast does not fit in a buffer");
  if (fork_of_.empty()) fork_of_.resize(inputs_.size());
  const std::uint32_t index = forks_.take();
  fork_of_[input_vc(router, at.port, at.vc)] = index;
  ++open_forks_;
  Fork& fork = forks_[index];
  fork.packet = packet;
  fork.outputs = fork.left = outputs;
  for (std::uint32_t left = outputs; left != 0; left &= left - 1) {
    const std::uint32_t copy = terminals_.copied(packet);
    if (copy >= packets_.size()) packets_.resize(copy + copy / 2 + 64);
    packets_[copy] = packets_[packet];
    fork.branches[first_of(left)] = {copy, 0, at.vc, 0};
  }
  from.state = VcState::forked;
  return true;
}

/// All copies have all flits, which have left the buffer.
template <unsigned kPorts>
void FlitEngine<kPorts>::end_fork(std::uint32_t router, InputVc& from, PortVc at) {
  const std::uint32_t index = fork_of_[input_vc(router, at.port, at.vc)];
  terminals_.parted(forks_[index].packet);
  forks_.give_back(index);
  --open_forks_;
  from.state = VcState::idle;
}

/// Wormhole: each branch goes through the stages of a head on its own.
template <unsigned kPorts>
void FlitEngine<kPorts>::start_branches(std::uint32_t router, State& state, PortVc at, Cycle front_since) {
  Fork& fork = fork_at(router, at);
  for (std::uint32_t left = fork.outputs; left != 0; left &= left - 1) {
    const auto output = static_cast<std::uint8_t>(first_of(left));
    const Cycle routing = static_cast<Cycle>(stages_.routing) + turn_cost(at.port, output);
    fork.branches[output].ready_at = front_since + routing + static_cast<Cycle>(stages_.speculative ? 0 : stages_.vc_allocation);
    if (routing == 0) {
      state.request_vc(output, at.port, at.vc);
    } else {
      stage_ends_.slot(front_since + routing - 1).push_back({router, StageEnd::Stage::routing, true, at, {output, 0}});
    }
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::take_branch_vc(std::uint32_t router, PortVc input, PortVc output) {
  Fork& fork = fork_at(router, input);
  fork.branches[output.port].output_vc = output.vc;
  fork.granted = static_cast<PortSet>(fork.granted | 1U << output.port);
}

template <unsigned kPorts>
bool FlitEngine<kPorts>::branch_may_send(std::uint32_t router, const State& state, PortVc at, unsigned output) const {
  const Fork& fork = fork_at(router, at);
  if (((fork.granted & fork.left) >> output & 1U) == 0) return false;
  return has_flit(router, at, output) && (state.credit_vcs[output] >> fork.branches[output].output_vc & 1U) != 0;
}

/// A flit has come: branches that had all those before go on.
template <unsigned kPorts>
void FlitEngine<kPorts>::feed_branches(std::uint32_t router, State& state, PortVc at) {
  const InputVc& from = inputs_of(router)[local(at)];
  const Fork& fork = fork_at(router, at);
  const std::uint32_t last = fork.freed + from.count - 1;
  for (std::uint32_t left = fork.left; left != 0; left &= left - 1) {
    const unsigned output = first_of(left);
    if (fork.branches[output].sent == last && may_send(router, state, at, output)) {
      state.request_switch(output, at.port, at.vc);
    }
  }
}

/// An input VC that was granted the switch and is forked sends by all outputs that want a flit of it and take none of others.
template <unsigned kPorts>
void FlitEngine<kPorts>::fan_out(std::uint32_t router, State& state, const InputVc* in, Grants<SwitchGrant>& grants,
                                 Cycle now) {
  std::uint32_t taken = 0;
  for (const SwitchGrant& grant : grants) taken |= 1U << grant.output;
  const unsigned granted = grants.count;
  for (unsigned i = 0; i < granted; ++i) {
    const PortVc at = grants.items[i].input;
    if (in[local(at)].state != VcState::forked) continue;
    for (std::uint32_t left = fork_at(router, at).left & ~taken; left != 0; left &= left - 1) {
      const unsigned output = first_of(left);
      if (!port_free(router, output, now)) continue;
      const bool firm = (state.switch_requests[output].vcs[at.port] >> at.vc & 1U) != 0;
      const bool hopeful = stages_.speculative && (state.vc_requests[output].vcs[at.port] >> at.vc & 1U) != 0 &&
                           (state.free_vcs[output] & state.credit_vcs[output]) != 0;
      if (!firm && !hopeful) continue;
      grants.add({at, static_cast<std::uint8_t>(output), !firm});
      taken |= 1U << output;
      state.switch_grant[output] = static_cast<std::uint8_t>(at.port + 1U == kPorts ? 0 : at.port + 1U);
    }
  }
}

/// As send(). The place of a flit is free when all copies have it.
template <unsigned kPorts>
void FlitEngine<kPorts>::send_branch(std::uint32_t router, State& state, PortVc input, unsigned output, Cycle now) {
  InputVc& from = inputs_of(router)[local(input)];
  Fork& fork = fork_at(router, input);
  Branch& branch = fork.branches[output];
  const Flit flit = flit_of_branch(from, branch, branch.sent - fork.freed);
  const PortVc to{static_cast<std::uint8_t>(output), branch.output_vc};
  ++branch.sent;
  if (report_heads_ && flit.head()) terminals_.head_sent(router, output, branch.packet, now - branch.ready_at);
  forward(router, state, to, flit, now);
  const bool room = take_room(router, state, to, now);
  if (flit.tail()) {
    state.free_vc(output, to.vc);
    fork.left = static_cast<PortSet>(fork.left & ~(1U << output));
  }
  if (flit.tail() || !room || !has_flit(router, input, output)) state.withdraw_switch(output, input.port, input.vc);
  std::uint32_t all_have = branch.sent;
  for (std::uint32_t others = fork.outputs; others != 0; others &= others - 1) {
    all_have = std::min(all_have, fork.branches[first_of(others)].sent);
  }
  for (; fork.freed < all_have; ++fork.freed) give_back_place(router, state, input, pop(from), now);
  if (fork.left != 0) return;
  end_fork(router, from, input);
  if (from.count != 0) start_packet(router, state, from, input, now + 1);
}

/// Cut-through: branches that turn bid that much after the arrival, the others at once.
template <unsigned kPorts>
void FlitEngine<kPorts>::bid_for_branches(std::uint32_t router, State& state, PortVc at, Cycle now) {
  Fork& fork = fork_at(router, at);
  fork.granted = fork.outputs;
  for (std::uint32_t left = fork.outputs; left != 0; left &= left - 1) {
    const auto output = static_cast<std::uint8_t>(first_of(left));
    const Cycle turn = turn_cost(at.port, output);
    if (const Cycle turned = turn == 0 ? now : arrived_[fork.packet] + turn; turned > now) {
      turning_.slot(turned).push_back({router, at, output});
    } else {
      bid(router, state, at, output, now);
    }
  }
}

/// Cut-through: a copy has left by `output`. True when it was the last.
template <unsigned kPorts>
bool FlitEngine<kPorts>::end_branch(std::uint32_t router, InputVc& from, PortVc at, unsigned output) {
  Fork& fork = fork_at(router, at);
  fork.granted = static_cast<PortSet>(fork.granted & ~(1U << output));
  if (fork.granted != 0) return false;
  const std::uint32_t flits = packets_[fork.packet].flits;
  from.first = static_cast<std::uint16_t>((from.first + flits) & from.mask);
  from.count = static_cast<std::uint16_t>(from.count - flits);
  if (paced_) tail_at_[fork.packet] = 0;
  end_fork(router, from, at);
  return true;
}

// The functions that the other sources of the class call.
#define WAFERSIM_INSTANTIATE(kPorts)                                                                                      \
  template PortSetOf<kPorts> FlitEngine<kPorts>::branches_of(std::uint32_t, unsigned, std::uint32_t) const;              \
  template bool FlitEngine<kPorts>::fork(std::uint32_t, InputVc&, PortVc, std::uint32_t);                                \
  template void FlitEngine<kPorts>::start_branches(std::uint32_t, FlitEngine<kPorts>::State&, PortVc, Cycle);            \
  template void FlitEngine<kPorts>::take_branch_vc(std::uint32_t, PortVc, PortVc);                                       \
  template bool FlitEngine<kPorts>::branch_may_send(std::uint32_t, const FlitEngine<kPorts>::State&, PortVc, unsigned)   \
      const;                                                                                                             \
  template void FlitEngine<kPorts>::feed_branches(std::uint32_t, FlitEngine<kPorts>::State&, PortVc);                    \
  template void FlitEngine<kPorts>::fan_out(std::uint32_t, FlitEngine<kPorts>::State&, const InputVc*,                   \
      FlitEngine<kPorts>::Grants<FlitEngine<kPorts>::SwitchGrant>&, Cycle);                                              \
  template void FlitEngine<kPorts>::send_branch(std::uint32_t, FlitEngine<kPorts>::State&, PortVc, unsigned, Cycle);     \
  template void FlitEngine<kPorts>::bid_for_branches(std::uint32_t, FlitEngine<kPorts>::State&, PortVc, Cycle);          \
  template bool FlitEngine<kPorts>::end_branch(std::uint32_t, InputVc&, PortVc, unsigned)

WAFERSIM_INSTANTIATE(kSinglePort);
WAFERSIM_INSTANTIATE(kPortPerDirection);
WAFERSIM_INSTANTIATE(kManyPorts);

}  // namespace wafersim::sim
