#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/hardware.h"
#include "sim/measurements.h"
#include "sim/router_watch.h"
#include "topology/mesh.h"
#include "topology/routing_policy.h"
#include "workloads/trace.h"

namespace wafersim::sim {

class Core;

struct Progress {
  Cycle cycle = 0;
  double fraction = 0;  ///< of the operations of the trace, 0..1
};

/// Told what tiles do, cycle by cycle, soon after it has happened: of stretches that repeat themselves and are not simulated again
/// (docs/folding.md), when they are over. What happens in one cycle is told in the same order, whatever was visited first. A null
/// function is not called.
struct TileObserver {
  std::vector<TileId> tiles;  ///< used tiles
  /// Called when an operation ends. Only cores that run the trace have any.
  std::function<void(const OperationRecord&)> on_operation;
  /// Called with what the tile holds before the first step, and with what it holds at the end of each cycle that changed it,
  /// ascending by cycle; not before the next change, or the end of the run.
  std::function<void(TileId, Cycle, const MemoryLevels&)> on_memory;
  /// Called when a message from or to one of the tiles is received.
  std::function<void(const MessageRecord&)> on_message;
};

struct SimulationOptions {
  std::uint64_t seed = 1;     ///< of what packets draw, and of `shuffle`
  bool shuffle = false;       ///< visit the modules of a cycle in a random order; results must not change
  Cycle max_cycles = kNever;  ///< stop there, results marked partial
  double max_wall_seconds = 0;  ///< 0 = no limit
  bool record_steps = true;
  /// Keep what the fullest and the emptiest used tile hold over time (the first of several), and `memory_tiles`.
  bool record_memory = false;
  std::vector<TileId> memory_tiles;  ///< used tiles
  /// Rows of all tiles together, which share them; a tile has 16 to 65,536.
  std::size_t memory_rows = std::size_t{1} << 21;
  /// Keep what ActivityMeasurement has, and the spans of `activity_tiles` (used tiles). With cores of a user's own (core_factory) only
  /// what links and messages did.
  bool record_activity = false;
  std::vector<TileId> activity_tiles;
  bool record_links = false;  ///< keep what links did over time (WindowMeasurement); record_activity does so, too
  /// Keep the critical path of the run. Cores that run the trace only, with our routers.
  bool record_path = false;
  /// Makes the core of a tile; null means the one that runs the trace. The name is the module's, below its tile. Tiles of the
  /// trace only. See docs/custom-core.md.
  std::function<std::unique_ptr<Core>(const char* name, TileId tile)> core_factory;
  bool fold = true;  ///< do what repeats only once; the results are the same (docs/folding.md)
  bool trains = true;  ///< messages that meet nobody on their way are simulated as one; the results are the same
  bool fold_eagerly = false;  ///< look for what repeats even where that takes longer than it can save
  bool fold_periods = true;   ///< skip periods of the whole run, too
  bool fold_stages = false;   ///< simulate once what a single stage does again (Components), with up to 1 GiB more
  /// Called with the state of the run, about every `checkpoint_seconds` and when the run is stopped. Null: never. Packet and
  /// ideal networks with cores that run the trace; no `on_message`, `observer`, `record_activity`, `record_links`, `record_path`.
  std::function<void(std::span<const char>)> on_checkpoint;
  double checkpoint_seconds = 60;
  std::span<const char> resume;  ///< such a state of the same run to go on from; empty: from the start
  std::function<void(const MessageRecord&)> on_message;  ///< called when a message is received; nothing is folded
  TileObserver observer;
  /// What observers may be told again of a period that is skipped, 120 B each; a period of more is not.
  std::size_t repeated_events = std::size_t{1} << 21;
  std::function<void(const Progress&)> on_progress;      ///< a few times a second
  std::function<bool()> interrupted;                     ///< polled; true stops the run, results marked partial
  WatchOptions watch;                                    ///< routers to watch; live tiles
};

/// One run of a trace on a machine. SystemC allows one simulation in a process: construct one, run it once.
class Simulation {
 public:
  /// `mesh`, `routing` and `trace` must outlive the simulation.
  Simulation(const topology::Mesh& mesh, const topology::RoutingPolicy& routing, const models::HardwareModel& hardware,
             const workloads::Trace& trace, SimulationOptions options = {});
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// Runs to the end and checks the invariants (conservation of bytes, cycles of each tile sum up, memory returns to its
  /// base). Throws PlanError when the trace stalls (the message says who waits for whom) or memory overflows, InternalError
  /// when an invariant is broken.
  Measurements run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace wafersim::sim
