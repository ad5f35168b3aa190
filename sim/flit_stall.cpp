// Who waits for whom when nothing moves any more.
#include <algorithm>
#include <fmt/format.h>

#include "sim/flit_engine.h"

namespace wafersim::sim {
namespace {

std::string port_name(unsigned port, unsigned mesh_ports) {
  if (port < mesh_ports) return topology::to_string(static_cast<topology::Direction>(port));
  return port == mesh_ports ? "local" : fmt::format("local {}", port - mesh_ports);
}

}  // namespace

template <unsigned kPorts>
auto FlitEngine<kPorts>::wait_of(std::uint32_t vc) const -> Wait {
  const InputVc& from = inputs_[vc];
  const std::uint32_t router = router_of(vc);
  const State& state = routers_[router];
  if (from.count == 0) return wait_for_flits(vc);
  const std::string output = port_name(from.output, kMesh);
  if (cut_through_) {
    const Held& held = held_[std::size_t{router} * kPorts + from.output];
    const bool holds = held.held && held.by.port == port_of_vc(vc) && held.by.vc == vc_of(vc);
    if (holds) return {fmt::format("may leave by output {}", output), std::nullopt};
    if (!held.held) return wait_for_room(router, from);
    return {fmt::format("waits for output {}, which another packet has", output), input_vc(router, held.by.port, held.by.vc)};
  }
  if (from.state == VcState::active) return wait_for_room(router, from);
  for (std::uint32_t vcs = vcs_of_class_[from.vc_class]; vcs != 0; vcs &= vcs - 1) {
    const unsigned wanted = first_of(vcs);
    if ((state.free_vcs[from.output] >> wanted & 1U) != 0) break;
    const PortVc owner = outputs_[input_vc(router, from.output, wanted)].owner;
    return {fmt::format("waits for a virtual channel of output {}, of which another packet has VC {}", output, wanted),
            input_vc(router, owner.port, owner.vc)};
  }
  return {fmt::format("can get a virtual channel of output {}", output), std::nullopt};
}

template <unsigned kPorts>
auto FlitEngine<kPorts>::wait_for_room(std::uint32_t router, const InputVc& from) const -> Wait {
  const std::string output = port_name(from.output, kMesh);
  const std::uint32_t credits = outputs_[input_vc(router, from.output, from.output_vc)].credits;
  const std::uint32_t needed = cut_through_ ? packets_[buffers_[from.base + from.first].packet()].flits : 1;
  if (from.output >= kMesh || credits >= needed) return {fmt::format("may leave by output {}", output), std::nullopt};
  const std::string what =
      fmt::format("waits for room in VC {} of output {}, {} of {} credits are there", from.output_vc, output, credits, mesh_buffer_);
  const std::uint32_t behind = routers_[router].next[from.output] + from.output_vc;
  if (inputs_[behind].count == 0 && inputs_[behind].state == VcState::idle) {
    return {what + "; the buffer behind it is empty: a credit was lost", std::nullopt};
  }
  return {what, behind};
}

/// A packet has the VC, but none of its flits is in it.
template <unsigned kPorts>
auto FlitEngine<kPorts>::wait_for_flits(std::uint32_t vc) const -> Wait {
  const unsigned port = port_of_vc(vc);
  if (port >= kMesh) return {"waits for flits of its packet that were not injected", std::nullopt};
  const std::uint32_t before = routers_[router_of(vc)].upstream[port] + vc_of(vc);
  const std::uint32_t router = router_of(before);
  const Held* const held = cut_through_ ? &held_[std::size_t{router} * kPorts + port_of_vc(before)] : nullptr;
  const PortVc owner = held != nullptr ? held->by : outputs_[before].owner;
  return {"waits for the rest of its packet", input_vc(router, owner.port, owner.vc)};
}

template <unsigned kPorts>
std::string FlitEngine<kPorts>::describe_wait(std::uint32_t vc) const {
  const InputVc& in = inputs_[vc];
  std::string text = fmt::format("\n  {}: input {} VC {} holds {} flits", mesh_.name(router_of(vc)),
                                 port_name(port_of_vc(vc), kMesh),
                                 vc_of(vc), in.count);
  if (in.count != 0) {
    const Flit flit = buffers_[in.base + in.first];
    text += fmt::format(", the first of a packet to {}", mesh_.name(packets_[flit.packet()].destination));
  }
  return text + ", and " + wait_of(vc).what;
}

/// Follows each channel to the one that it waits for, until one comes a second time.
template <unsigned kPorts>
std::string FlitEngine<kPorts>::describe_stall() const {
  std::vector<std::uint32_t> seen_from(inputs_.size(), 0);  // the start from which a channel was first come to
  std::uint32_t start = 0;
  std::vector<std::uint32_t> longest;
  for (std::uint32_t first = 0; first < inputs_.size(); ++first) {
    if (inputs_[first].count == 0 || seen_from[first] != 0) continue;
    ++start;
    std::vector<std::uint32_t> chain;
    std::optional<std::uint32_t> at = first;
    for (; at && seen_from[*at] == 0; at = wait_of(*at).behind) {
      seen_from[*at] = start;
      chain.push_back(*at);
    }
    if (at && seen_from[*at] == start) {
      std::string text = "flits wait for each other in a circle:";
      for (auto member = std::find(chain.begin(), chain.end(), *at); member != chain.end(); ++member)
        text += describe_wait(*member);
      return text + "\n  and so on from " + mesh_.name(router_of(*at));
    }
    if (!at && chain.size() > longest.size()) longest = std::move(chain);
  }
  if (longest.empty()) return "";
  std::string text = "flits wait in routers:";
  for (const std::uint32_t member : longest) text += describe_wait(member);
  return text;
}

// The functions that the other sources of the class call.
#define WAFERSIM_INSTANTIATE(kPorts)                               \
  template std::string FlitEngine<kPorts>::describe_stall() const

WAFERSIM_INSTANTIATE(kSinglePort);
WAFERSIM_INSTANTIATE(kPortPerDirection);
WAFERSIM_INSTANTIATE(kManyPorts);

}  // namespace wafersim::sim
