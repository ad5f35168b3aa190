#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/flit_network.h"
#include "sim/interfaces.h"
#include "sim/network.h"

namespace wafersim::sim {

/// The flit network of a wafer as its calendar drives it: evaluated in each cycle in which a flit moves or arrives, after
/// cores and network interfaces. Takes the packets of the network interfaces apart and puts them together again.
class FlitMesh final : public sc_core::sc_module, public Client, private FlitTerminals {
 public:
  /// Throws PlanError as FlitNetwork::make does, and when a cut-through buffer holds no packet.
  FlitMesh(sc_core::sc_module_name name, const topology::Mesh& mesh, NetworkContext& network);

  /// What the packets of one of the router's tiles leave the network by.
  void connect(TileId router, unsigned slot, TerminalIf* nic);
  /// The head of `packet` is at local port packet.input of the router at `head_at`.
  void receive(TileId router, std::uint32_t packet, Cycle head_at);
  void update(unsigned kind, std::uint32_t payload) override;
  void evaluate() override;

  void shuffle(std::uint64_t seed) { flits_->shuffle(seed); }
  PortStatistics statistics(topology::LinkId link) const;
  std::string describe_stall() const { return flits_->describe_stall(); }
  void sample(TileId tile, RouterSample& sample) const { flits_->sample(tile, sample); }
  /// Throws InternalError when something is left in the network, or flits that went in did not come out.
  void check_empty() const;

 private:
  /// A packet of the NetworkContext on its way as flits.
  struct Parcel {
    std::uint32_t next = kNil;  ///< behind it in its lane
    std::uint32_t packet = kNil;
    std::uint32_t flits = 0;
    std::uint32_t ejected = 0;
    std::uint8_t vc = 0;  ///< of the injection port
    workloads::Axis axis = workloads::Axis::none;
    Bytes bytes = 0;
    Cycle head_at = 0;
    Cycle queued = 0;
  };
  /// An injection port: parcels whose flits are still to come, first of all those of the first.
  struct Lane {
    std::uint32_t first = kNil;
    std::uint32_t last = kNil;
    std::uint32_t sent = 0;
    Cycle due = kNever;      ///< of the next flit
    Cycle free_at = 0;       ///< the flit before has come
  };

  TileId terminal(TileId router, unsigned lane) const;
  void eject(TileId router, unsigned lane, Flit flit, Cycle at) override;
  void injection_credit(TileId router, unsigned lane, unsigned vc, Flit flit, Cycle at) override;
  void head_sent(TileId tile, unsigned output, std::uint32_t parcel, Cycle waited) override;
  std::uint32_t copied(std::uint32_t parcel) override;
  void parted(std::uint32_t parcel) override;
  void hand_over(TileId tile, std::uint32_t parcel, Cycle head_at, Cycle tail_at);
  void send_due_flits(Cycle now);
  void start_next(Lane& lane);
  void wake(Cycle at);

  const topology::Mesh& mesh_;
  NetworkContext& network_;
  std::unique_ptr<FlitNetwork> flits_;
  unsigned lanes_per_tile_;
  bool cut_through_;
  bool gapless_ = true;  ///< no link takes more than one cycle for a flit
  Pool<Parcel> parcels_;
  std::vector<TerminalIf*> ends_;                ///< by tile
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> sending_;         ///< lanes with flits to come
  std::vector<PortStatistics> ports_;          ///< by LinkId
  PortRate injection_;
  PortRate ejection_;
  std::vector<PortRate> links_;                ///< by class
  Cycle wake_at_ = kNever;
  std::uint64_t flits_in_ = 0;
  std::uint64_t flits_out_ = 0;
};

/// The router module of a tile in a flit network: the ports of a Router towards the network interface. Its links are inside
/// FlitMesh.
class FlitRouter final : public sc_core::sc_module, public PacketSink {
 public:
  FlitRouter(sc_core::sc_module_name name, TileId tile, FlitMesh& mesh);

  /// Of its tiles, with their slots, as those of a Router.
  sc_core::sc_port<TerminalIf, 0, sc_core::SC_ZERO_OR_MORE_BOUND> terminals{"terminals"};
  std::vector<unsigned> slots;

  void receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) override;

 private:
  void end_of_elaboration() override;

  TileId tile_;
  FlitMesh& mesh_;
};

}  // namespace wafersim::sim
