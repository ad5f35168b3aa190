#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace wafersim::sim {

/// A packet that has arrived.
struct DeliveredPacket {
  TileId source = kNoTile;
  TileId destination = kNoTile;
  std::uint32_t flits = 0;
  Cycle created = 0;
  Cycle injected = 0;  ///< its head left the source's queue
  Cycle arrived = 0;   ///< its tail reached the destination
};

/// Latencies of packets in whole cycles, counted one by one up to a limit.
class LatencyHistogram {
 public:
  void add(Cycle latency);
  void add(const LatencyHistogram& other);
  std::uint64_t count() const { return count_; }
  double mean() const { return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_); }
  Cycle longest() const { return longest_; }
  /// The smallest latency that at least `percent` of the packets do not pass; latencies beyond the limit count as the longest.
  Cycle percentile(unsigned percent) const;

 private:
  static constexpr Cycle kLimit = 1U << 16;
  std::vector<std::uint32_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  Cycle longest_ = 0;
};

/// What one run of synthetic traffic gave. Loads are flits per sending tile and cycle of the measurement.
struct TrafficMeasurement {
  double offered_load = 0;   ///< of the packets that were made
  double accepted_load = 0;  ///< of the flits that arrived
  LatencyHistogram latency;          ///< of packets made in the measurement, from creation to the tail's arrival
  LatencyHistogram network_latency;  ///< the same from injection
  std::uint64_t packets_made = 0;    ///< in the measurement
  bool drained = false;      ///< all of them arrived in time
  bool stable = false;       ///< drained, and no source's backlog grew (docs/model.md, "Synthetic traffic")
  double least_accepted = 1; ///< smallest accepted / offered of a source
  Cycle cycles = 0;          ///< length of the run
  std::uint64_t flit_hops = 0;          ///< flits over mesh links, whole run
  std::uint64_t router_traversals = 0;  ///< flits through routers
  std::uint64_t router_cycles = 0;      ///< routers x cycles in which they had work
  double max_link_utilization = 0;      ///< flits over the busiest link / cycles it could have carried one, whole run
  double cpu_seconds = 0;
};

}  // namespace wafersim::sim
