#include "analysis/summary.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "topology/mesh_metrics.h"

namespace wafersim::analysis {
namespace {

constexpr std::size_t kHotspots = 10;

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

double ratio(std::uint64_t part, std::uint64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

/// The cycles of all used tiles, category by category.
sim::CycleBreakdown add_up(const sim::Measurements& measurements) {
  sim::CycleBreakdown sum;
  for (const sim::TileMeasurement& tile : measurements.tiles) {
    require_invariant(tile.cycles.total() == measurements.cycles,
                      "the cycles of a tile do not sum up to the length of the run");
    sum.compute += tile.cycles.compute;
    for (std::size_t axis = 0; axis < sum.exposed.size(); ++axis)
      sum.exposed[axis] += tile.cycles.exposed[axis];
    sum.bubble += tile.cycles.bubble;
    sum.memory_stall += tile.cycles.memory_stall;
    sum.idle += tile.cycles.idle;
  }
  return sum;
}

Breakdown fractions(const sim::CycleBreakdown& sum) {
  Breakdown result;
  const Cycle total = sum.total();
  if (total == 0) {  // a run of no cycles did nothing
    result.idle = 1;
    return result;
  }
  result.compute = ratio(sum.compute, total);
  for (std::size_t axis = 0; axis < sum.exposed.size(); ++axis)
    result.exposed[axis] = ratio(sum.exposed[axis], total);
  result.bubble = ratio(sum.bubble, total);
  result.memory_stall = ratio(sum.memory_stall, total);
  result.idle = ratio(sum.idle, total);
  return result;
}

std::optional<double> hidden_share(const sim::CycleBreakdown& sum, const sim::Measurements& measurements) {
  Cycle communicating = 0;
  for (const sim::TileMeasurement& tile : measurements.tiles) communicating += tile.communicating;
  if (communicating == 0) return std::nullopt;
  return 1.0 - ratio(sum.exposed_total(), communicating);
}

MemorySummary memory_of(const SummaryInput& input) {
  MemorySummary result;
  result.sram_capacity_bytes = input.memory.sram_capacity;
  result.dram_capacity_bytes = input.memory.dram_capacity;
  result.capacity_bytes = result.sram_capacity_bytes + result.dram_capacity_bytes;
  result.bound_bytes = input.memory.peak_bytes;
  result.bound_fits = input.memory.fits;
  for (const sim::TileMeasurement& tile : input.measurements.tiles) {
    if (result.peak_tile == kNoTile || tile.peak_bytes > result.peak_bytes) {
      result.peak_tile = tile.tile;
      result.peak_bytes = tile.peak_bytes;
    }
    result.peak_sram_bytes = std::max(result.peak_sram_bytes, tile.peak_sram_bytes);
    result.peak_dram_bytes = std::max(result.peak_dram_bytes, tile.peak_dram_bytes);
    for (std::size_t i = 0; i < result.peak_by_class.size(); ++i) {
      result.peak_by_class[i] = std::max(result.peak_by_class[i], tile.peak_by_class[i]);
    }
  }
  result.fits = result.peak_sram_bytes <= result.sram_capacity_bytes &&
                result.peak_dram_bytes <= result.dram_capacity_bytes;
  return result;
}

bool hotter(const sim::LinkMeasurement& a, const sim::LinkMeasurement& b) {
  if (a.busy != b.busy) return a.busy > b.busy;
  if (a.bytes != b.bytes) return a.bytes > b.bytes;
  return a.link < b.link;
}

std::vector<Hotspot> hotspots_of(const sim::Measurements& measurements, const topology::Mesh& mesh) {
  std::vector<sim::LinkMeasurement> busy;
  std::copy_if(measurements.links.begin(), measurements.links.end(), std::back_inserter(busy),
               [](const sim::LinkMeasurement& link) { return link.packets > 0; });
  const std::size_t count = std::min(kHotspots, busy.size());
  std::partial_sort(busy.begin(), busy.begin() + static_cast<std::ptrdiff_t>(count), busy.end(), hotter);
  std::vector<Hotspot> result;
  for (std::size_t i = 0; i < count; ++i) {
    const sim::LinkMeasurement& link = busy[i];
    result.push_back({link.link, mesh.link_name(link.link), link.bytes, ratio(link.busy, measurements.cycles),
                      link.queued, link.bytes_by_axis});
  }
  return result;
}

NetworkSummary network_of(const SummaryInput& input) {
  const sim::Measurements& measurements = input.measurements;
  NetworkSummary result;
  result.packets = measurements.packets;
  result.packet_hops = measurements.packet_hops;
  result.messages = measurements.messages;
  Cycle busiest = 0;
  Cycle busy = 0;
  for (const sim::LinkMeasurement& link : measurements.links) {
    busiest = std::max(busiest, link.busy);
    busy += link.busy;
  }
  result.max_link_utilization = ratio(busiest, measurements.cycles);
  result.mean_link_utilization =
      ratio(static_cast<double>(busy),
            static_cast<double>(measurements.cycles) * static_cast<double>(measurements.links.size()));
  result.hotspots = hotspots_of(measurements, input.mesh);
  return result;
}

/// The start of each iteration: its earliest step. Iterations that have not begun are absent.
std::vector<Cycle> iteration_starts(const sim::Measurements& measurements, int planned) {
  std::vector<Cycle> starts(static_cast<std::size_t>(std::max(planned, 0)), kNever);
  for (const sim::StepMeasurement& step : measurements.steps) {
    const auto iteration = static_cast<std::size_t>(step.iteration);
    if (iteration < starts.size()) starts[iteration] = std::min(starts[iteration], step.start);
  }
  starts.erase(std::find(starts.begin(), starts.end(), kNever), starts.end());
  return starts;
}

IterationSummary iterations_of(const SummaryInput& input) {
  IterationSummary result;
  result.planned = input.training.iterations;
  result.ends = input.measurements.iteration_ends;
  result.completed = static_cast<int>(result.ends.size());
  if (!result.ends.empty()) {
    result.mean_cycles = static_cast<double>(result.ends.back()) / static_cast<double>(result.ends.size());
  }
  const std::vector<Cycle> starts = iteration_starts(input.measurements, result.planned);
  if (starts.size() > 1) result.steady_state_cycles = starts.back() - starts[starts.size() - 2];
  return result;
}

/// Rates over the completed iterations. Seconds cancel out of the FLOP utilizations, so they are taken in
/// cycles.
template <class Input>
void set_rates(const Input& input, RunSummary& summary) {
  const double peak = input.hardware.matrix_flops_per_cycle.to_double();
  const double used_peak = peak * static_cast<double>(summary.tiles_used);
  summary.hfu = ratio(static_cast<double>(summary.matrix_flops) * models::full_score_factor(input.model),
                      static_cast<double>(summary.cycles) * used_peak);
  if (!summary.iterations.mean_cycles || *summary.iterations.mean_cycles <= 0) return;
  const double cycles = *summary.iterations.mean_cycles;
  const double tokens =
      static_cast<double>(input.training.global_batch) * static_cast<double>(input.model.sequence);
  const double flops = summary.model_flops_per_iteration.to_double();
  summary.tokens_per_second = tokens * input.hardware.clock.hertz.to_double() / cycles;
  summary.mfu = ratio(flops, cycles * used_peak);
  summary.mfu_wafer = ratio(flops, cycles * peak * static_cast<double>(summary.tiles_total));
}

}  // namespace

std::uint64_t tokens_of(const models::TransformerSpec& model, const workloads::TrainingSpec& training, int iterations) {
  return static_cast<std::uint64_t>(training.global_batch) * static_cast<std::uint64_t>(model.sequence) *
         static_cast<std::uint64_t>(iterations);
}

double Breakdown::exposed_total() const { return std::accumulate(exposed.begin(), exposed.end(), 0.0); }

RunSummary summarize(const SummaryInput& input) {
  const sim::Measurements& measurements = input.measurements;
  RunSummary summary;
  summary.cycles = measurements.cycles;
  summary.seconds = input.hardware.seconds(measurements.cycles);
  summary.tiles_used = measurements.tiles.size();
  summary.tiles_total = topology::live_tiles(input.mesh);
  summary.iterations = iterations_of(input);
  summary.model_flops_per_iteration = {models::model_flops(input.model, 1),
                                       static_cast<std::uint64_t>(input.training.global_batch)};
  summary.matrix_flops = measurements.matrix_flops;
  set_rates(input, summary);

  const sim::CycleBreakdown sum = add_up(measurements);
  summary.breakdown = fractions(sum);
  summary.compute_utilization = summary.breakdown.compute;
  summary.communication_share = ratio(sum.exposed_total(), sum.total());
  summary.hidden_communication = hidden_share(sum, measurements);
  summary.memory = memory_of(input);
  summary.network = network_of(input);
  const bool simulated = input.hardware.fidelity != models::Fidelity::ideal;
  summary.energy = energy_of({input.hardware, input.mesh, measurements.tiles, measurements.links, measurements.cycles, simulated,
                              measurements.partial ? 0 : tokens_of(input.model, input.training, summary.iterations.completed)});
  return summary;
}

/// GEMM FLOPs of all programs, each as often as tiles run it.
std::uint64_t planned_matrix_flops(const workloads::Trace& trace) {
  std::vector<std::uint64_t> by_template;
  for (const workloads::StepTemplate& each : trace.templates) {
    std::uint64_t flops = 0;
    for (const workloads::Op& op : each.ops) {
      if (op.kind == workloads::OpKind::matrix) flops += trace.works[op.work].gemm.flops();
    }
    by_template.push_back(flops);
  }
  std::uint64_t total = 0;
  for (const workloads::TileBinding& tile : trace.tiles) {
    for (const workloads::Step& step : trace.programs[tile.program].steps) total += by_template[step.step_template];
  }
  return total;
}

RunSummary summarize(const PredictedInput& input) {
  RunSummary summary;
  summary.cycles = input.cycles;
  summary.seconds = input.hardware.seconds(input.cycles);
  summary.tiles_used = input.trace.tiles.size();
  summary.tiles_total = topology::live_tiles(input.mesh);
  summary.iterations.planned = input.training.iterations;
  summary.iterations.completed = static_cast<int>(input.iteration_ends.size());
  summary.iterations.ends = input.iteration_ends;
  summary.iterations.mean_cycles = static_cast<double>(input.cycles) / static_cast<double>(input.iteration_ends.size());
  summary.model_flops_per_iteration = {models::model_flops(input.model, 1),
                                       static_cast<std::uint64_t>(input.training.global_batch)};
  summary.matrix_flops = planned_matrix_flops(input.trace);
  set_rates(input, summary);
  summary.breakdown = input.breakdown;
  summary.compute_utilization = summary.breakdown.compute;
  summary.communication_share = summary.breakdown.exposed_total();
  summary.memory.sram_capacity_bytes = input.memory.sram_capacity;
  summary.memory.dram_capacity_bytes = input.memory.dram_capacity;
  summary.memory.capacity_bytes = input.memory.sram_capacity + input.memory.dram_capacity;
  summary.memory.bound_bytes = input.memory.peak_bytes;
  summary.memory.bound_fits = input.memory.fits;
  return summary;
}

}  // namespace wafersim::analysis
