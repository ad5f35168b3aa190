#include "tests/sim/machine.h"

namespace wafersim::test {

models::HardwareModel plain_hardware(Bytes packet_bytes, const Rational& link_bytes_per_cycle, Cycle router_cycles,
                                     Cycle link_cycles) {
  models::HardwareModel hardware;
  hardware.clock.hertz = Rational(1'000'000'000);
  hardware.array = {1, 1};
  hardware.arrays = Rational(1);
  hardware.matrix_flops_per_cycle = Rational(2);
  hardware.vector_flops_per_cycle = Rational(1);
  hardware.sram_capacity = Bytes{1} << 60;
  hardware.routing = "xy";
  hardware.virtual_channels = 2;
  hardware.packet_bytes = packet_bytes;
  hardware.link_bytes_per_cycle = link_bytes_per_cycle;
  hardware.injection_bytes_per_cycle = link_bytes_per_cycle;
  hardware.ejection_bytes_per_cycle = link_bytes_per_cycle;
  hardware.router_cycles = router_cycles;
  hardware.link_cycles = link_cycles;
  hardware.credit_cycles = link_cycles;
  default_buffers(hardware);
  return hardware;
}

void default_buffers(models::HardwareModel& hardware) {
  hardware.vc_buffer_bytes =
      models::default_vc_buffer(hardware.packet_bytes, hardware.link_bytes_per_cycle, hardware.router_cycles,
                                hardware.link_cycles, hardware.credit_cycles);
}

FlowResult run_flows(const topology::Mesh& mesh, const models::HardwareModel& hardware, const std::vector<Flow>& flows,
                     const std::string& routing, bool shuffle) {
  return run_flows(mesh, *topology::make_routing_policy(routing, mesh), hardware, flows, shuffle);
}

FlowResult run_flows(const topology::Mesh& mesh, const topology::RoutingPolicy& policy, const models::HardwareModel& hardware,
                     const std::vector<Flow>& flows, bool shuffle) {
  const workloads::Trace trace = workloads::flow_trace(flows);
  FlowResult result;
  result.messages.resize(flows.size());
  sim::SimulationOptions options;
  options.shuffle = shuffle;
  options.on_message = [&](const sim::MessageRecord& record) {
    result.messages[record.key & 0xffffff] = record;  // the channel is the lowest 24 bits of a key
  };
  sim::Simulation simulation(mesh, policy, hardware, trace, std::move(options));
  result.measurements = simulation.run();
  return result;
}

sim::Measurements run_trace(const topology::Mesh& mesh, const models::HardwareModel& hardware, const workloads::Trace& trace,
                            sim::SimulationOptions options, const std::string& routing) {
  const auto policy = topology::make_routing_policy(routing, mesh);
  sim::Simulation simulation(mesh, *policy, hardware, trace, std::move(options));
  return simulation.run();
}

}  // namespace wafersim::test
