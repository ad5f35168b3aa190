#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "models/hardware.h"
#include "sim/multicasts.h"
#include "sim/network.h"
#include "sim/packet_routes.h"
#include "sim/router_watch.h"
#include "topology/mesh.h"

namespace wafersim::sim {

/// A flit in a buffer or on a link: the packet it belongs to and its place there.
class Flit {
 public:
  Flit() = default;
  Flit(std::uint32_t packet, bool head, bool tail) : bits_(packet << 2 | (tail ? 2U : 0U) | (head ? 1U : 0U)) {}
  std::uint32_t packet() const { return bits_ >> 2; }
  bool head() const { return (bits_ & 1U) != 0; }
  bool tail() const { return (bits_ & 2U) != 0; }
  static constexpr std::uint32_t kMaxPacket = (1U << 30) - 1;

 private:
  std::uint32_t bits_ = 0;
};

/// Where the flits of a FlitNetwork come from and go to. Called while the network steps. Tiles that share a router are its local
/// ports, by Mesh::slot(): `tile` is the one that the router goes by.
class FlitTerminals {
 public:
  virtual ~FlitTerminals() = default;
  /// `flit` is on the ejection link of local port `lane` from cycle `at` on, for the cycles that a flit takes.
  virtual void eject(TileId tile, unsigned lane, Flit flit, Cycle at) = 0;
  /// `flit` has left VC `vc` of local port `lane`: its place may be filled by what is injected from cycle `at` on.
  virtual void injection_credit(TileId tile, unsigned lane, unsigned vc, Flit flit, Cycle at) = 0;
  /// The head of `packet` leaves the router by `output`, `waited` cycles after it could have been granted the switch first. With
  /// FlitNetworkSpec::report_heads.
  virtual void head_sent(TileId /*tile*/, unsigned /*output*/, std::uint32_t /*packet*/, Cycle /*waited*/) {}
  /// A router makes a copy of a multicast `packet`: the number that its flits have from there on. Of the copies one leaves by
  /// each output; `packet` itself ends there.
  virtual std::uint32_t copied(std::uint32_t packet);
  /// All copies of `packet` have left the router where it ended; the number may be used again.
  virtual void parted(std::uint32_t /*packet*/) {}
};

/// What a FlitNetwork is made of.
struct FlitNetworkSpec {
  const topology::Mesh& mesh;  ///< this and `routes` must outlive the network
  const PacketRoutes& routes;
  const models::HardwareModel& hardware;
  unsigned injection_buffer_flits = 0;  ///< of each VC of a local port
  unsigned ejection_buffer_flits = 0;   ///< of each VC of a terminal, with credits like a router's; 0 = it always takes a flit
  bool report_heads = false;            ///< call FlitTerminals::head_sent
  const Multicasts* multicasts = nullptr;  ///< where packets go to several tiles; likewise
};

/// The routers and links of a mesh, flit by flit: input-queued routers with virtual channels and credits. See docs/model.md,
/// "Flit network". One object for all routers: flits and credits on links lie in delay lines that they share, and only routers
/// that can do something are visited. Nothing here depends on the order in which routers are visited: what one does reaches
/// another in a later cycle.
class FlitNetwork {
 public:
  /// Throws PlanError for more VCs than kMaxFlitVcs or buffers of more than 65,535 flits.
  static std::unique_ptr<FlitNetwork> make(const FlitNetworkSpec& spec, FlitTerminals& terminals);
  virtual ~FlitNetwork() = default;

  /// To be called before the first flit of a packet is injected; the number may be used again after its tail was ejected.
  /// `travel` is that of PacketRoutes::depart(), not looked at when the routes are plain.
  void set_packet(std::uint32_t packet, TileId destination, std::uint32_t flits, const topology::Travel& travel) {
    if (packet >= packets_.size()) packets_.resize(packet + packet / 2 + 64);
    packets_[packet] = {destination, flits & kMostFlits, 0};
    if (plain_) [[likely]] return;
    if (packet >= travels_.size()) travels_.resize(packets_.size());
    travels_[packet] = travel;
  }

  /// The same for a packet along the tree of a multicast; a buffer must hold all of it.
  void set_multicast(std::uint32_t packet, std::uint32_t multicast, std::uint32_t flits) {
    if (packet >= packets_.size()) packets_.resize(packet + packet / 2 + 64);
    packets_[packet] = {multicast, flits & kMostFlits, 1};
  }

  /// `flit` reaches VC `vc` of local port `lane` at `at`: this cycle, before it is stepped, or at most `horizon()` cycles later.
  /// Whoever injects keeps to the room in the VC; the flits of a packet come in order, those of two packets do not mix in a VC.
  virtual void inject(TileId tile, unsigned lane, unsigned vc, Flit flit, Cycle at) = 0;
  /// Runs cycle `now`; cycles without work may be left out.
  virtual void step(Cycle now) = 0;
  /// Visits the routers of a cycle in random order; results must not depend on it.
  void shuffle(std::uint64_t seed) { shuffle_.emplace(seed, "flits.shuffle"); }
  /// The first cycle after `now` that has work; kNever when the network is empty or nothing can move.
  virtual Cycle next_work(Cycle now) const = 0;
  virtual Cycle horizon() const = 0;

  /// Routers visited so far, a router counted once for each cycle in which it had work.
  std::uint64_t router_cycles() const { return router_cycles_; }
  /// Flits that left a router, over links and to terminals.
  std::uint64_t router_traversals() const { return router_traversals_; }
  /// Flits that went over a mesh link.
  std::uint64_t link_flits(topology::LinkId link) const { return link_flits_[link]; }
  /// Cycles in which packets held a mesh link, of a cut-through network.
  Cycle held_cycles(topology::LinkId link) const { return held_cycles_[link]; }
  /// link_flits() over all.
  std::uint64_t flit_hops() const;
  /// Throws InternalError when a router holds a flit, a VC is taken or a credit is missing; with nothing under way.
  virtual void check_empty() const = 0;
  /// For waveforms.
  virtual void sample(TileId tile, RouterSample& sample) const = 0;
  /// Who waits for whom, when nothing can move: a circle of virtual channels, or the channels to one that waits for something
  /// that does not come. Empty when no router holds a flit.
  virtual std::string describe_stall() const = 0;

 protected:
  static constexpr std::uint32_t kMostFlits = (std::uint32_t{1} << 31) - 1;
  struct PacketInfo {
    TileId destination = kNoTile;  ///< of a multicast its number in Multicasts
    std::uint32_t flits : 31 = 0;
    std::uint32_t multicast : 1 = 0;
  };
  explicit FlitNetwork(const PacketRoutes& routes) : plain_(routes.plain()) {}

  bool plain_;
  HugeVector<PacketInfo> packets_;
  HugeVector<topology::Travel> travels_;  ///< by packet; empty when the routes are plain
  HugeVector<std::uint64_t> link_flits_;  ///< by LinkId
  HugeVector<Cycle> held_cycles_;         ///< in cut-through, by LinkId
  std::optional<RandomStream> shuffle_;
  std::uint64_t router_cycles_ = 0;
  std::uint64_t router_traversals_ = 0;
};

}  // namespace wafersim::sim
