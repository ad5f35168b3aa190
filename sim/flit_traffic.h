#pragma once

#include <functional>
#include <vector>

#include "models/hardware.h"
#include "sim/traffic_measurement.h"
#include "topology/mesh.h"
#include "topology/routing_policy.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::sim {

struct FlitTrafficOptions {
  std::uint64_t seed = 1;
  std::function<void(const DeliveredPacket&)> on_packet;  ///< called when a tail arrives, measured or not
  const std::vector<workloads::TracedPacket>* packets = nullptr;  ///< replayed instead of what the spec says; by cycle
  bool shuffle = false;                                   ///< visit routers in a random order; results must not change
  std::function<bool()> interrupted;                      ///< polled; true ends the run, which is then not drained
};

/// A flit network alone: terminals make packets, queue them without bound and send a flit a cycle where the router has room
/// for it. The terminals are links of their own with credits: what is sent in cycle t is at the router at t + 1 + Linj, what leaves the
/// router arrives Leject later. See docs/model.md, "Synthetic traffic".
///
/// Not a SystemC simulation: any number may run in a process, one after another.
TrafficMeasurement run_flit_traffic(const topology::Mesh& mesh, const topology::RoutingPolicy& routing,
                                    const models::HardwareModel& hardware, const workloads::TrafficSpec& spec,
                                    const FlitTrafficOptions& options = {});

}  // namespace wafersim::sim
