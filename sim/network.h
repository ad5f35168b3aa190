#pragma once

#include <array>
#include <memory_resource>
#include <vector>

#include "base/huge_pages.h"
#include "models/hardware.h"
#include "sim/calendar.h"
#include "sim/credits.h"
#include "sim/multicasts.h"
#include "sim/packet.h"
#include "sim/packet_routes.h"
#include "sim/port_clock.h"
#include "sim/port_layout.h"
#include "sim/stream_board.h"

namespace wafersim::sim {

/// How long packets take over an output port and the link behind it.
struct alignas(64) PortTiming {
  PortRate rate;
  Cycle link_cycles = 0;
  Cycle credit_cycles = 0;
};

/// The rates of all ports of a network: those of the links by class, then injection and ejection.
inline std::vector<Rational> port_rates(const topology::Mesh& mesh, const models::HardwareModel& hardware) {
  std::vector<Rational> rates;
  for (const topology::LinkClass& link_class : mesh.link_classes()) rates.push_back(hardware.link(link_class).bytes_per_cycle);
  rates.push_back(hardware.injection_bytes_per_cycle);
  rates.push_back(hardware.ejection_bytes_per_cycle);
  return rates;
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

class Components;
class PathRecorder;
class Trains;

/// Where a tile stands in the plan.
struct FlowPlace {
  std::uint32_t position = 0;  ///< in its replica
  std::uint32_t replica = 0;
};

/// Pools and constants that all routers and NICs of a wafer share.
struct NetworkContext {
  Calendar& calendar;
  const topology::Mesh& mesh;
  PortLayout layout;
  PacketRoutes routes;
  const models::HardwareModel& hardware;
  Cycle router_cycles;  ///< the next two are copies for the hot path
  Cycle turn_cycles;
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
  std::vector<PortTiming> ports;  ///< of links, by class; then of ejection
  PortRate injection_rate;
  StreamBoard streams;
  Multicasts multicasts;
  PathRecorder* path = nullptr;  ///< when the critical path is recorded
  Trains* trains = nullptr;      ///< when messages may leave as trains
  Components* components = nullptr;  ///< when parts of the wafer may be simulated once for several times
  Bytes buffer_unit;  ///< a packet takes whole ones of a buffer: bytes, or flits
  Bytes multicast_packet_bytes;  ///< what packets of multicasts hold at most: wormhole routers need a buffer for all of one

  std::uint8_t timing_of_link(topology::LinkId link) const { return mesh.link_class(link); }
  std::uint8_t timing_of_ejection() const { return static_cast<std::uint8_t>(ports.size() - 1); }

  /// Room that a packet takes in a VC of a local port.
  Bytes buffered(Bytes packet) const { return buffer_unit == 1 ? packet : ceil_div(packet, buffer_unit) * buffer_unit; }

  /// `seed` is that of what packets draw.
  NetworkContext(Calendar& calendar_in, const topology::Mesh& mesh_in, const topology::RoutingPolicy& routing,
                 const models::HardwareModel& hardware_in, std::uint64_t seed)
      : calendar(calendar_in),
        mesh(mesh_in),
        layout(mesh_in, hardware_in.nic_ports),
        routes(mesh, routing, static_cast<unsigned>(hardware_in.virtual_channels), seed),
        hardware(hardware_in),
        router_cycles(hardware_in.router_cycles),
        turn_cycles(hardware_in.turn_cycles),
        flights(mesh.tile_count()),
        nics(mesh.tile_count()),
        time_scale(common_time_scale(port_rates(mesh, hardware_in))),
        injection_rate(hardware_in.injection_bytes_per_cycle, time_scale, hardware_in.packet_bytes),
        multicasts(mesh, routing.name(), routes.plain() ? routing.fixed(0) : nullptr),
        buffer_unit(hardware_in.fidelity == models::Fidelity::flit ? hardware_in.flit.flit_bytes : 1),
        multicast_packet_bytes(hardware_in.packet_bytes) {
    if (hardware.fidelity == models::Fidelity::flit && hardware.flit.switching == models::Switching::wormhole) {
      multicast_packet_bytes = std::min(multicast_packet_bytes, hardware.flit.flit_bytes * hardware.flit.vc_buffer_flits);
    }
    const auto rate = [this](const Rational& bytes_per_cycle) {
      return PortRate(bytes_per_cycle, time_scale, hardware.packet_bytes);
    };
    for (const topology::LinkClass& link_class : mesh.link_classes()) {
      const models::LinkModel link = hardware.link(link_class);
      ports.push_back({rate(link.bytes_per_cycle), link.cycles, link.credit_cycles});
    }
    ports.push_back({rate(hardware.ejection_bytes_per_cycle)});
  }
};

/// What went over one output port.
struct alignas(64) PortStatistics {
  std::uint64_t packets = 0;
  Cycle busy = 0;    ///< cycles in which a packet held the port
  Cycle queued = 0;  ///< sum over packets of (grant - first bid)
  std::array<Bytes, workloads::kAxes + 1> bytes_by_axis{};
};

}  // namespace wafersim::sim
