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
  if (from.state == VcState::forked) {
    // The first copy that does not go on.
    const PortVc at{static_cast<std::uint8_t>(port_of_vc(vc)), static_cast<std::uint8_t>(vc_of(vc))};
    const Fork& fork = fork_at(router, at);
    std::optional<Wait> first;
    for (std::uint32_t left = fork.left; left != 0; left &= left - 1) {
      const unsigned output = first_of(left);
      const bool active = (fork.granted >> output & 1U) != 0;
      if (!cut_through_ && active && !has_flit(router, at, output)) continue;
      const Wait wait = wait_of_head(vc, output, active, fork.branches[output].output_vc);
      if (!first || (!first->behind && wait.behind)) first = wait;
    }
    return first ? *first : wait_for_flits(vc);
  }
  if (from.count == 0) return wait_for_flits(vc);
  return wait_of_head(vc, from.output, from.state == VcState::active, from.output_vc);
}

/// Of a packet that wants an output, or where `active`, not of cut-through routers, has a VC of it.
template <unsigned kPorts>
auto FlitEngine<kPorts>::wait_of_head(std::uint32_t vc, unsigned port, bool active, unsigned output_vc) const -> Wait {
  const InputVc& from = inputs_[vc];
  const std::uint32_t router = router_of(vc);
  const std::string output = port_name(port, kMesh);
  if (cut_through_) {
    const Held& held = held_[std::size_t{router} * kPorts + port];
    const bool holds = held.held && held.by.port == port_of_vc(vc) && held.by.vc == vc_of(vc);
    if (holds) return {fmt::format("may leave by output {}", output), std::nullopt};
    if (!held.held) return wait_for_room(router, from, port, output_vc);
    return {fmt::format("waits for output {}, which another packet has", output), input_vc(router, held.by.port, held.by.vc)};
  }
  if (active) return wait_for_room(router, from, port, output_vc);
  for (std::uint32_t vcs = vcs_of_class_[from.vc_class]; vcs != 0; vcs &= vcs - 1) {
    const unsigned wanted = first_of(vcs);
    if ((routers_[router].free_vcs[port] >> wanted & 1U) != 0) break;
    const PortVc owner = outputs_[input_vc(router, port, wanted)].owner;
    return {fmt::format("waits for a virtual channel of output {}, of which another packet has VC {}", output, wanted),
            input_vc(router, owner.port, owner.vc)};
  }
  return {fmt::format("can get a virtual channel of output {}", output), std::nullopt};
}

template <unsigned kPorts>
auto FlitEngine<kPorts>::wait_for_room(std::uint32_t router, const InputVc& from, unsigned port, unsigned vc) const -> Wait {
  const std::string output = port_name(port, kMesh);
  const std::uint32_t credits = outputs_[input_vc(router, port, vc)].credits;
  const std::uint32_t needed = cut_through_ ? packets_[buffers_[from.base + from.first].packet()].flits : 1;
  if (port >= kMesh || credits >= needed) return {fmt::format("may leave by output {}", output), std::nullopt};
  const std::string what =
      fmt::format("waits for room in VC {} of output {}, {} of {} credits are there", vc, output, credits, mesh_buffer_);
  const std::uint32_t behind = routers_[router].next[port] + vc;
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
    const PacketInfo& packet = packets_[flit.packet()];
    text += packet.multicast != 0 ? std::string(", the first of a multicast")
                                  : fmt::format(", the first of a packet to {}", mesh_.name(packet.destination));
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
