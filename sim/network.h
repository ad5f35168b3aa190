#pragma once

#include <array>
#include <memory_resource>

#include "base/huge_pages.h"
#include "models/hardware.h"
#include "sim/calendar.h"
#include "sim/credits.h"
#include "sim/packet.h"
#include "sim/port_clock.h"
#include "sim/packet_routes.h"

namespace wafersim::sim {

/// Ports 0..3 are the mesh directions; local ports follow: one, or one for each direction and one for a tile's messages
/// to itself (models::NicPorts).
inline constexpr unsigned kMeshPorts = topology::kDirections;
inline constexpr unsigned kSelfLane = kMeshPorts;

constexpr unsigned local_ports(models::NicPorts ports) { return ports == models::NicPorts::single ? 1 : kMeshPorts + 1; }

/// The direction in which a packet entered by `input`; `local` from the NIC.
constexpr topology::Hop came_by(unsigned input) {
  return input < kMeshPorts ? static_cast<topology::Hop>((input + 2) % kMeshPorts) : topology::Hop::local;
}
inline constexpr topology::OutputSet kAllOutputs = 0xff;
/// The outputs to which an input is wired: an injection port of a direction leads to that alone.
constexpr topology::OutputSet offered_to(unsigned input, bool single_local) {
  if (single_local || input < kMeshPorts) return kAllOutputs;
  return topology::output_bit(static_cast<topology::Hop>(input - kMeshPorts));
}

/// Counts the cycles in which a tile has a message in flight, to it or from it.
class FlightClock {
 public:
  void begin(Cycle now) {
    settle(now);
    ++in_flight_;
  }
  void end(Cycle now) {
    settle(now);
    --in_flight_;
  }
  Cycle total(Cycle now) {
    settle(now);
    return total_;
  }

  /// Its state, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive);

 private:
  void settle(Cycle now) {
    if (in_flight_ != 0) total_ += now - since_;
    since_ = now;
  }
  std::uint32_t in_flight_ = 0;
  Cycle since_ = 0;
  Cycle total_ = 0;
};

/// Where a tile stands in the plan.
struct FlowPlace {
  std::uint32_t position = 0;  ///< in its replica
  std::uint32_t replica = 0;
};

/// Pools and constants that all routers and NICs of a wafer share.
struct NetworkContext {
  Calendar& calendar;
  PacketRoutes routes;
  const models::HardwareModel& hardware;
  Cycle router_cycles;  ///< the next three are copies for the hot path
  Cycle link_cycles;
  Cycle credit_cycles;
  Arena arena;  ///< the state of routers and NICs, tile by tile
  ArenaMemory arena_memory{arena};
  std::pmr::unsynchronized_pool_resource tables{&arena_memory};  ///< tables of cores and NICs that grow and shrink
  PacketPool packets;
  MessagePool messages;
  CreditPool credits;
  HugeVector<FlightClock> flights;  ///< by tile; side by side, because every message touches those of both its ends
  std::vector<const void*> nics;    ///< by tile: where its NIC lies, for hints; null where there is none
  std::vector<FlowPlace> flow_places;  ///< by tile; empty when there is but one replica
  std::uint64_t time_scale;
  PortRate link_rate;
  PortRate injection_rate;
  PortRate ejection_rate;
  Bytes buffer_unit;  ///< a packet takes whole ones of a buffer: bytes, or flits

  /// Room that a packet takes in a VC of a local port.
  Bytes buffered(Bytes packet) const { return buffer_unit == 1 ? packet : ceil_div(packet, buffer_unit) * buffer_unit; }

  /// `seed` is that of what packets draw.
  NetworkContext(Calendar& calendar_in, const topology::Mesh& mesh, const topology::RoutingPolicy& routing,
                 const models::HardwareModel& hardware_in, std::uint64_t seed)
      : calendar(calendar_in),
        routes(mesh, routing, static_cast<unsigned>(hardware_in.virtual_channels), seed),
        hardware(hardware_in),
        router_cycles(hardware_in.router_cycles),
        link_cycles(hardware_in.link_cycles),
        credit_cycles(hardware_in.credit_cycles),
        flights(mesh.tile_count()),
        nics(mesh.tile_count()),
        time_scale(common_time_scale({hardware_in.link_bytes_per_cycle, hardware_in.injection_bytes_per_cycle,
                                      hardware_in.ejection_bytes_per_cycle})),
        link_rate(hardware_in.link_bytes_per_cycle, time_scale, hardware_in.packet_bytes),
        injection_rate(hardware_in.injection_bytes_per_cycle, time_scale, hardware_in.packet_bytes),
        ejection_rate(hardware_in.ejection_bytes_per_cycle, time_scale, hardware_in.packet_bytes),
        buffer_unit(hardware_in.fidelity == models::Fidelity::flit ? hardware_in.flit.flit_bytes : 1) {}
};

/// What went over one output port.
struct alignas(64) PortStatistics {
  std::uint64_t packets = 0;
  Cycle busy = 0;    ///< cycles in which a packet held the port
  Cycle queued = 0;  ///< sum over packets of (grant - first bid)
  std::array<Bytes, workloads::kAxes + 1> bytes_by_axis{};
};

}  // namespace wafersim::sim
