// Speed of the packet engine: work per CPU second of whole simulations, one core, elaboration included.
#include <benchmark/benchmark.h>

#include <cmath>
#include <systemc>

#include "base/random.h"
#include "bench/child_run.h"
#include "models/hardware.h"
#include "sim/simulation.h"
#include "topology/routing.h"
#include "workloads/collectives.h"
#include "workloads/flow_trace.h"

namespace wafersim::bench {
namespace {

/// 1 GHz, 64 B/cycle, R = 2, L = 4, as wafer-2048 but for the packet size.
models::HardwareModel hardware(Bytes packet_bytes) {
  models::HardwareModel model;
  model.clock.hertz = Rational(1'000'000'000);
  model.array = {1, 1};
  model.arrays = Rational(1);
  model.matrix_flops_per_cycle = Rational(2);
  model.vector_flops_per_cycle = Rational(1);
  model.sram_capacity = Bytes{1} << 60;
  model.routing = "xy";
  model.virtual_channels = 2;
  model.packet_bytes = packet_bytes;
  model.link_bytes_per_cycle = model.injection_bytes_per_cycle = model.ejection_bytes_per_cycle = Rational(64);
  model.router_cycles = 2;
  model.link_cycles = 4;
  model.credit_cycles = 4;
  model.vc_buffer_bytes = models::default_vc_buffer(packet_bytes, model.link_bytes_per_cycle, 2, 4, 4);
  return model;
}

sim::Measurements simulate(const topology::Mesh& mesh, const models::HardwareModel& model, const workloads::Trace& trace) {
  const auto routing = topology::make_routing("xy", mesh);
  sim::SimulationOptions options;
  options.record_steps = false;
  sim::Simulation simulation(mesh, *routing, model, trace, options);
  return simulation.run();
}

void report(benchmark::State& state, const ChildResult& result) {
  state.SetIterationTime(result.cpu_seconds);
  state.counters["packet_hops"] = static_cast<double>(result.packet_hops);
  state.counters["hops_per_s"] = static_cast<double>(result.packet_hops) / result.cpu_seconds;
  state.counters["events"] = static_cast<double>(result.events);
  state.counters["messages"] = static_cast<double>(result.messages);
  state.counters["cycles"] = static_cast<double>(result.cycles);
  state.counters["peak_MiB"] = static_cast<double>(result.peak_rss_bytes) / (1 << 20);
}

/// Packet-hops of one run, so many that elaboration does not count.
constexpr std::uint64_t kHops = 20'000'000;

/// Every tile sends messages of 16 packets to uniformly random tiles, at `percent` of the load at which the bisection
/// saturates under XY (4/k flits per tile and cycle for k columns).
void uniform(benchmark::State& state) {
  const int rows = static_cast<int>(state.range(0));
  const int cols = static_cast<int>(state.range(1));
  const auto percent = static_cast<double>(state.range(2));
  for (auto _ : state) {
    report(state, run_in_child([&] {
             const topology::Mesh mesh({{rows, cols}, {}, {}});
             const models::HardwareModel model = hardware(512);
             RandomStream random(1, "uniform");
             const Bytes bytes = 16 * 512;
             const double saturation = 4.0 / cols;  // link widths per tile
             const double interval = static_cast<double>(bytes) / 64.0 / (saturation * percent / 100.0);
             const std::uint64_t hops_of_one = mesh.tile_count() * 16ULL * static_cast<unsigned>(rows + cols) / 3;
             const std::uint64_t per_tile = std::max<std::uint64_t>(1, kHops / hops_of_one);
             std::vector<workloads::Flow> flows;
             for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
               double time = random.unit() * interval;
               for (std::uint64_t i = 0; i < per_tile; ++i) {
                 flows.push_back({tile, static_cast<TileId>(random.below(mesh.tile_count())), bytes, static_cast<Cycle>(time)});
                 time += 2 * interval * random.unit();
               }
             }
             return simulate(mesh, model, workloads::flow_trace(flows));
           }));
  }
}
BENCHMARK(uniform)
    ->Args({16, 16, 30})->Args({16, 16, 60})->Args({32, 64, 30})->Args({32, 64, 60})->Args({160, 160, 30})->Args({256, 256, 30})
    ->ArgNames({"rows", "cols", "load"})->Unit(benchmark::kSecond)->UseManualTime()->Iterations(1);

/// A member's view of its row (or column) of a square of `side` tiles.
workloads::Group line_group(int side, int rank, bool row) {
  const topology::Shape shape = row ? topology::Shape{1, side} : topology::Shape{side, 1};
  const auto first_peer = static_cast<std::uint32_t>(row ? 0 : side);
  return {workloads::Axis::dp, side, rank, shape, topology::row_major(shape), first_peer};
}

/// The steps of a hierarchical all-reduce as the tiles of a column (row) share them.
struct HierarchicalSteps {
  std::vector<std::uint32_t> scatter;  ///< by column
  std::vector<std::uint32_t> reduce;   ///< by row
  std::vector<std::uint32_t> gather;   ///< by column
};

HierarchicalSteps hierarchical_steps(workloads::Trace& trace, int side, Bytes chunk) {
  using workloads::Collective;
  const Bytes shard = chunk / static_cast<Bytes>(side);
  HierarchicalSteps steps;
  for (int rank = 0; rank < side; ++rank) {
    const workloads::Group row = line_group(side, rank, true);
    const workloads::Group column = line_group(side, rank, false);
    workloads::StepBuilder scatter(trace, "reduce_scatter");
    workloads::reduce_scatter(scatter, row, Collective::line, {chunk, chunk / 4, scatter.tensor("gradients")}, {});
    steps.scatter.push_back(scatter.finish());
    workloads::StepBuilder reduce(trace, "all_reduce");
    workloads::all_reduce(reduce, column, Collective::line, {shard, shard / 4, reduce.tensor("gradients")}, {});
    steps.reduce.push_back(reduce.finish());
    workloads::StepBuilder gather(trace, "all_gather");
    workloads::all_gather(gather, row, Collective::line, {chunk, chunk / 4, gather.tensor("gradients")}, {});
    steps.gather.push_back(gather.finish());
  }
  return steps;
}

/// The trace of a hierarchical all-reduce over side x side tiles, one chunk after the other: reduce-scatter in the rows,
/// all-reduce in the columns, all-gather in the rows.
workloads::Trace hierarchical_all_reduce(int side, Bytes bytes, int chunks) {
  workloads::Trace trace;
  trace.statics.emplace_back();
  const HierarchicalSteps steps = hierarchical_steps(trace, side, bytes / static_cast<Bytes>(chunks));
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const auto at = [](const std::vector<std::uint32_t>& of, int rank) { return of[static_cast<std::size_t>(rank)]; };
      workloads::TileBinding binding;
      binding.tile = static_cast<TileId>(y * side + x);
      binding.program = static_cast<std::uint32_t>(trace.programs.size());
      binding.first_peer = static_cast<std::uint32_t>(trace.peers.size());
      binding.peer_count = static_cast<std::uint32_t>(2 * side);
      for (int i = 0; i < side; ++i) trace.peers.push_back(static_cast<TileId>(y * side + (x + i) % side));
      for (int i = 0; i < side; ++i) trace.peers.push_back(static_cast<TileId>((y + i) % side * side + x));
      workloads::Program program;
      for (int c = 0; c < chunks; ++c) {
        for (const std::uint32_t step_template : {at(steps.scatter, x), at(steps.reduce, y), at(steps.gather, x)}) {
          workloads::Step step;
          step.step_template = step_template;
          step.microbatch = c;
          if (!program.steps.empty()) {
            step.first_wait = static_cast<std::uint32_t>(program.waits.size());
            step.wait_count = 1;
            program.waits.push_back(static_cast<std::uint32_t>(program.steps.size() - 1));
          }
          program.steps.push_back(step);
        }
      }
      trace.programs.push_back(std::move(program));
      trace.tiles.push_back(binding);
    }
  }
  return trace;
}

/// All-reduce of 64 MiB over 64x64 tiles in 4 chunks; a message is one packet.
void all_reduce_64x64(benchmark::State& state) {
  for (auto _ : state) {
    report(state, run_in_child([] {
             const topology::Mesh mesh({{64, 64}, {}, {}});
             return simulate(mesh, hardware(256 << 10), hierarchical_all_reduce(64, 64ULL << 20, 4));
           }));
  }
}
BENCHMARK(all_reduce_64x64)->Unit(benchmark::kSecond)->UseManualTime()->Iterations(1);

/// 1024 tiles x 50 messages, sizes log-uniform in 1 KiB .. 1 MiB, one packet each, 1 to 100 us apart, on a 32x32 mesh.
void random_messages_1024(benchmark::State& state) {
  for (auto _ : state) {
    report(state, run_in_child([] {
             const topology::Mesh mesh({{32, 32}, {}, {}});
             RandomStream random(1, "random_messages");
             std::vector<workloads::Flow> flows;
             for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
               Cycle time = 0;
               for (int i = 0; i < 50; ++i) {
                 time += 1'000 + random.below(99'000);
                 const auto bytes = static_cast<Bytes>(1024.0 * std::exp2(10.0 * random.unit()));
                 flows.push_back({tile, static_cast<TileId>(random.below(mesh.tile_count())), bytes, time});
               }
             }
             return simulate(mesh, hardware(1 << 20), workloads::flow_trace(flows));
           }));
  }
}
BENCHMARK(random_messages_1024)->Unit(benchmark::kSecond)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace wafersim::bench

int sc_main(int argc, char* argv[]) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
