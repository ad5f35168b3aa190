#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <queue>
#include <unordered_map>
#include <vector>

#include "analysis/message_board.h"
#include "analysis/message_timing.h"
#include "sim/compiled_trace.h"
#include "workloads/trace.h"

namespace wafersim::analysis {

/// Some steps of the program of one tile, in order.
struct PlayedTile {
  const workloads::TileBinding* binding = nullptr;
  std::vector<std::uint32_t> steps;  ///< indices into its program, in the order in which they open; every tile has as many
};

/// Cycles of tiles by cause, summed over tiles.
struct CauseCycles {
  double compute = 0;
  double memory_stall = 0;
  std::array<double, workloads::kAxes + 1> waiting{};  ///< for messages, by axis of the one that ended the wait
  double other = 0;                                    ///< for the tile's own work in other steps, or nothing
  CauseCycles& operator+=(const CauseCycles& more);
  CauseCycles operator-(const CauseCycles& less) const;
  CauseCycles operator*(double times) const;
  double total() const;
};

/// What came of the n-th step that was played, of all tiles together.
struct PlayedStep {
  Cycle end = 0;               ///< the last tile has its result
  Cycle sent_on = 0;           ///< the last message to a tile outside has arrived there; 0 without any
  bool waits_outside = false;  ///< some tile waits for a message from a tile outside
  CauseCycles causes;          ///< of the tiles from cycle 0 until their own results
};

struct Played {
  std::vector<PlayedStep> steps;
  Cycle end = 0;                            ///< everything is over, detached operations included
  std::vector<MessageTiming::Usage> ports;  ///< for how long each was busy
  Cycle vector_busy = 0;                    ///< of the tile whose vector engine was busy longest
  std::uint64_t operations = 0;
};

class ReplayKeys;
class ReplayMemory;

/// Plays steps by the rules of workloads/trace.h with the costs of models/: operations take their cycles, messages what
/// MessageTiming says; no packets, no arbitration, buffers without end. Time: operations and message hops, times the logarithm
/// of those under way.
class StepReplay {
 public:
  /// All but `used`, the tiles of the plan, must outlive this. `memory`: of plays on the same machine, routes and cost model;
  /// may be null.
  StepReplay(const sim::CompiledTrace& trace, const models::HardwareModel& hardware, MessageTiming& messages,
             const topology::Mesh& mesh, const std::vector<TileId>& used, ReplayMemory* memory = nullptr);
  ~StepReplay();

  /// Tiles of a die that take no part use its DRAM as much as those that do.
  /// Starts at cycle 0 with idle engines and free links. Steps that are not played count as over; messages from tiles that do
  /// not take part arrive at `outside`. Throws InternalError when the steps wait for each other in a circle.
  Played play(const std::vector<PlayedTile>& tiles, Cycle outside = 0);

 private:
  struct Running {
    bool active = false;
    std::uint32_t slot = 0, op = 0;
    Cycle start = 0, sram_cycles = 0, compute = 0, nic_at_start = 0;
  };
  struct Open {
    const sim::CompiledTemplate* code = nullptr;
    std::uint32_t number = 0;  ///< among the played steps of the tile
    std::uint32_t operations_left = 0, results_left = 0;
    std::array<std::uint32_t, sim::kEngines> cursor{};
    std::array<std::uint64_t, 2> keys{};
    std::vector<std::uint16_t> waiting;
  };
  struct Reduction {
    std::uint32_t number, op, slot;
    bool operator>(const Reduction& other) const { return number != other.number ? number > other.number : op > other.op; }
  };
  struct Tile {
    const workloads::TileBinding* binding = nullptr;
    const workloads::Program* program = nullptr;
    const std::vector<std::uint32_t>* steps = nullptr;
    std::uint32_t next = 0;
    std::vector<bool> result_there;
    std::vector<Open> slots;
    std::vector<std::uint32_t> order, free_slots;
    std::array<Running, sim::kEngines> running{};
    std::priority_queue<Reduction, std::vector<Reduction>, std::greater<>> reductions;
    Cycle nic_until = 0, nic_total = 0, vector_busy = 0;
    std::array<std::int64_t, workloads::kMemoryClasses> held{};
    bool uses_dram = false;
    bool dirty = false;
    Cycle settled = 0;  ///< cycles up to here have a cause
    CauseCycles causes;
  };
  struct Event {
    Cycle at = 0;
    std::uint32_t kind = 0, tile = 0, a = 0, b = 0;
    std::uint64_t order = 0;
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };
  struct Message {
    MessageTiming::Flight flight;
    std::uint64_t match = 0;
    std::uint32_t from = 0, to = 0;  ///< among the played tiles; kOutside
    std::uint32_t slot = 0, op = 0;  ///< of the send
    std::uint32_t number = 0;        ///< step of the send
    bool last_copy = true;           ///< its send is over when it has left
  };
  struct Waiting {
    std::uint32_t tile = 0, slot = 0, op = 0;
    Cycle arrived = 0;
    bool posted = false;
  };

  Played play_afresh(const std::vector<PlayedTile>& tiles, Cycle outside);
  void post(Cycle at, std::uint32_t kind, std::uint32_t tile, std::uint32_t a, std::uint32_t b);
  void open_steps(std::uint32_t tile);
  void ready(std::uint32_t tile, std::uint32_t slot, std::uint32_t op);
  void send(std::uint32_t tile, std::uint32_t slot, std::uint32_t op);
  void receive(std::uint32_t tile, std::uint32_t slot, std::uint32_t op);
  void complete(std::uint32_t tile, std::uint32_t slot, std::uint32_t op);
  void drain();
  void issue(std::uint32_t tile);
  bool issue_on(std::uint32_t tile, sim::Engine engine);
  bool start(std::uint32_t tile, sim::Engine engine, std::uint32_t slot, std::uint32_t op);
  void engine_event(const Event& event);
  void hop(std::uint32_t message, Cycle head);
  void nic_access(Tile& tile, Bytes bytes) const;
  Cycle nic_busy(const Tile& tile) const;
  Bytes through_dram(const Tile& tile, const workloads::Work& work) const;
  void settle(Tile& tile, int axis = -1);
  std::uint64_t match_key(TileId source, TileId destination, std::uint64_t key) const;

  const sim::CompiledTrace& trace_;
  const models::HardwareModel& hardware_;
  MessageTiming& messages_;
  const topology::Mesh& mesh_;

  Cycle now_ = 0, outside_ = 0;
  std::uint64_t order_ = 0;
  std::vector<Tile> tiles_;
  std::vector<std::uint32_t> by_tile_;  ///< among the played tiles; kOutside
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Message> flights_;
  std::vector<std::uint32_t> free_flights_;
  MessageBoard<Waiting> waiting_;  ///< receives and arrivals without their other end
  struct Done {
    std::uint32_t tile, slot, op;
  };
  std::vector<Done> done_;
  std::vector<std::uint32_t> dirty_, issuing_;  ///< tiles that may have something to issue
  std::uint32_t die_of(TileId tile) const;
  struct Die {
    std::uint32_t used = 0;     ///< tiles of the plan
    std::uint32_t playing = 0;  ///< of these, that take part
    double free = 0;
  };
  std::unordered_map<std::uint32_t, Die> dies_;  ///< none without DRAM
  ReplayMemory* memory_;
  std::unique_ptr<ReplayKeys> keys_;
  std::vector<std::uint32_t> sharers_;  ///< by tile: Die::used; none without DRAM
  Played played_;
};

}  // namespace wafersim::analysis
