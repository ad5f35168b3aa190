#pragma once

#include <array>
#include <vector>

#include "models/hardware.h"
#include "sim/calendar.h"
#include "sim/credits.h"
#include "sim/interfaces.h"
#include "sim/port_clock.h"
#include "topology/routing.h"

namespace wafersim::sim {

/// Ports 0..3 are the mesh directions; local ports follow: one, or one for each direction and one for a tile's messages
/// to itself (models::NicPorts).
inline constexpr unsigned kMeshPorts = topology::kDirections;
inline constexpr unsigned kSelfLane = kMeshPorts;

constexpr unsigned local_ports(models::NicPorts ports) { return ports == models::NicPorts::single ? 1 : kMeshPorts + 1; }

/// Pools and constants that all routers and NICs of a wafer share.
struct NetworkContext {
  Calendar& calendar;
  const topology::Routing& routing;
  const models::HardwareModel& hardware;
  PacketPool packets;
  MessagePool messages;
  CreditPool credits;
  std::uint64_t time_scale;
  PortRate link_rate;
  PortRate injection_rate;
  PortRate ejection_rate;

  NetworkContext(Calendar& calendar_in, const topology::Routing& routing_in, const models::HardwareModel& hardware_in)
      : calendar(calendar_in),
        routing(routing_in),
        hardware(hardware_in),
        time_scale(common_time_scale({hardware_in.link_bytes_per_cycle, hardware_in.injection_bytes_per_cycle,
                                      hardware_in.ejection_bytes_per_cycle})),
        link_rate(hardware_in.link_bytes_per_cycle, time_scale, hardware_in.packet_bytes),
        injection_rate(hardware_in.injection_bytes_per_cycle, time_scale, hardware_in.packet_bytes),
        ejection_rate(hardware_in.ejection_bytes_per_cycle, time_scale, hardware_in.packet_bytes) {}
};

/// What went over one output port.
struct PortStatistics {
  std::uint64_t packets = 0;
  Cycle busy = 0;    ///< cycles in which a packet held the port
  Cycle queued = 0;  ///< sum over packets of (grant - first bid)
  std::array<Bytes, workloads::kAxes + 1> bytes_by_axis{};
};

/// A virtual cut-through router. A packet whose head reaches an input VC at t bids for its output at
/// max(t + R, the packet ahead in its VC has left). An output grants one bidder a cycle when it is free and the downstream VC
/// has room for the whole packet; round-robin over input VCs in the order N, E, S, W, local, then VC. Granted at g, the tail
/// leaves at d = max(g + S, tail upstream + L + R); port and buffer are held until d, the credit is upstream at d + Lc.
class Router : public sc_core::sc_module, public Client, public PacketSink, public CreditSink {
 public:
  Router(sc_core::sc_module_name name, TileId tile, NetworkContext& network);

  sc_core::sc_export<PacketSink> packets_in;
  sc_core::sc_export<CreditSink> credits_in;
  /// The router behind each mesh output, and where the credits of each mesh input go; unbound at the wafer's edge.
  std::array<sc_core::sc_port<PacketSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND>, kMeshPorts> packets_out;
  std::array<sc_core::sc_port<CreditSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND>, kMeshPorts> credits_out;
  /// The tile's NIC; unbound on tiles without one.
  sc_core::sc_port<EjectionSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND> ejection;
  sc_core::sc_port<CreditSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND> injection_credits;

  void receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) override;
  void credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) override;
  void update(unsigned kind, std::uint32_t payload) override;
  void evaluate() override;

  const PortStatistics& statistics(topology::Direction direction) const {
    return statistics_[static_cast<std::size_t>(direction)];
  }
  /// Packets that wait in this router and for what; empty when there is none.
  std::string describe_stall() const;

 private:
  /// Updates.
  enum Kind : unsigned { kArrive, kHeadFree, kArbitrate };

  struct InputVc {
    std::uint32_t head = kNil;
    std::uint32_t tail = kNil;
    Cycle free_at = 0;  ///< the packet ahead has left
    Cycle bid_at = 0;   ///< first bid of the head
  };
  struct Output {
    PortClock clock;
    std::uint64_t bidders = 0;  ///< input VCs whose head wants this output, see bid_bit
    Cycle last_grant = kNever;
    Cycle tail_at = 0;          ///< the last granted tail leaves
    Cycle wake_at = kNever;     ///< an arbitration is posted for this cycle
    Cycle credits_full_at = 0;  ///< the last credit known of is back
    std::uint32_t uncredited = 0;  ///< packets downstream whose credit has no time yet
    std::uint8_t first_bit = 0;    ///< round-robin: where the search starts
  };

  /// Position of an input VC in an output's bidders: mesh ports first, then the one local port that can reach it.
  unsigned bid_bit(unsigned input, unsigned vc) const {
    return (input < kMeshPorts ? input : kMeshPorts) * vcs_ + vc;
  }
  unsigned input_vc_of_bit(unsigned output, unsigned bit) const;
  unsigned output_for(const Packet& packet) const;
  void start_bidding(unsigned input_vc);
  void arbitrate(unsigned output);
  bool can_grant(unsigned output, unsigned bit);
  void grant(unsigned output, unsigned bit);
  void wait_for_credit(unsigned output);
  void wake(unsigned output, Cycle at);
  void end_of_elaboration() override;

  NetworkContext& network_;
  TileId tile_;
  unsigned vcs_;
  bool single_local_;
  std::uint32_t pending_outputs_ = 0;  ///< outputs to arbitrate in this cycle
  // What the ports are bound to: one load less on the hot path than a call through a port.
  std::array<PacketSink*, kMeshPorts> next_router_{};
  std::array<CreditSink*, kMeshPorts> upstream_{};
  EjectionSink* nic_ = nullptr;
  CreditSink* nic_credits_ = nullptr;
  std::vector<InputVc> inputs_;        ///< port-major, VC-minor
  std::vector<Output> outputs_;
  std::vector<CreditCounter> credits_;  ///< of the mesh outputs, port-major
  std::array<PortStatistics, kMeshPorts> statistics_;
};

}  // namespace wafersim::sim
