#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "sim/network.h"

namespace wafersim::sim {

/// A set of VCs, a bit each.
using VcSet = std::uint16_t;
/// A set of ports of a router that has so many.
template <unsigned kPorts>
using PortSetOf = std::conditional_t<(kPorts > 16), std::uint32_t, std::uint16_t>;

constexpr unsigned first_of(std::uint32_t set) { return static_cast<unsigned>(std::countr_zero(set)); }
/// The first member at or after `start`, round the end. As all that arbiters do, this must not branch: it has no pattern.
constexpr unsigned first_from(std::uint32_t set, unsigned start) {
  const std::uint64_t later = set >> start << start;
  return static_cast<unsigned>(std::countr_zero(later | std::uint64_t{set} << 32)) & 31U;
}
constexpr bool has_one(std::uint32_t set) { return (set & (set - 1)) == 0; }

/// Requests of input VCs, by input port.
template <unsigned kPorts>
struct VcRequests {
  using PortSet = PortSetOf<kPorts>;

  PortSet ports = 0;  ///< with at least one
  std::array<VcSet, kPorts> vcs{};

  void add(unsigned port, unsigned vc) {
    vcs[port] = static_cast<VcSet>(vcs[port] | 1U << vc);
    ports = static_cast<PortSet>(ports | 1U << port);
  }
  void remove(unsigned port, unsigned vc) {
    vcs[port] = static_cast<VcSet>(vcs[port] & ~(1U << vc));
    ports = static_cast<PortSet>(ports & ~(static_cast<unsigned>(vcs[port] == 0) << port));
  }
  void add_all(const VcRequests& others) {
    for (unsigned port = 0; port < kPorts; ++port) vcs[port] = static_cast<VcSet>(vcs[port] | others.vcs[port]);
    ports = static_cast<PortSet>(ports | others.ports);
  }
  bool only_one() const { return has_one(ports) && has_one(vcs[first_of(ports)]); }
};

/// Without initial values, so that arrays of them cost nothing.
struct PortVc {
  std::uint8_t port;
  std::uint8_t vc;
};

/// The first request at or after (port, vc), port by port, round the end. There is one.
template <unsigned kPorts>
PortVc first_from(const VcRequests<kPorts>& requests, PortVc start) {
  std::uint32_t ports = requests.ports;
  if ((ports >> start.port & 1U) != 0) {
    const std::uint32_t vcs = static_cast<std::uint32_t>(requests.vcs[start.port]) >> start.vc << start.vc;
    if (vcs != 0) return {start.port, static_cast<std::uint8_t>(first_of(vcs))};
  }
  const std::uint32_t later = ports & ~((2U << start.port) - 1);
  const unsigned port = first_of(later != 0 ? later : ports);
  return {static_cast<std::uint8_t>(port), static_cast<std::uint8_t>(first_of(requests.vcs[port]))};
}

/// `forked`: copies of its packet leave by several outputs; what each has and does is in its Fork.
enum class VcState : std::uint8_t { idle, routing, waiting, active, forked };

/// A virtual channel of an input: its buffer, and how far its packet is.
struct InputVc {
  std::uint32_t base = 0;   ///< of its buffer, a ring
  std::uint16_t first = 0;  ///< of its flits
  std::uint16_t count = 0;
  std::uint16_t mask = 0;   ///< of the ring
  std::uint8_t output = 0;
  std::uint8_t output_vc = 0;  ///< wormhole: once it is active
  PortVc accept{};          ///< VC allocation: first (output, VC) to accept
  VcState state = VcState::idle;
  std::uint8_t vc_class = 0;  ///< of the link behind `output`
};
static_assert(sizeof(InputVc) == 16);

/// A virtual channel behind an output, as its router sees it.
struct OutputVc {
  std::uint32_t credits = 0;  ///< free places of its buffer
  PortVc owner{};             ///< the input VC that it is given to, while it is
  PortVc grant{};             ///< VC allocation: first (input, VC) to grant
};

/// The numbers of ports that a FlitEngine is made for: those of a mesh with one local port, or with one for each direction and
/// one for a tile's messages to itself; and what holds all others, express links and shared routers.
inline constexpr unsigned kSinglePort = topology::kPlainDirections + 1;
inline constexpr unsigned kPortPerDirection = 2 * topology::kPlainDirections + 1;
inline constexpr unsigned kManyPorts = 2 * topology::kDirections + 1;
static_assert(topology::kMaxConcentration <= topology::kDirections + 1);
/// Of those the ports that lead to links.
template <unsigned kPorts>
inline constexpr unsigned kMeshPortsOf = kPorts == kManyPorts ? topology::kDirections : topology::kPlainDirections;

/// What a router decides with, in a few cache lines. VC state follows in arrays of the engine.
template <unsigned kPorts>
struct alignas(64) RouterState {
  using PortSet = PortSetOf<kPorts>;
  static constexpr unsigned kMesh = kMeshPortsOf<kPorts>;
  PortSet wants_vc = 0;      ///< outputs that heads wait for a VC of
  PortSet wants_switch = 0;  ///< outputs that flits want to leave by
  PortSet has_free_vc = 0;   ///< outputs with a VC in free_vcs
  PortSet routing = 0;       ///< outputs that heads will wait for a VC of from the next cycle on
  std::array<VcSet, kPorts> free_vcs{};    ///< by output: not given to a packet
  std::array<VcSet, kPorts> credit_vcs{};  ///< by output: with room for a flit
  std::array<std::uint8_t, kPorts> switch_grant{};   ///< by output: first input to grant
  std::array<std::uint8_t, kPorts> switch_accept{};  ///< by input: first output to accept
  std::array<std::uint8_t, kPorts> switch_vc{};      ///< by input: first VC to serve
  std::array<VcRequests<kPorts>, kPorts> vc_requests;      ///< by output
  std::array<VcRequests<kPorts>, kPorts> switch_requests;  ///< by output: with a flit and room for it behind
  std::array<VcRequests<kPorts>, kPorts> routing_requests;  ///< by output: heads that get there with the end of this cycle
  std::array<std::uint32_t, kMesh> next{};      ///< input VC 0 behind a mesh output
  std::array<std::uint32_t, kMesh> upstream{};  ///< output VC 0 before a mesh input
  std::array<std::uint8_t, kMesh> link_class{};  ///< of the link behind a mesh output and of that before the input

  void request_vc(unsigned output, unsigned port, unsigned vc) { add(vc_requests[output], wants_vc, output, port, vc); }
  void take_free_vc(unsigned output, unsigned vc) {
    free_vcs[output] = static_cast<VcSet>(free_vcs[output] & ~(1U << vc));
    has_free_vc = static_cast<PortSet>(has_free_vc & ~(static_cast<unsigned>(free_vcs[output] == 0) << output));
  }
  void free_vc(unsigned output, unsigned vc) {
    free_vcs[output] = static_cast<VcSet>(free_vcs[output] | 1U << vc);
    has_free_vc = static_cast<PortSet>(has_free_vc | 1U << output);
  }
  void request_vc_next(unsigned output, unsigned port, unsigned vc) {
    add(routing_requests[output], routing, output, port, vc);
  }
  /// What was said with request_vc_next() holds.
  void end_routing() {
    for (unsigned output = 0; output < kPorts; ++output) vc_requests[output].add_all(routing_requests[output]);
    routing_requests = {};
    wants_vc = static_cast<PortSet>(wants_vc | routing);
    routing = 0;
  }
  void withdraw_vc(unsigned output, unsigned port, unsigned vc) { remove(vc_requests[output], wants_vc, output, port, vc); }
  void request_switch(unsigned output, unsigned port, unsigned vc) {
    add(switch_requests[output], wants_switch, output, port, vc);
  }
  void withdraw_switch(unsigned output, unsigned port, unsigned vc) {
    remove(switch_requests[output], wants_switch, output, port, vc);
  }

 private:
  static void add(VcRequests<kPorts>& requests, PortSet& outputs, unsigned output, unsigned port, unsigned vc) {
    requests.add(port, vc);
    outputs = static_cast<PortSet>(outputs | 1U << output);
  }
  static void remove(VcRequests<kPorts>& requests, PortSet& outputs, unsigned output, unsigned port, unsigned vc) {
    requests.remove(port, vc);
    outputs = static_cast<PortSet>(outputs & ~(static_cast<unsigned>(requests.ports == 0) << output));
  }
};

}  // namespace wafersim::sim
