#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "topology/mesh.h"
#include "workloads/trace.h"

namespace wafersim::sim {

/// What the cycles of one tile went to. They sum to the length of the run, exactly.
struct CycleBreakdown {
  Cycle compute = 0;
  std::array<Cycle, workloads::kAxes> exposed{};  ///< exposed communication by axis
  Cycle bubble = 0;
  Cycle memory_stall = 0;
  Cycle idle = 0;
  Cycle exposed_total() const;
  Cycle total() const { return compute + exposed_total() + bubble + memory_stall + idle; }
  bool operator==(const CycleBreakdown&) const = default;
};

struct TileMeasurement {
  TileId tile = kNoTile;
  std::int32_t stage = 0;
  std::int32_t group = 0;
  CycleBreakdown cycles;
  Cycle matrix_busy = 0;            ///< cycles in which the matrix engine had an operation
  Cycle vector_busy = 0;
  Cycle communicating = 0;          ///< cycles with a message in flight to or from the tile
  std::uint64_t operations = 0;
  std::uint64_t matrix_flops = 0;   ///< of operations that have started, like the three values below
  std::uint64_t vector_flops = 0;
  Bytes core_sram_bytes = 0;        ///< that operations read and write
  Bytes dram_bytes = 0;
  Bytes bytes_injected = 0;         ///< packets into the network; a multicast once for each port that it leaves by
  Bytes bytes_ejected = 0;          ///< packets out of the network
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  Bytes bytes_sent = 0;             ///< a multicast counts once
  Bytes bytes_copied = 0;           ///< what routers made for the second and later receivers of its multicasts
  Bytes bytes_received = 0;
  Bytes peak_sram_bytes = 0;        ///< largest total held in SRAM at the end of a cycle
  Bytes peak_dram_bytes = 0;
  Bytes peak_bytes = 0;             ///< largest total of both
  std::array<Bytes, workloads::kMemoryClasses> peak_by_class{};
  Bytes final_bytes = 0;            ///< held when the run ended; equals static_bytes
  Bytes static_bytes = 0;
};

struct LinkMeasurement {
  topology::LinkId link = 0;
  Bytes bytes = 0;
  std::array<Bytes, workloads::kAxes + 1> bytes_by_axis{};  ///< the last is Axis::none
  std::uint64_t packets = 0;
  Cycle busy = 0;                   ///< cycles in which the link carried a packet or was held by one
  Cycle queued = 0;                 ///< sum over packets of (grant - first bid)
};

/// One step on one stage group, over the group's tiles.
struct StepMeasurement {
  std::int32_t group = 0;
  std::int32_t stage = 0;
  std::uint32_t index = 0;          ///< position in the program
  workloads::StepKind kind = workloads::StepKind::custom;
  workloads::Pass pass = workloads::Pass::none;
  std::int32_t layer = -1;
  std::int32_t microbatch = -1;
  std::int32_t iteration = 0;
  Cycle start = 0;                  ///< earliest opening
  Cycle first_compute = kNever;     ///< start of the earliest operation; kNever: none of the tiles computes
  Cycle end = 0;                    ///< latest completion
  Cycle shortest = 0;               ///< of the tiles' own durations
  Cycle longest = 0;
  double mean = 0;
  std::uint32_t tiles = 0;
};

/// One message, for --messages.
struct MessageRecord {
  TileId source = kNoTile;
  TileId destination = kNoTile;
  std::uint64_t key = 0;
  workloads::Axis axis = workloads::Axis::none;
  std::uint32_t tensor = 0;
  Bytes bytes = 0;
  Cycle posted = 0;
  Cycle injected = 0;               ///< first packet leaves the NIC
  Cycle received = 0;               ///< last tail leaves the ejection port
  Cycle queued = 0;                 ///< sum over packets and links of (grant - first bid)
};

/// One operation that took time.
struct OperationRecord {
  TileId tile = kNoTile;
  std::uint32_t step = 0;           ///< position in the tile's program
  workloads::OpKind kind = workloads::OpKind::matrix;  ///< matrix: on the matrix engine; vector, reduce: on the vector engine
  workloads::Axis axis = workloads::Axis::none;        ///< of reductions
  Cycle start = 0;
  Cycle end = 0;                    ///< the engine was held from start to end - 1
};

/// The causes of CycleBreakdown, numbered: exposed communication has one for each axis.
enum class CycleKind : std::uint8_t {
  compute,
  first_exposed,
  bubble = first_exposed + workloads::kAxes,
  memory_stall,
  idle
};
inline constexpr std::size_t kCycleKinds = static_cast<std::size_t>(CycleKind::idle) + 1;
constexpr CycleKind exposed_by(workloads::Axis axis) {
  return static_cast<CycleKind>(static_cast<unsigned>(CycleKind::first_exposed) + static_cast<unsigned>(axis));
}
/// "compute", "exposed_tp", ..., "memory_stall", "idle"
std::string to_string(CycleKind kind);
/// Cycles by CycleKind.
using CyclesByKind = std::array<Cycle, kCycleKinds>;
CyclesByKind by_kind(const CycleBreakdown& cycles);

/// What a link did in a stretch of time.
struct LinkLoad {
  Cycle busy = 0;    ///< as LinkMeasurement
  Cycle queued = 0;  ///< of the packets granted in it
};

/// The run cut into windows of equal length, the last one of what is left.
struct WindowMeasurement {
  Cycle length = 0;  ///< a power of two
  std::size_t count = 0;
  std::vector<CyclesByKind> tiles;  ///< window by window of the first used tile, then of the next
  std::vector<LinkLoad> links;      ///< likewise of live links
};

/// What tiles of a stage spent on steps of one kind and pass. A tile's cycles are of the oldest step that is open in the
/// foreground, else in the background.
struct StepCycles {
  std::int32_t stage = 0;
  bool between = false;  ///< no step was open
  workloads::StepKind kind = workloads::StepKind::custom;
  workloads::Pass pass = workloads::Pass::none;
  CyclesByKind cycles{};
};

/// Operations of one work, over all tiles.
struct OperationMeasurement {
  workloads::OpKind kind = workloads::OpKind::matrix;
  workloads::Work work;
  std::string steps;          ///< names of the templates that have them, separated by blanks
  std::uint64_t count = 0;
  Cycle cycles = 0;           ///< sum of the times that they held their engine
  Cycle shortest = 0;
  Cycle longest = 0;
};

/// Messages counted by a number of cycles: exact below 16, then eight classes to each power of two.
class CycleHistogram {
 public:
  void add(Cycle value);
  /// What has been added since it was `before` comes so many times more.
  void repeat_since(const CycleHistogram& before, std::uint64_t times);
  struct Class {
    Cycle from = 0;
    Cycle to = 0;  ///< the largest
    std::uint64_t count = 0;
  };
  /// Ascending; those that are not empty.
  std::vector<Class> classes() const;

 private:
  std::vector<std::uint64_t> counts_;
};

/// Messages of one axis.
struct MessageStatistics {
  workloads::Axis axis = workloads::Axis::none;
  std::uint64_t messages = 0;
  Bytes bytes = 0;
  Cycle latency_sum = 0;   ///< from post to receive
  Cycle queued_sum = 0;    ///< as MessageRecord
  CycleHistogram latency;
  CycleHistogram queued;
};

/// What one tile did, span by span.
struct TileSpans {
  struct Span {
    Cycle from = 0;
    Cycle to = 0;
    std::uint8_t what = 0;  ///< CycleKind of `core`, Axis of `messages`
  };
  TileId tile = kNoTile;
  std::vector<Span> core;      ///< ascending, without gaps: what its cycles went to
  std::vector<Span> messages;  ///< by axis, ascending: when one was on its way to the tile or from it
  bool complete = true;        ///< false: the spans end before the run
};

/// When the first tile of a stage group was in bubbles.
struct GroupBubbles {
  struct Span {
    Cycle from = 0;
    Cycle to = 0;
  };
  std::int32_t group = 0;
  std::int32_t stage = 0;
  std::vector<Span> spans;  ///< ascending; the first few thousand
};

/// Kept when asked for, see SimulationOptions::record_activity.
struct ActivityMeasurement {
  std::vector<StepCycles> steps;                ///< ascending by stage, kind, pass
  std::vector<OperationMeasurement> operations;  ///< in the order of Trace::works
  std::vector<MessageStatistics> messages;      ///< ascending by axis; of axes that sent any
  std::vector<TileSpans> tiles;                 ///< ascending by tile; of the tiles asked for
  std::vector<GroupBubbles> bubbles;            ///< ascending by group
};

/// What a stretch of the critical path was spent on.
enum class PathKind : std::uint8_t {
  matrix,           ///< operations of that kind
  vector,
  reduce,
  memory_stall,     ///< an operation's own bytes took longer through SRAM or DRAM than its computation
  memory_wait,      ///< and longer for the NIC, which has priority in SRAM, or other users of the DRAM
  overhead,         ///< of a message at its ends (nic.message_overhead), or of a stream's packet in the core
  wire,             ///< a message's packets in router pipelines, over links and in serialization, as on an idle network
  injection_queue,  ///< behind other messages at the NIC
  injection_room,   ///< at the NIC for room in the router, the port being free
  link_queue,       ///< in a router behind packets of other messages: for an output to a link, or in the same VC
  link_room,        ///< for room behind the link, the output being free
  ejection_queue    ///< for the ejection port
};
inline constexpr std::size_t kPathKinds = static_cast<std::size_t>(PathKind::ejection_queue) + 1;
const char* to_string(PathKind kind);
constexpr bool is_operation(PathKind kind) { return kind <= PathKind::reduce; }
/// A message waits for others, or for buffers.
constexpr bool is_queueing(PathKind kind) { return kind >= PathKind::injection_queue; }
/// It waits for an output to a link.
constexpr bool is_at_link(PathKind kind) { return kind == PathKind::link_queue || kind == PathKind::link_room; }
/// The core is at work: the segment has a tile and a step, and no message.
constexpr bool is_core(PathKind kind) { return kind <= PathKind::memory_wait; }

/// A stretch of the critical path. The next one starts where it ends.
struct PathSegment {
  Cycle from = 0;
  Cycle to = 0;
  PathKind kind = PathKind::wire;
  workloads::Axis axis = workloads::Axis::none;  ///< of messages and reductions
  /// The tile that computes, or that sends the message.
  TileId tile = kNoTile;
  TileId destination = kNoTile;  ///< of messages
  std::uint32_t step = 0;           ///< of cores: position in the tile's program
  std::uint32_t operations = 0;     ///< of operations: so many, one after the other
  std::uint32_t computed = 0;       ///< of memory stalls: cycles that the operation computed before
  topology::LinkId link = 0;        ///< of link_queue and link_room
  std::uint32_t router_cycles = 0;  ///< of wires: in router pipelines ...
  std::uint32_t link_cycles = 0;    ///< ... on links and local ports; the rest is serialization
};

/// The chain of last arrivals from the start of the run to its end.
struct PathMeasurement {
  std::vector<PathSegment> segments;  ///< from cycle 0 to the last, without gaps
  bool complete = true;               ///< false: there were too many chains to keep, and there are no segments
};

/// What a tile holds.
struct MemoryLevels {
  std::array<Bytes, workloads::kMemoryClasses> by_class{};
  Bytes sram = 0;
  Bytes dram = 0;
  Bytes total = 0;  ///< of both
  bool operator==(const MemoryLevels&) const = default;
};
/// Value by value.
MemoryLevels largest(const MemoryLevels& a, const MemoryLevels& b);

/// Levels of a tile from `cycle` on.
struct MemoryRow {
  Cycle cycle = 0;
  Cycle window = 1;  ///< 1: at the end of the cycle; more: the largest of so many cycles, value by value
  MemoryLevels levels;
};

/// One tile's memory over time; ascending by cycle. The first row is what is resident before the first step, the last
/// one what is held when the run ends; where nothing changes there are no rows.
struct TileMemory {
  TileId tile = kNoTile;
  std::vector<MemoryRow> rows;
};

/// What was not simulated because it repeats what was (docs/folding.md).
struct FoldMeasurement {
  double fraction = 0;               ///< of the operations done
  std::uint64_t skipped_periods = 0;
  Cycle skipped_cycles = 0;
  Cycle period_cycles = 0;           ///< of the longest stretch that was skipped
  int replicas_folded = 0;           ///< simulated as one for a time
  std::vector<std::string> stopped_by;  ///< why not more
};

/// Messages that were simulated as trains, and packets that went with them to the end: of those simulated, not of those folded.
struct TrainMeasurement {
  std::uint64_t messages = 0;
  std::uint64_t packets = 0;
};

struct EngineMeasurement {
  double wall_seconds = 0;
  double cpu_seconds = 0;
  std::uint64_t peak_rss_bytes = 0;
  std::uint64_t events = 0;
  double packet_hops_per_cpu_second = 0;
  FoldMeasurement fold = {};
  TrainMeasurement trains = {};
};

struct Measurements {
  Cycle cycles = 0;                 ///< length of the run
  std::vector<Cycle> iteration_ends;  ///< of the completed iterations, in order
  bool partial = false;             ///< stopped by a limit or a signal
  std::string stopped_by;           ///< "max-cycles", "max-wall", "interrupt"
  std::vector<TileMeasurement> tiles;   ///< used tiles, ascending
  std::vector<LinkMeasurement> links;   ///< live links, ascending
  std::vector<StepMeasurement> steps;   ///< by group, then position
  std::vector<TileMemory> memory;       ///< ascending by tile; of the tiles asked for
  std::optional<WindowMeasurement> windows;  ///< when asked for; of tiles with `activity` only
  std::optional<ActivityMeasurement> activity;
  std::optional<PathMeasurement> critical_path;  ///< of complete runs, when asked for
  std::uint64_t packets = 0;
  std::uint64_t packet_hops = 0;    ///< link traversals
  std::uint64_t messages = 0;
  std::uint64_t matrix_flops = 0;   ///< GEMM FLOPs executed, recompute included
  EngineMeasurement engine;
};

}  // namespace wafersim::sim
