#pragma once

#include <string>
#include <vector>

#include "models/hardware.h"
#include "sim/simulation.h"
#include "topology/mesh.h"
#include "topology/routing.h"
#include "workloads/flow_trace.h"
#include "workloads/trace.h"

namespace wafersim::test {

using workloads::Flow;

/// A machine for tests: one cycle of the clock is 1 ns, the vector engine does one FLOP a cycle, memory is unlimited.
models::HardwareModel plain_hardware(Bytes packet_bytes, const Rational& link_bytes_per_cycle, Cycle router_cycles,
                                     Cycle link_cycles);

struct FlowResult {
  sim::Measurements measurements;
  std::vector<sim::MessageRecord> messages;  ///< by flow, in the order given
};
/// Runs flows on a ROWSxCOLS mesh with the given routing. One call in a process.
FlowResult run_flows(const topology::Mesh& mesh, const models::HardwareModel& hardware, const std::vector<Flow>& flows,
                     const std::string& routing = "xy", bool shuffle = false);

FlowResult run_flows(const topology::Mesh& mesh, const topology::RoutingPolicy& policy, const models::HardwareModel& hardware,
                     const std::vector<Flow>& flows, bool shuffle = false);

/// Runs a trace. One call in a process.
sim::Measurements run_trace(const topology::Mesh& mesh, const models::HardwareModel& hardware, const workloads::Trace& trace,
                            sim::SimulationOptions options = {}, const std::string& routing = "xy");

/// Sets the default VC buffer after timing constants were changed.
void default_buffers(models::HardwareModel& hardware);

}  // namespace wafersim::test
