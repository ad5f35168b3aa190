#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "models/cost.h"
#include "topology/mesh.h"
#include "workloads/meaning.h"
#include "workloads/memory_layout.h"
#include "workloads/plan.h"

/// The trace is the waist of wafersim: what is to be done, without cycles; below it nobody knows of
/// transformers.
///
/// A `StepTemplate` is a small DAG of operations. A `Program` is a sequence of `Step`s, each an instance of a
/// template. A `TileBinding` says which tile runs which program, and who its peers are. Templates and
/// programs are shared by all tiles of a role, so a trace stays small.
///
/// How a tile executes its program:
///  * Steps open in order, each when the steps it waits for have delivered their results; several may be open
///  at once.
///  * Matrix and vector operations issue in program order on their engine, one at a time; a reduction takes
///  the vector engine
///    as soon as its operands are there, oldest first. Sends, receives, allocations and frees act as soon as
///    their dependencies are complete.
///  * A multicast is a send to several peers whose packets the routers copy; each of them receives it as a message of its
///    own.
///  * A `streamed` message is used as it comes in: its receiver's core stores or adds each packet, and is done with it a
///    little after it has arrived. A send or multicast that `follows` does not wait for those of its dependencies that are
///    streamed receives, but for what these wait for; its bytes leave as the same bytes of all of them have come in: a
///    pass-on of what comes, or of its sum with the tile's own values.
///  * A step's result is there when all its operations are complete that are not `detached`.
namespace wafersim::workloads {

enum class OpKind : std::uint8_t { matrix, vector, reduce, send, receive, allocate, free, multicast };
const char* to_string(OpKind kind);

/// What an operation makes or a message carries.
struct Operand {
  std::uint32_t tensor = 0;   ///< index into Trace::tensors, for messages
  std::uint32_t meaning = 0;  ///< index into Trace::meanings; 0 says nothing
  bool partial = false;       ///< a sum over some members only, which its receiver adds to its own
  bool paced = false;         ///< of a stream: its sender keeps pace with its receiver
  bool operator==(const Operand&) const = default;
};

/// What a compute operation costs; the simulator turns it into cycles.
struct Work {
  models::GemmShape gemm;          ///< matrix operations
  std::uint64_t vector_flops = 0;  ///< vector operations and reductions
  Bytes sram_bytes = 0;            ///< read and written; all of them pass through SRAM
  /// Of these, of data that belong to a class: as much of them as lies in DRAM passes through DRAM too.
  std::array<Bytes, kMemoryClasses> class_bytes{};
  bool operator==(const Work&) const = default;
};

/// How the two ends of a message find each other besides (source, destination, channel): within the same step
/// instance
/// (`step`), or for the same microbatch of whatever step on either side (`microbatch`, pipeline transfers).
enum class MatchScope : std::uint8_t { step, microbatch };

struct Op {
  OpKind kind = OpKind::vector;
  Axis axis = Axis::none;                               ///< of messages and their reductions
  MemoryClass memory_class = MemoryClass::activations;  ///< allocate, free
  MatchScope scope = MatchScope::step;                  ///< send, receive
  bool detached = false;                                ///< later steps do not wait for it
  bool streamed = false;                                ///< send, multicast, receive; of both ends alike
  bool follows = false;                                 ///< send, multicast; see above
  std::uint32_t first_dependency = 0;                   ///< into StepTemplate::dependencies
  std::uint32_t dependency_count = 0;                   ///< every dependency is an operation of smaller index
  std::uint32_t work = 0;                               ///< into Trace::works; matrix, vector, reduce
  std::uint32_t peer = 0;                               ///< into the tile's peers; send, receive. Of a multicast: the
                                                        ///< first of its peers in StepTemplate::receivers ...
  std::uint32_t peer_count = 0;                         ///< ... and how many it has
  std::uint32_t channel = 0;                            ///< send, multicast, receive; below 2^23
  Bytes bytes = 0;                                      ///< send, multicast, receive (>= 1), allocate, free
  Operand operand;
  bool operator==(const Op&) const = default;
};
static_assert(sizeof(Op) <= 64, "a trace holds millions of operations: one cache line each");

struct StepTemplate {
  std::string name;  ///< "layer.forward"
  std::vector<Op> ops;
  std::vector<std::uint32_t> dependencies;
  std::vector<std::uint32_t> receivers{};  ///< peers of multicasts
  bool operator==(const StepTemplate&) const = default;
};

/// The peers that an operation sends to or receives from, by index; none for those that are no messages.
std::span<const std::uint32_t> peers_of(const StepTemplate& step_template, const Op& op);
/// Whether `op` passes on what the earlier operation `before`, one of its dependencies, receives, as it comes in.
bool follows(const Op& op, const Op& before);

enum class StepKind : std::uint8_t {
  embedding,
  layer,
  head,
  gradient_sync,
  optimizer,
  parameter_gather,
  custom
};
const char* to_string(StepKind kind);
/// `recompute`: a forward pass made again in a step of its own.
enum class Pass : std::uint8_t { forward, backward, weight, recompute, none };
/// "F", "B", "W", "R", "-"
const char* to_string(Pass pass);

struct Step {
  std::uint32_t step_template = 0;
  StepKind kind = StepKind::custom;
  Pass pass = Pass::none;
  bool background =
      false;  ///< overlaps with the steps after it; nobody is charged for waiting in it while others run
  std::int16_t iteration = 0;
  std::int32_t layer = -1;
  std::int32_t microbatch = -1;
  std::uint32_t first_wait = 0;  ///< into Program::waits
  std::uint32_t wait_count = 0;
};

struct Program {
  std::vector<Step> steps;
  std::vector<std::uint32_t> waits;  ///< indices of earlier steps of the same program
};

/// Resident memory of a tile before the first step.
struct StaticMemory {
  std::array<Bytes, kMemoryClasses> bytes{};
  Views holds{};  ///< parameters, by absolute layer
};

struct TileBinding {
  TileId tile = kNoTile;
  std::uint32_t program = 0;
  std::int32_t stage = 0;        ///< pipeline stage
  std::int32_t group = 0;        ///< stage group (replica and stage): the tiles that share a row of steps.csv
  std::uint32_t first_peer = 0;  ///< into Trace::peers
  std::uint32_t peer_count = 0;
  std::uint32_t statics = 0;  ///< into Trace::statics
  std::uint32_t layout = 0;   ///< into Trace::layouts
};

/// Finds what StepBuilder has already put into a trace: hash of the content to index. Of use to StepBuilder
/// only; what is pushed into a trace by hand is not in it and will not be shared.
struct TraceIndex {
  std::unordered_multimap<std::uint64_t, std::uint32_t> tensors;
  std::unordered_multimap<std::uint64_t, std::uint32_t> meanings;
  std::unordered_multimap<std::uint64_t, std::uint32_t> works;
  std::unordered_multimap<std::uint64_t, std::uint32_t> templates;
};

struct Trace {
  std::vector<Tensor> tensors{{"-", TensorScope::activation}};
  std::vector<Meaning> meanings{{}};
  std::vector<Work> works;
  std::vector<StepTemplate> templates;
  std::vector<Program> programs;
  std::vector<TileBinding> tiles;  ///< one for each used tile, ascending by tile
  std::vector<TileId> peers;
  std::vector<StaticMemory> statics;
  std::vector<MemoryLayout> layouts{1};  ///< the first one, unless others are made: everything in SRAM
  int pipeline_stages = 1;
  int iterations = 1;
  int replicas = 1;      ///< TileBinding::group / pipeline_stages is a tile's replica
  int microbatches = 1;  ///< of a replica in an iteration
  TraceIndex interned;

  TileId peer(const TileBinding& binding, std::uint32_t index) const {
    return peers[binding.first_peer + index];
  }
  /// Bytes held by the trace's own containers, the index left aside.
  Bytes memory_bytes() const;
};

/// "step 12 (layer.backward), layer 3, microbatch 0", of iteration 1 on with the iteration; empty for a step below 0.
std::string step_text(const Trace& trace, const TileBinding& binding, std::int32_t step);

/// One matrix: a tensor of a layer, a microbatch and an iteration, or of all of them (-1).
struct MatrixKey {
  std::uint32_t tensor = 0;
  std::int32_t layer = 0;
  std::int32_t microbatch = -1;
  std::int32_t iteration = -1;
  auto operator<=>(const MatrixKey&) const = default;
};
/// The matrix that a view of an operation of `step` is of.
MatrixKey matrix_key(const Trace& trace, const Step& step, const View& view);

/// The 64-bit key that both ends of a message compute, given its channel; equal keys between the same two
/// tiles match in order of posting. Scope `step`: channel, kind, pass, layer, microbatch and the iteration
/// modulo 16 (an iteration cannot overtake the 16th before it). Scope `microbatch`: channel, microbatch and
/// iteration. Throws InternalError for a channel >= 2^23, a layer outside -1 .. 4095, a microbatch outside -1
/// .. 65535 or a negative iteration.
std::uint64_t message_key(const Op& op, const Step& step);

/// Checks a trace without time: indices in range, dependencies backwards, every send has its receive with the
/// same bytes and every receive its send, peers live in the trace, no cyclic wait (a tile-by-tile replay in
/// dataflow order that ignores duration). Returns a description of each fault (at most `limit`) with tiles,
/// channel, step and bytes; empty when sound.
std::vector<std::string> check_trace(const Trace& trace, const topology::Mesh& mesh, std::size_t limit = 10);

}  // namespace wafersim::workloads
