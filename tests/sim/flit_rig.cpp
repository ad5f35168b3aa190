#include "tests/sim/flit_rig.h"

#include <algorithm>
#include <tuple>

namespace wafersim::test {

models::HardwareModel booksim_hardware(const models::PipelineStages& stages, int virtual_channels, unsigned buffer_flits) {
  models::HardwareModel hardware;
  hardware.clock.hertz = Rational(1'000'000'000);
  hardware.fidelity = models::Fidelity::flit;
  hardware.routing = "xy";
  hardware.virtual_channels = virtual_channels;
  hardware.link_bytes_per_cycle = hardware.injection_bytes_per_cycle = hardware.ejection_bytes_per_cycle = Rational(4);
  hardware.nic_ports = models::NicPorts::single;
  hardware.injection_cycles = hardware.ejection_cycles = 1;
  hardware.router_cycles = static_cast<Cycle>(stages.cycles());
  hardware.flit.flit_bytes = 4;
  hardware.flit.vc_buffer_flits = buffer_flits;
  hardware.flit.stages = stages;
  return hardware;
}

models::PipelinePreset pipeline_named(const std::string& name) {
  if (name == "p3") return models::PipelinePreset::p3;
  return name == "p4" ? models::PipelinePreset::p4 : models::PipelinePreset::p5;
}

FlitRun run_packets(const topology::Mesh& mesh, const models::HardwareModel& hardware,
                    const std::vector<workloads::TracedPacket>& packets, const std::string& routing, bool shuffle) {
  FlitRun result;
  workloads::TrafficSpec spec;
  spec.drain = Duration::of_cycles(10'000'000);
  sim::TrafficOptions options;
  options.packets = &packets;
  options.shuffle = shuffle;
  options.on_packet = [&](const sim::DeliveredPacket& packet) { result.delivered.push_back(packet); };
  const auto policy = topology::make_routing_policy(routing, mesh);
  result.measurement = sim::run_traffic(mesh, *policy, hardware, spec, options);
  std::stable_sort(result.delivered.begin(), result.delivered.end(), [](const auto& a, const auto& b) {
    return std::tie(a.created, a.source) < std::tie(b.created, b.source);
  });
  return result;
}

std::vector<sim::TrafficMeasurement> run_seeds(const topology::Mesh& mesh, const models::HardwareModel& hardware,
                                               const workloads::TrafficSpec& spec, int seeds) {
  std::vector<sim::TrafficMeasurement> runs;
  const auto policy = topology::make_routing_policy(hardware.routing, mesh);
  for (int seed = 1; seed <= seeds; ++seed) {
    sim::TrafficOptions options;
    options.seed = static_cast<std::uint64_t>(seed);
    runs.push_back(sim::run_traffic(mesh, *policy, hardware, spec, options));
  }
  return runs;
}

MeanLoad mean_of(const std::vector<sim::TrafficMeasurement>& runs) {
  MeanLoad mean;
  const auto count = static_cast<double>(runs.size());
  for (const sim::TrafficMeasurement& one : runs) {
    mean.latency += one.latency.mean() / count;
    mean.accepted += one.accepted_load / count;
    mean.offered += one.offered_load / count;
    mean.stable = mean.stable && one.stable;
  }
  return mean;
}

MeanLoad run_load(const topology::Mesh& mesh, const models::HardwareModel& hardware, const workloads::TrafficSpec& spec,
                  int seeds) {
  return mean_of(run_seeds(mesh, hardware, spec, seeds));
}

int routers_between(const topology::Mesh& mesh, TileId from, TileId to) { return mesh.distance(from, to) + 1; }

}  // namespace wafersim::test
