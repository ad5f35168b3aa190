#pragma once

#include <string>
#include <vector>

#include "models/hardware.h"
#include "sim/traffic.h"
#include "topology/mesh.h"
#include "topology/routing.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::test {

/// BookSim2's mesh: flits of 4 B, links of one a cycle and of latency 1, one terminal link in and one out of latency 1.
models::HardwareModel booksim_hardware(const models::PipelineStages& stages, int virtual_channels, unsigned buffer_flits);
models::PipelinePreset pipeline_named(const std::string& name);

struct FlitRun {
  sim::TrafficMeasurement measurement;
  std::vector<sim::DeliveredPacket> delivered;  ///< by creation, then source, then order of arrival
};
/// Replays packets.
FlitRun run_packets(const topology::Mesh& mesh, const models::HardwareModel& hardware,
                    const std::vector<workloads::TracedPacket>& packets, const std::string& routing = "xy",
                    bool shuffle = false);

/// Mean over `seeds` runs.
struct MeanLoad {
  double latency = 0;
  double accepted = 0;
  double offered = 0;
  bool stable = true;
};
MeanLoad mean_of(const std::vector<sim::TrafficMeasurement>& runs);
std::vector<sim::TrafficMeasurement> run_seeds(const topology::Mesh& mesh, const models::HardwareModel& hardware,
                                               const workloads::TrafficSpec& spec, int seeds);
MeanLoad run_load(const topology::Mesh& mesh, const models::HardwareModel& hardware, const workloads::TrafficSpec& spec,
                  int seeds);

/// Routers on the way from one tile to the other, both ends included.
int routers_between(const topology::Mesh& mesh, TileId from, TileId to);

}  // namespace wafersim::test
