// Speed of the flit engine: uniform traffic of single flits in BookSim2's configuration (5-stage routers, four virtual
// channels of eight flits), CPU time of one core.
#include <benchmark/benchmark.h>

#include "sim/traffic.h"
#include "topology/routing.h"

namespace wafersim::bench {
namespace {

models::HardwareModel booksim_hardware() {
  models::HardwareModel model;
  model.clock.hertz = Rational(1'000'000'000);
  model.fidelity = models::Fidelity::flit;
  model.routing = "xy";
  model.virtual_channels = 4;
  model.link_bytes_per_cycle = model.injection_bytes_per_cycle = model.ejection_bytes_per_cycle = Rational(4);
  model.nic_ports = models::NicPorts::single;
  model.injection_cycles = model.ejection_cycles = 1;
  model.flit.flit_bytes = 4;
  model.flit.vc_buffer_flits = 8;
  model.flit.stages = models::stages_of(models::PipelinePreset::p5);
  return model;
}

/// Flit-hops of one run.
constexpr double kHops = 10'000'000;
/// Uniform traffic saturates at this part of the ideal 4/k flits per tile and cycle.
constexpr double kSaturation = 0.84;

void flit_uniform(benchmark::State& state) {
  const int k = static_cast<int>(state.range(0));
  const double load = static_cast<double>(state.range(1)) / 100.0 * kSaturation * 4.0 / k;
  const topology::Mesh mesh({{k, k}, {}, {}});
  const auto routing = topology::make_routing("xy", mesh);
  const models::HardwareModel model = booksim_hardware();
  workloads::TrafficSpec spec;
  spec.load = Rational(static_cast<std::int64_t>(load * 1e6), 1'000'000);
  const double hops_per_cycle = load * k * k * 2.0 * k / 3.0;
  spec.warmup = Duration::of_cycles(0);
  spec.measurement = Duration::of_cycles(static_cast<std::int64_t>(kHops / hops_per_cycle));
  spec.drain = Duration::of_cycles(0);
  for (auto _ : state) {
    const sim::TrafficMeasurement run = sim::run_traffic(mesh, *routing, model, spec);
    state.SetIterationTime(run.cpu_seconds);
    state.counters["flit_hops"] = static_cast<double>(run.flit_hops);
    state.counters["flit_hops_per_s"] = static_cast<double>(run.flit_hops) / run.cpu_seconds;
    state.counters["router_cycles_per_s"] = static_cast<double>(run.router_cycles) / run.cpu_seconds;
    state.counters["cycles"] = static_cast<double>(run.cycles);
  }
}
BENCHMARK(flit_uniform)
    ->ArgsProduct({{8, 16, 32, 45}, {10, 50, 90}})
    ->ArgNames({"k", "percent"})
    ->Unit(benchmark::kSecond)
    ->UseManualTime()
    ->Iterations(1);

}  // namespace
}  // namespace wafersim::bench
