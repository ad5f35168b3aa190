#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "models/hardware.h"
#include "models/transformer.h"
#include "topology/mesh.h"

namespace wafersim::workloads {

/// The axes of a plan, from the inside out in the default nesting. `none` marks traffic that belongs to no
/// axis.
enum class Axis : std::uint8_t { tp, tatp, sp, ep, dp, pp, none };
inline constexpr int kAxes = 6;
const char* to_string(Axis axis);

enum class MemoryClass : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  activations,
  stream_buffers,
  communication_buffers
};
inline constexpr int kMemoryClasses = 6;
const char* to_string(MemoryClass memory_class);

enum class Precision { fp32, bf16, fp16 };
/// Bytes of one activation or weight.
Bytes element_bytes(Precision precision);

enum class Optimizer { none, adam, sgd };
enum class PipelineSchedule { gpipe, one_f_one_b, interleaved, zb_h1, zb_h2 };
const char* to_string(PipelineSchedule schedule);
/// Where the token embedding's table is: cut over the tensor-parallel ranks, or whole on each.
enum class EmbeddingTable { sharded, replicated };
enum class SequenceParallel { none, megatron };
enum class Collective { automatic, ring, line, rows_cols, tree };
const char* to_string(Collective collective);

/// How an axis lands on the mesh.
enum class Placement { automatic, row, col, block, snake, strided };
struct AxisMapping {
  Placement placement = Placement::automatic;
  std::optional<topology::Shape> shape;
  bool operator==(const AxisMapping&) const = default;
};

/// tp, pp, dp.
std::vector<Axis> default_order();

struct PlanSpec {
  int dp = 1;
  int tp = 1;
  int pp = 1;
  SequenceParallel sp = SequenceParallel::none;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int virtual_stages = 1;                     ///< chunks of layers on each stage; more than one with interleaved
  std::vector<int> layers_per_stage;          ///< by virtual stage; empty: as even as can be
  EmbeddingTable embedding = EmbeddingTable::sharded;
  int zero = 0;                               ///< 0, or 1: optimizer states sharded over dp
  bool pp_transfer_full = false;              ///< without SP: every rank sends the whole boundary tensor
  std::map<Axis, AxisMapping> mapping;        ///< axes left out are automatic
  std::vector<Axis> order = default_order();  ///< nesting from the inside out
  Collective collectives = Collective::automatic;
  int collective_chunks = 1;  ///< pieces into which each collective's vector is cut
  int tiles_used() const { return dp * tp * pp; }
};

struct TrainingSpec {
  std::int64_t global_batch = 1;  ///< sequences
  std::int64_t microbatch = 1;    ///< sequences
  Precision precision = Precision::bf16;
  Optimizer optimizer = Optimizer::adam;
  models::Recompute recompute = models::Recompute::none;
  bool clip_grad = true;  ///< global gradient-norm all-reduce before the optimizer
  int iterations = 1;
  std::int64_t microbatches(int dp) const {
    return global_batch / (static_cast<std::int64_t>(dp) * microbatch);
  }
};

/// Where each memory class lives on hardware with DRAM. `automatic` fills SRAM in the order communication and
/// stream buffers, parameters, gradients, activations, optimizer, class by class, and puts the rest into
/// DRAM.
enum class MemoryPlace { automatic, sram, dram };
using PlacementSpec = std::map<MemoryClass, MemoryPlace>;

/// Throws PlanError with the nearest valid values when the plan cannot cut the model or the batch: tp >
/// heads, pp > layers, global_batch mod (dp * microbatch) != 0, more tiles than the wafer has, a degree
/// below 1.
void validate_plan(const PlanSpec& plan, const TrainingSpec& training, const models::TransformerSpec& model,
                   const topology::Mesh& mesh);

}  // namespace wafersim::workloads
