#pragma once

#include <functional>
#include <vector>

#include "base/random.h"
#include "models/hardware.h"
#include "sim/packet_process.h"
#include "sim/traffic.h"
#include "topology/mesh.h"
#include "topology/routing_policy.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::sim {

/// The tiles that make packets, at random or from a trace.
class TrafficSources {
 public:
  struct Made {
    TileId source = kNoTile;
    TileId destination = kNoTile;
    std::uint32_t flits = 0;
    Cycle created = 0;       ///< may be earlier than the cycle in which it is told of
    std::uint64_t number = 0;  ///< among those of its source
  };
  /// References must outlive this. Throws PlanError for a trace that cannot be read or has a packet without a live way.
  TrafficSources(const topology::Mesh& mesh, const topology::RoutingPolicy& routing, const models::HardwareModel& hardware,
                 const workloads::TrafficSpec& spec, const TrafficOptions& options, std::function<void(const Made&)> made);

  /// Packets of a trace, all of which are measured.
  bool recorded() const { return recorded_; }
  Cycle measure_from() const { return measure_from_; }
  Cycle measure_to() const { return measure_to_; }
  /// No packet is made from here on, and what has not arrived is not waited for.
  Cycle end() const { return end_; }
  bool measured(Cycle at) const { return at >= measure_from_ && at < measure_to_; }
  /// Flits of the largest packet that may be made.
  std::uint64_t largest() const;

  /// Tells of the packets of this cycle.
  void make_due(Cycle now);
  /// A packet has left the queue of its tile.
  void taken(TileId tile, Cycle now);
  /// No source still has to make a packet of the measurement.
  bool made_until(Cycle now) const;
  /// The cycle of the next packet of a trace; kNever when there is none.
  Cycle next_traced() const { return next_traced_ == trace_.size() ? kNever : trace_[next_traced_].cycle; }

 private:
  static constexpr std::size_t kWheel = 1024;
  /// Packets that a tile queues before it stops making them and catches up later. A single lane loses nothing by that: what is
  /// made later has the cycle of its making. With a lane for each direction it is far beyond saturation.
  static constexpr std::uint32_t kQueue = 512;

  struct Source {
    explicit Source(RandomStream stream) : random(stream) {}
    RandomStream random;
    bool on = true;
    bool full = false;    ///< makes no more before one of its packets has been taken from its queue
    std::uint32_t queued = 0;
    std::uint64_t made = 0;
    Cycle next = kNever;  ///< when its next packet is made
  };

  void read_trace(const topology::RoutingPolicy& routing, const TrafficOptions& options);
  void schedule(std::uint32_t tile, Cycle now);
  void make_packets(std::uint32_t tile, Cycle now);
  void make(TileId source, TileId destination, std::uint32_t flits, Cycle created);
  std::uint32_t flits_of(Bytes bytes) const;

  const topology::Mesh& mesh_;
  const models::HardwareModel& hardware_;
  const workloads::TrafficSpec& spec_;
  std::function<void(const Made&)> made_;
  workloads::Destinations destinations_;
  bool recorded_;
  PacketProcess process_;
  std::vector<std::vector<std::uint32_t>> wheel_;  ///< tiles by the cycle in which they make a packet
  std::vector<Source> sources_;                    ///< by tile
  std::vector<workloads::TracedPacket> trace_;
  std::size_t next_traced_ = 0;
  Cycle measure_from_, measure_to_, end_;
};

}  // namespace wafersim::sim
