#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/energy.h"
#include "base/product.h"
#include "models/hardware.h"
#include "models/transformer.h"
#include "sim/measurements.h"
#include "topology/mesh.h"
#include "workloads/lowering.h"
#include "workloads/plan.h"

namespace wafersim::analysis {

/// Where the time of the used tiles went, as fractions of (used tiles x cycles of the run). They sum to 1.
struct Breakdown {
  double compute = 0;
  std::array<double, workloads::kAxes> exposed{};  ///< exposed communication by axis
  double bubble = 0;
  double memory_stall = 0;
  double idle = 0;
  double exposed_total() const;
  double total() const { return compute + exposed_total() + bubble + memory_stall + idle; }
};

/// What the run held in memory, and the bound that was computed before it.
struct MemorySummary {
  bool fits = false;         ///< no tile held more than its SRAM or its share of DRAM
  Bytes capacity_bytes = 0;  ///< of a tile: SRAM plus its share of DRAM
  Bytes sram_capacity_bytes = 0;
  Bytes dram_capacity_bytes = 0;
  Bytes peak_bytes = 0;  ///< of the fullest tile
  Bytes peak_sram_bytes = 0;
  Bytes peak_dram_bytes = 0;
  std::array<Bytes, workloads::kMemoryClasses> peak_by_class{};  ///< largest over tiles, class by class
  TileId peak_tile = kNoTile;                                    ///< the fullest tile; the lowest of several
  Bytes bound_bytes = 0;                                         ///< what `check` promised not to be passed
  bool bound_fits = false;
};

/// A link that carried much.
struct Hotspot {
  topology::LinkId link = 0;
  std::string name;
  Bytes bytes = 0;
  double utilization = 0;                                   ///< busy cycles / cycles of the run
  Cycle queue_cycles = 0;                                   ///< sum over packets of (grant - first bid)
  std::array<Bytes, workloads::kAxes + 1> bytes_by_axis{};  ///< the last is Axis::none
};

struct NetworkSummary {
  std::uint64_t packets = 0;
  std::uint64_t packet_hops = 0;
  std::uint64_t messages = 0;
  double max_link_utilization = 0;
  double mean_link_utilization = 0;  ///< over all live links
  std::vector<Hotspot> hotspots;     ///< at most ten, hottest first; links that carried nothing are left out
};

struct IterationSummary {
  int planned = 1;
  int completed = 0;
  std::vector<Cycle> ends;  ///< one for each completed iteration
  /// End of the last completed one / their number; absent when none completed.
  std::optional<double> mean_cycles;
  /// From the start of the last iteration but one to the start of the last.
  std::optional<Cycle> steady_state_cycles;
};

/// What a run amounts to. Fractions are 0..1; rates are per second of simulated time.
struct RunSummary {
  Cycle cycles = 0;  ///< length of the run
  double seconds = 0;
  std::uint64_t tiles_used = 0;
  std::uint64_t tiles_total = 0;  ///< live tiles of the wafer
  IterationSummary iterations;
  Product model_flops_per_iteration;            ///< models::model_flops of a sequence x the global batch
  std::uint64_t matrix_flops = 0;               ///< executed, recompute included

  /// Over the completed iterations; absent when none completed.
  std::optional<double> tokens_per_second;
  std::optional<double> mfu;        ///< model FLOPs / (seconds x matrix peak of the used tiles)
  std::optional<double> mfu_wafer;  ///< the same over all live tiles
  /// Executed GEMM FLOPs, recompute included and attention scores counted in full as in mfu, / (seconds of the run x matrix
  /// peak of the used tiles).
  double hfu = 0;

  double compute_utilization = 0;  ///< the compute fraction of the breakdown
  Breakdown breakdown;
  double communication_share = 0;  ///< sum of the exposed fractions
  /// 1 - exposed cycles / cycles with a message in flight to or from the tile, over all used tiles; absent
  /// when no message was sent.
  std::optional<double> hidden_communication;
  MemorySummary memory;
  NetworkSummary network;
  std::optional<EnergySummary> energy;  ///< absent when no part has a figure
};

struct SummaryInput {
  const models::TransformerSpec& model;
  const workloads::TrainingSpec& training;
  const models::HardwareModel& hardware;
  const topology::Mesh& mesh;
  const workloads::MemoryBound& memory;
  const sim::Measurements& measurements;
};

/// What a prediction is summarized from.
struct PredictedInput {
  const models::TransformerSpec& model;
  const workloads::TrainingSpec& training;
  const models::HardwareModel& hardware;
  const topology::Mesh& mesh;
  const workloads::MemoryBound& memory;
  const workloads::Trace& trace;
  Cycle cycles = 0;
  const std::vector<Cycle>& iteration_ends;
  const Breakdown& breakdown;
};

/// What so many iterations train on.
std::uint64_t tokens_of(const models::TransformerSpec& model, const workloads::TrainingSpec& training, int iterations);

/// The measures that a prediction has: memory bounds instead of what was held, no network and no energy.
RunSummary summarize(const PredictedInput& input);

/// Derives the measures of a run. Fractions come from integer sums, so equal measurements give equal bits.
/// Throws InternalError when the cycles of a tile do not sum up to the length of the run.
RunSummary summarize(const SummaryInput& input);

}  // namespace wafersim::analysis
