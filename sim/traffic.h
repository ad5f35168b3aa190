#pragma once

#include <functional>
#include <vector>

#include "models/hardware.h"
#include "sim/router_watch.h"
#include "sim/traffic_measurement.h"
#include "topology/mesh.h"
#include "topology/routing_policy.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::sim {

struct TrafficOptions {
  std::uint64_t seed = 1;
  std::function<void(const DeliveredPacket&)> on_packet;  ///< called when a tail arrives, measured or not
  const std::vector<workloads::TracedPacket>* packets = nullptr;  ///< replayed instead of what the spec says; by cycle
  bool shuffle = false;                                   ///< visit routers in a random order; results must not change
  std::function<bool()> interrupted;                      ///< polled; true ends the run, which is then not drained
  WatchOptions watch;                                     ///< routers to watch; live tiles
};

/// A network alone, of flits or of packets (`hardware.fidelity`): terminals make packets, queue them without bound and send a
/// flit a cycle where the router has room for it, or for the whole packet where packets are not parted. The terminals are links
/// of their own with credits: what is sent in cycle t is at the router at t + 1 + Linj, what leaves the router arrives Leject
/// later. Routers of packets and cut-through routers of flits give the same run. See docs/model.md, "Synthetic traffic".
///
/// Throws InternalError, saying who waits for whom, when something is in the network and nothing moves any more: that must not
/// happen with a routing and virtual channels that topology::check_dependencies() finds free of cycles. Throws PlanError when a
/// buffer cannot hold a packet that is not parted.
///
/// Not a SystemC simulation: any number may run in a process, one after another.
TrafficMeasurement run_traffic(const topology::Mesh& mesh, const topology::RoutingPolicy& routing,
                               const models::HardwareModel& hardware, const workloads::TrafficSpec& spec,
                               const TrafficOptions& options = {});

}  // namespace wafersim::sim
