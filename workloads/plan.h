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

/// A tile's rank along each axis.
struct Ranks {
  int tp = 0;
  int tatp = 0;
  int sp = 0;
  int ep = 0;
  int dp = 0;
  int pp = 0;
  int& at(Axis axis);
  int at(Axis axis) const;
  auto operator<=>(const Ranks&) const = default;
};

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

enum class Precision { fp32, bf16, fp16, fp8 };
/// Bytes of one activation or weight.
Bytes element_bytes(Precision precision);

/// adamw_8bit: moments of one byte each, in blocks with a common scale (Dettmers et al. 2022).
enum class Optimizer { none, adam, adamw_8bit, sgd };
enum class PipelineSchedule { gpipe, one_f_one_b, interleaved, zb_h1, zb_h2 };
const char* to_string(PipelineSchedule schedule);
/// Where the token embedding's table is: cut over the tensor-parallel ranks, or whole on each.
enum class EmbeddingTable { sharded, replicated };
/// How the sequence is cut beyond the other axes. `megatron`: the residual stream over tp. `ulysses`: tokens, with
/// an exchange for heads around attention (Jacobs et al. 2023). `ring`: tokens, with keys and values that visit every
/// rank (Liu et al. 2023).
enum class SequenceParallel { none, megatron, ulysses, ring };
/// Which operand of a product travels along a tensor stream. `inputs`: tokens are gathered as they are used and partial
/// sums flow back to their owners. `automatic`: see streams_inputs().
enum class StreamOperand { weights, inputs, automatic };
/// What tensor-stream ranks exchange for attention, when their tokens are cut: keys and values stream, or heads are
/// exchanged for tokens.
enum class StreamAttention { stream_kv, heads };
/// How blocks travel. `flood`: one hop a round, outward in both directions. `wrapped_ring`: one way, the last member
/// sends to the first. `interleaved_ring`: one way round a ring whose neighbours are at most two places apart
/// (MeshGEMM).
enum class StreamVariant { flood, wrapped_ring, interleaved_ring };
/// How a block passes the members between two that are not neighbours: through the routers, or member by member.
enum class StreamRelay { cut_through, store_and_forward };

/// The options of the tensor-stream axis.
struct StreamSpec {
  StreamOperand operand = StreamOperand::weights;
  StreamAttention attention = StreamAttention::stream_kv;
  StreamVariant variant = StreamVariant::flood;
  StreamRelay relay = StreamRelay::cut_through;
};
enum class Collective { automatic, ring, line, rows_cols, tree, halving_doubling, direct, multicast, router_multicast };
const char* to_string(Collective collective);

/// How an axis lands on the mesh. `standard`: a snake for pp and tatp, a block for the others. `optimized`: left to
/// choose_mapping(), which replaces it by one of the others before a plan is laid out.
enum class Placement { standard, optimized, row, col, block, snake, strided };
struct AxisMapping {
  Placement placement = Placement::standard;
  std::optional<topology::Shape> shape;
  bool operator==(const AxisMapping&) const = default;
};

const char* to_string(Placement placement);
/// As a scenario writes it: "snake 4x8", "row", "default".
std::string to_string(const AxisMapping& mapping);

/// tp, tatp, sp, ep, pp, dp.
std::vector<Axis> default_order();

/// Whose degrees of tp and tatp divide the tiles of a model group: the plan's own, which cut the residual stream between layers,
/// embedding and head, or those of one of a layer's operators.
enum class Cut : std::uint8_t { plan, attention, mlp };
inline constexpr int kCuts = 3;
const char* to_string(Cut cut);

/// Degrees of an operator that divide the tiles of a model group in another way than the plan's own. Their product is the same.
struct OperatorDegrees {
  int tp = 1;
  int tatp = 1;
  bool operator==(const OperatorDegrees&) const = default;
};

struct PlanSpec {
  int dp = 1;
  int tp = 1;
  int tatp = 1;
  StreamSpec stream;
  int pp = 1;
  int ep = 1;  ///< ranks that share out the experts: so many replicas in a row; divides dp
  SequenceParallel sp = SequenceParallel::none;
  int sp_degree = 1;  ///< of ulysses and ring, ranks of their own; megatron uses those of tp
  std::optional<OperatorDegrees> attention{};  ///< of q, k, v, attention and its output; nothing: tp and tatp of the plan
  std::optional<OperatorDegrees> mlp{};
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int virtual_stages = 1;                     ///< chunks of layers on each stage; more than one with interleaved
  std::vector<int> layers_per_stage;          ///< by virtual stage; empty: as even as can be
  EmbeddingTable embedding = EmbeddingTable::sharded;
  /// What replicas share out among themselves: 0 nothing, 1 optimizer states, 2 gradients too, 3 parameters too.
  int zero = 0;
  bool pp_transfer_full = false;              ///< without SP: every rank sends the whole boundary tensor
  std::map<Axis, AxisMapping> mapping;        ///< axes left out are `standard`
  std::vector<Axis> order = default_order();  ///< nesting from the inside out
  bool order_given = false;                   ///< otherwise choose_mapping() may change the order
  Collective collectives = Collective::automatic;
  int collective_chunks = 1;  ///< pieces into which each collective's vector is cut
  int overlap_near = 1;       ///< chunks into which a block of a tensor stream is cut
  int overlap_far = 1;        ///< steps by which the gathers of zero 3 are issued ahead
  bool shards_optimizer() const { return zero >= 1 && dp > 1; }
  bool shards_gradients() const { return zero >= 2 && dp > 1; }
  bool shards_parameters() const { return zero >= 3 && dp > 1; }
  int tiles_used() const { return dp * tp * tatp * sp_degree * pp; }
  /// Ranks of an axis as tiles are numbered and laid out. The replicas are those of ep times those of dp, ep inside: of
  /// Axis::dp there are dp / ep, which hold the same experts.
  int degree(Axis axis) const;
  /// tp and tatp as attention or the MLP has them, or the plan's own.
  OperatorDegrees degrees(Cut cut) const;
  /// Some operator has other degrees than the plan.
  bool splits_operators() const;
  int replica(const Ranks& ranks) const { return ranks.dp * ep + ranks.ep; }
  /// The entry of `mapping`, or what an axis without one has.
  AxisMapping axis_mapping(Axis axis) const;
};

struct TrainingSpec {
  std::int64_t global_batch = 1;  ///< sequences
  std::int64_t microbatch = 1;    ///< sequences
  Precision precision = Precision::bf16;
  std::optional<Precision> gradient_precision;  ///< of gradients kept and summed; nothing: see gradient_bytes()
  Optimizer optimizer = Optimizer::adam;
  models::Recompute recompute = models::Recompute::none;
  /// With full recomputation: consecutive layers of a stage's chunk that keep one input together; 1 otherwise.
  int recompute_every = 1;
  bool clip_grad = true;  ///< global gradient-norm all-reduce before the optimizer
  int iterations = 1;
  std::int64_t microbatches(int dp) const {
    return global_batch / (static_cast<std::int64_t>(dp) * microbatch);
  }
};

/// The plan in which all has the degrees of `cut`.
PlanSpec cut_plan(const PlanSpec& plan, Cut cut);

/// Bytes of one gradient of a weight: of `gradient_precision`, by default that of the weights, bf16 with fp8.
Bytes gradient_bytes(const TrainingSpec& training);

/// Where each memory class lives on hardware with DRAM. `automatic`: see choose_layout().
enum class MemoryPlace { automatic, sram, dram };
using PlacementSpec = std::map<MemoryClass, MemoryPlace>;

/// Throws PlanError with the nearest valid values when the plan cannot cut the model or the batch: tp >
/// heads, pp > layers, global_batch mod (dp * microbatch) != 0, more tiles than the wafer has, a degree
/// below 1.
void validate_plan(const PlanSpec& plan, const TrainingSpec& training, const models::TransformerSpec& model,
                   const topology::Mesh& mesh);

}  // namespace wafersim::workloads
