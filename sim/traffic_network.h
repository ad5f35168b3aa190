#pragma once

#include <memory>
#include <string>

#include "models/hardware.h"
#include "sim/packet_routes.h"
#include "sim/router_watch.h"
#include "topology/mesh.h"

namespace wafersim::sim {

/// A packet of synthetic traffic that begins to leave its source.
struct TrafficPacket {
  std::uint32_t number = 0;  ///< may be used again after its tail has arrived
  TileId source = kNoTile;
  TileId destination = kNoTile;
  std::uint32_t flits = 0;
  unsigned lane = 0;         ///< injection port of its source
  unsigned vc = 0;           ///< there
  topology::Travel travel{};
};

/// Where a TrafficNetwork's packets come from and go to. Called while the network steps.
class TrafficTerminals {
 public:
  virtual ~TrafficTerminals() = default;
  /// `flits` flits of a packet have gone over the ejection link of `tile`, one in each cycle up to `last`. With `tail` these are
  /// its last. Whole packets are told of at their tails.
  virtual void eject(TileId tile, std::uint32_t packet, std::uint32_t flits, bool tail, Cycle last) = 0;
  /// Room for so many flits in VC `vc` of injection port `lane` of `tile` may be filled by what is sent from cycle `at` on.
  virtual void room(TileId tile, unsigned lane, unsigned vc, std::uint32_t flits, Cycle at) = 0;
};

/// The routers and links that synthetic traffic is sent through.
class TrafficNetwork {
 public:
  struct Spec {
    const topology::Mesh& mesh;  ///< these three must outlive the network
    const topology::RoutingPolicy& routing;
    const models::HardwareModel& hardware;
    std::uint64_t seed = 1;
    std::uint32_t largest_packet = 1;  ///< flits
    bool shuffle = false;
  };
  /// Of what `hardware.fidelity` says: flit, or packet. Throws PlanError as FlitNetwork::make and RouterEngine do.
  static std::unique_ptr<TrafficNetwork> make(const Spec& spec, TrafficTerminals& terminals);
  virtual ~TrafficNetwork() = default;

  virtual const PacketRoutes& routes() const = 0;
  /// Room of a VC of an injection port, in flits.
  std::uint32_t buffer_flits() const { return buffer_flits_; }
  /// Room is taken and given back by the packet.
  bool whole_packets() const { return whole_packets_; }
  /// No event is further ahead.
  virtual Cycle horizon() const = 0;

  /// To be called once for each packet, before its first flit is sent. That reaches the router at `head_at`; those of whole
  /// packets follow each other as fast as the injection port takes them, at most one a cycle.
  virtual void start(const TrafficPacket& packet, Cycle head_at) = 0;
  /// Flit `place` of a packet that was started reaches the router at `at`.
  virtual void send(const TrafficPacket& packet, std::uint32_t place, Cycle at) = 0;
  /// Runs cycle `now`; cycles in which nothing is under way may be left out.
  virtual void step(Cycle now) = 0;

  virtual std::uint64_t link_flits(topology::LinkId link) const = 0;
  /// Flits that left a router, over links and to terminals.
  virtual std::uint64_t router_traversals() const = 0;
  /// Routers x cycles in which they had work; of packets, events.
  virtual std::uint64_t router_cycles() const = 0;
  /// Throws InternalError when something is left, with nothing under way.
  virtual void check_empty() const = 0;
  virtual void sample(TileId tile, Cycle at, RouterSample& sample) = 0;
  virtual std::string describe_stall() const = 0;

 protected:
  TrafficNetwork(std::uint32_t buffer_flits, bool whole_packets)
      : buffer_flits_(buffer_flits), whole_packets_(whole_packets) {}

  std::uint32_t buffer_flits_;
  bool whole_packets_;
};

/// Private to sim/: the two that make() chooses from.
std::unique_ptr<TrafficNetwork> make_flit_traffic(const TrafficNetwork::Spec& spec, TrafficTerminals& terminals);
std::unique_ptr<TrafficNetwork> make_packet_traffic(const TrafficNetwork::Spec& spec, TrafficTerminals& terminals);

}  // namespace wafersim::sim
