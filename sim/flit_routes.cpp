// What packets of a policy with several outputs or several classes of virtual channels need.
#include "sim/flit_engine.h"

namespace wafersim::sim {

template <unsigned kPorts>
void FlitEngine<kPorts>::choose_output(std::uint32_t router, InputVc& from, PortVc at, std::uint32_t packet) {
  topology::Travel& travel = travels_[packet];
  const unsigned entered = travel.vc_class;
  const auto room = [&](topology::Hop output, const topology::VcRange& vcs) {
    std::uint32_t flits = 0;
    for (unsigned vc = vcs.first; vc < vcs.first + vcs.count; ++vc) {
      flits += outputs_of(router)[local(static_cast<unsigned>(output), vc)].credits;
    }
    return flits;
  };
  const topology::OutputSet offered = offered_to(at.port, kMesh, layout_.per_direction());
  const topology::Hop hop = routes_.take(travel, router, came_by(at.port, kMesh), packets_[packet].destination, offered, room);
  from.output = static_cast<std::uint8_t>(port_of(hop, at.port, packets_[packet].destination));
  from.output_vc = static_cast<std::uint8_t>(routes_.vc_in_class(at.vc, entered, travel.vc_class));
  from.vc_class = travel.vc_class;
}

/// Those of heads that may take one of `vcs`.
template <unsigned kPorts>
VcRequests<kPorts> FlitEngine<kPorts>::requests_with_any(const VcRequests<kPorts>& requests, const InputVc* in,
                                                         VcSet vcs) const {
  VcRequests<kPorts> result;
  for (std::uint32_t ports = requests.ports; ports != 0; ports &= ports - 1) {
    const unsigned port = first_of(ports);
    for (std::uint32_t left = requests.vcs[port]; left != 0; left &= left - 1) {
      const unsigned vc = first_of(left);
      if ((vcs_of_class_[in[local(port, vc)].vc_class] & vcs) != 0) result.add(port, vc);
    }
  }
  return result;
}

/// A head bids for the switch where some VC of its class is free and has room.
template <unsigned kPorts>
void FlitEngine<kPorts>::find_speculators(const State& state, const InputVc* in) {
  for (std::uint32_t outputs = state.wants_vc; outputs != 0; outputs &= outputs - 1) {
    const unsigned output = first_of(outputs);
    const auto ready = static_cast<VcSet>(state.free_vcs[output] & state.credit_vcs[output]);
    speculators_[output] = requests_with_any(state.vc_requests[output], in, ready);
  }
}

template <unsigned kPorts>
bool FlitEngine<kPorts>::waits_for_free_vc(const State& state, const InputVc* in) const {
  for (std::uint32_t outputs = state.wants_vc; outputs != 0; outputs &= outputs - 1) {
    const unsigned output = first_of(outputs);
    if (requests_with_any(state.vc_requests[output], in, state.free_vcs[output]).ports != 0) return true;
  }
  return false;
}

// The functions that the other sources of the class call.
#define WAFERSIM_INSTANTIATE(kPorts)                                                                                   \
  template void FlitEngine<kPorts>::choose_output(std::uint32_t, InputVc&, PortVc, std::uint32_t);                     \
  template VcRequests<kPorts> FlitEngine<kPorts>::requests_with_any(const VcRequests<kPorts>&, const InputVc*, VcSet)  \
      const;                                                                                                           \
  template void FlitEngine<kPorts>::find_speculators(const FlitEngine<kPorts>::State&, const InputVc*);                \
  template bool FlitEngine<kPorts>::waits_for_free_vc(const FlitEngine<kPorts>::State&, const InputVc*) const

WAFERSIM_INSTANTIATE(kSinglePort);
WAFERSIM_INSTANTIATE(kPortPerDirection);
WAFERSIM_INSTANTIATE(kManyPorts);

}  // namespace wafersim::sim
