// Allocation stages of more than one cycle, which wormhole routers may have.
#include "sim/flit_engine.h"

namespace wafersim::sim {

/// Heads that asked for a VC ask no more until the stage ends. The allocators have moved on meanwhile, so that a VC that was
/// granted may be given away when it does.
template <unsigned kPorts>
void FlitEngine<kPorts>::begin_long_vc_stage(std::uint32_t router, State& state, const InputVc* in,
                                             const Grants<VcGrant>& grants, PortSet outputs, Cycle now) {
  auto& ends = stage_ends_.slot(now + static_cast<Cycle>(stages_.vc_allocation) - 1);
  const auto add = [&](PortVc input, PortVc output, bool granted) {
    ends.push_back({router, StageEnd::Stage::vc, granted, input, output});
    state.withdraw_vc(output.port, input.port, input.vc);
  };
  for (const VcGrant& grant : grants) add(grant.input, grant.output, true);
  for (; outputs != 0; outputs = static_cast<PortSet>(outputs & (outputs - 1U))) {
    const auto output = static_cast<std::uint8_t>(first_of(outputs));
    VcRequests<kPorts> asked = requests_with_any(state.vc_requests[output], in, state.free_vcs[output]);
    while (asked.ports != 0) {
      const PortVc input = first_from(asked, {});
      asked.remove(input.port, input.vc);
      add(input, {output, 0}, false);
    }
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::begin_long_switch_stage(std::uint32_t router, State& state, const Grants<SwitchGrant>& grants,
                                                 Cycle now) {
  auto& ends = stage_ends_.slot(now + static_cast<Cycle>(stages_.switch_allocation) - 1);
  const auto add = [&](PortVc input, unsigned output, bool granted) {
    ends.push_back({router, StageEnd::Stage::switching, granted, input, {static_cast<std::uint8_t>(output), 0}});
    state.withdraw_switch(output, input.port, input.vc);
  };
  for (const SwitchGrant& grant : grants) add(grant.input, grant.output, true);
  for (std::uint32_t outputs = state.wants_switch; outputs != 0; outputs &= outputs - 1) {
    const unsigned output = first_of(outputs);
    while (state.switch_requests[output].ports != 0) add(first_from(state.switch_requests[output], {}), output, false);
  }
}

/// On the state that the cycle began with.
template <unsigned kPorts>
void FlitEngine<kPorts>::check_stage_ends(Cycle now) {
  for (StageEnd& end : stage_ends_.slot(now)) {
    if (!end.granted) continue;
    const State& state = routers_[end.router];
    if (end.stage == StageEnd::Stage::vc) {
      end.granted = (state.free_vcs[end.output.port] >> end.output.vc & 1U) != 0;
    } else if (end.stage == StageEnd::Stage::switching) {
      end.granted = may_send(end.router, state, end.input, end.output.port);
    }
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::apply_stage_ends(Cycle now) {
  for (const StageEnd& end : stage_ends_.slot(now)) {
    State& state = routers_[end.router];
    InputVc* const in = inputs_of(end.router);
    InputVc& from = in[local(end.input)];
    activate(end.router);
    if (end.stage == StageEnd::Stage::routing && from.state == VcState::forked) {
      state.request_vc(end.output.port, end.input.port, end.input.vc);
    } else if (end.stage == StageEnd::Stage::routing) {
      wait_for_vc(state, from, end.input);
    } else if (end.stage == StageEnd::Stage::vc) {
      // Two stages that end together may have been granted the same VC: the first has it.
      const bool free = (state.free_vcs[end.output.port] >> end.output.vc & 1U) != 0;
      if (end.granted && free) {
        take_vc(end.router, state, in, outputs_of(end.router), end.input, end.output);
      } else {
        state.request_vc(end.output.port, end.input.port, end.input.vc);
      }
    } else {
      if (end.granted && from.state == VcState::forked) {
        send_branch(end.router, state, end.input, end.output.port, now);
      } else if (end.granted) {
        send(end.router, state, end.input, now);
      }
      // What is left asks again from the next cycle on.
      if (may_send(end.router, state, end.input, end.output.port)) {
        state.request_switch(end.output.port, end.input.port, end.input.vc);
      }
    }
  }
  stage_ends_.slot(now).clear();
}

// The functions that the other sources of the class call.
#define WAFERSIM_INSTANTIATE(kPorts)                                                                                \
  template void FlitEngine<kPorts>::begin_long_vc_stage( std::uint32_t, FlitEngine<kPorts>::State&, const InputVc*, \
      const FlitEngine<kPorts>::Grants<FlitEngine<kPorts>::VcGrant>&, PortSetOf<kPorts>, Cycle);                              \
  template void FlitEngine<kPorts>::begin_long_switch_stage( std::uint32_t, FlitEngine<kPorts>::State&, const       \
      FlitEngine<kPorts>::Grants<FlitEngine<kPorts>::SwitchGrant>&, Cycle);                                         \
  template void FlitEngine<kPorts>::check_stage_ends(Cycle);                                                        \
  template void FlitEngine<kPorts>::apply_stage_ends(Cycle)

WAFERSIM_INSTANTIATE(kSinglePort);
WAFERSIM_INSTANTIATE(kPortPerDirection);
WAFERSIM_INSTANTIATE(kManyPorts);

}  // namespace wafersim::sim
