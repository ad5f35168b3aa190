#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/program_stretch.h"
#include "sim/step_recorder.h"
#include "sim/wafer_state.h"

namespace wafersim::sim {

/// What components act on; all must outlive them.
struct ComponentParts {
  const Wafer& wafer;
  WaferState& state;
  NetworkContext& network;
  Calendar& calendar;
  const CompiledTrace& trace;
  SharedByCores& shared;
  const topology::Mesh& mesh;
};

/// Simulates once what a part of the wafer does by itself, and again and again.
///
/// A component is a stage group: the tiles of a stage in a replica. While no message is under way that passes one of its tiles
/// and is not from one of them to another, what it does follows from its own state. When its first tile has done a step, or the
/// last message of others has gone, its relative state is written. If it, or the same stage of another replica, was in this
/// state before, and its programs go on as they did then, it falls asleep: its events are taken out of the calendar until the
/// cycle up to which it was seen to be alone from there on (the horizon of an Episode). There it is put into the state that it had
/// then, moved, or sleeps on if what follows is known, too. Steps and sums of what was slept through are entered. Who sends a
/// message through a component that sleeps wakes it: it is put into its state of this cycle, which is known if the same happened
/// before, or else simulated apart from all others from the last one that is.
///
/// A message is seen when it is posted, a cycle or more before any of its packets reaches another tile, so all that it changes
/// of a component in this cycle is when the flight to its destination begins; that waits until the component is awake.
class Components {
 public:
  explicit Components(const ComponentParts& parts, bool eager);

  /// Why there are none; empty when there are some.
  const std::string& obstacle() const { return obstacle_; }
  /// Called with each step that was not simulated.
  using StepSink = std::function<void(const workloads::TileBinding& binding, std::uint32_t index, const StepTimes& times)>;
  void on_step(StepSink sink) { step_sink_ = std::move(sink); }

  /// Of each message that is posted. True: its flight to `destination` begins later in this cycle, which is seen to.
  bool opened(TileId source, TileId destination) {
    return is_foreign(source, destination) && opened_foreign(source, destination);
  }
  /// Of each message that is received.
  void received(TileId source, TileId destination) {
    if (is_foreign(source, destination)) received_foreign(source, destination);
  }
  /// Whether a message may look at all routers on its way.
  bool may_form_train(TileId source, TileId destination) {
    return !is_foreign(source, destination) || all_awake(source, destination);
  }

  void step_done(const workloads::TileBinding& binding, std::uint32_t index, const StepTimes& times);
  /// Behind a cycle, whenever the calendar's hook is called.
  void at_boundary();
  /// All components are what they are behind cycle `now`.
  void wake_all(Cycle now);
  /// Messages are under way in all replicas as in the first one.
  void copy_first_replica();
  std::uint64_t skipped_operations() const { return skipped_operations_; }
  /// How many messages pass each component that are not its own alone; takes up what was said of an earlier state, false if it
  /// does not fit.
  std::vector<std::uint32_t> passing() const;
  bool resume(const std::vector<std::uint32_t>& passing);

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  /// Bytes of states that are kept, all together, and states of an episode.
  static constexpr std::uint64_t kMostKept = std::uint64_t{1} << 30;
  static constexpr std::size_t kMostMarks = 12;
  /// What is over after fewer operations is not worth a state.
  static constexpr std::uint64_t kLeastOperations = 512;
  /// Waiting for quiet takes no longer: some messages' time.
  static constexpr Cycle kMostQuiet = Cycle{1} << 18;
  enum class Mode : std::uint8_t { awake, recording, asleep };
  using Hash = std::array<std::uint64_t, 2>;

  struct Done {
    std::uint32_t place = 0;  ///< of the tile
    std::uint32_t index = 0;
    StepTimes times;
  };
  /// What a relative state is told from, and what it leaves out. Vectors are by used tile.
  struct Standing {
    Cycle at = 0;
    std::int32_t microbatch = 0;
    std::int32_t iteration = 0;
    std::vector<std::uint64_t> counters;
    std::vector<MemoryLevels> levels;
    std::vector<ProgramPosition> positions;
    std::uint64_t operations = 0;
  };
  struct Situation;
  /// A state that was seen some time behind the start of an episode.
  struct Mark {
    Standing from;  ///< of the episode, when this was seen
    Standing at;
    std::vector<MemoryLevels> peaks;  ///< between them, above the levels at the start
    std::uint32_t component = 0;      ///< whose this was
    std::vector<char> state;
    std::vector<Done> done;           ///< steps between them
    Situation* situation = nullptr;   ///< that this is; null when it was not asked
    Cycle elapsed() const { return at.at - from.at; }
  };
  /// What a component does by itself from a situation on.
  struct Episode {
    std::uint32_t component = 0;       ///< whose it was
    bool own = false;                  ///< of no other component
    Standing from;
    std::vector<ProgramPosition> end;  ///< what its programs are at its horizon
    Cycle horizon = 0;                 ///< length
    bool mixed = false;                ///< the numbers of iterations may have counted
    std::list<Mark> marks;             ///< in order of elapsed(); the last one is at the horizon
    /// In its last cycle: from which tile to which.
    std::vector<std::pair<TileId, TileId>> opens;
  };
  struct Situation {
    std::vector<char> bytes;
    std::deque<Episode> episodes;  ///< differ in the programs
  };
  struct Component {
    std::vector<Tile*> tiles;
    const workloads::TileBinding* first = nullptr;
    std::uint32_t foreign = 0;  ///< messages under way that are not its own alone
    Mode mode = Mode::awake;
    bool touched = false;       ///< while not awake, by a message of others
    bool asked = false;         ///< to look at it behind this cycle
    /// Behind messages of others it is looked at when there were none for so long: earlier, more came too soon.
    Cycle quiet = 0;
    bool after_others = false;       ///< the look that recording began with was behind messages of others
    // Recorded or asleep:
    Situation* situation = nullptr;
    Episode* episode = nullptr;      ///< asleep
    Standing from;                   ///< at the start
    std::vector<MemoryLevels> peaks; ///< of its tiles, up to then
    std::uint64_t mixed_before = 0;
    std::vector<Done> done;          ///< since
    std::vector<TileId> begins;      ///< flights that begin in this cycle
    std::vector<std::pair<TileId, TileId>> opens;  ///< messages to others, in this cycle
    // Asleep:
    std::uint64_t nap = 0;           ///< which it is; awake, which wait for a look
    const Mark* mark = nullptr;      ///< the state is that of this one, moved; null: it is what the tiles hold
    std::vector<Calendar::Pending> events;  ///< of the state that the tiles hold
    std::uint32_t memory = 0;        ///< in which component it is kept what it was in
    std::map<Hash, std::deque<Situation>> situations;
  };
  struct Alarm {
    Cycle at;
    std::uint32_t component;
    std::uint64_t nap;
    bool operator>(const Alarm& other) const { return at > other.at; }
  };

  void find_components();
  bool is_apart(const Component& component) const;
  void find_twins();
  bool are_twins(const Component& first, const Component& other) const;
  int replica_of(std::uint32_t component) const;
  TileId moved(TileId tile, std::uint32_t from, std::uint32_t to) const;
  const workloads::Program& program_of(const Component& component, std::size_t place) const;
  const std::vector<std::uint32_t>& way(TileId source, TileId destination);
  bool is_foreign(TileId source, TileId destination) const {
    return component_[source] != component_[destination] || component_[source] == kNone;
  }
  bool opened_foreign(TileId source, TileId destination);
  void received_foreign(TileId source, TileId destination);
  bool all_awake(TileId source, TileId destination);
  void touch(std::uint32_t component);
  void ask(std::uint32_t component);
  void wait_for_quiet(Component& component);

  void settle_trains(const Component& component, Cycle cycle);
  Standing standing(const Component& component, RelativeState& relative) const;
  void look(Component& component, Mark* reached, bool after_others = false);
  bool may_look() const;
  Situation& situation_of(Component& component, std::vector<char> bytes);
  void start_recording(Component& component, Situation& situation);
  void stop_recording(Component& component);
  Mark* end_recording(Component& component, const Standing& now);
  void keep_state(Component& component, Mark& mark);
  Episode* usable(Component& component, const Standing& now, Situation& situation);
  bool fits(const Component& component, const Standing& now, const Mark& mark) const;
  void fall_asleep(Component& component, Situation& situation, Episode& episode);

  void wake(Component& component, Cycle now, bool keep);
  void wake_at_horizon(Component& component, bool keep);
  void wake_between(Component& component, Cycle now, bool keep);
  void pass(Component& component, const Mark& mark);
  void make_true(Component& component);
  void simulate_apart(Component& component, Cycle now, Mark* kept);
  void stand_up(Component& component, Cycle now);
  static MemoryLevels plus(const MemoryLevels& a, const MemoryLevels& b);
  static MemoryLevels minus(const MemoryLevels& a, const MemoryLevels& b);
  /// What is more than at the start, of each value.
  static MemoryLevels above(const MemoryLevels& levels, const MemoryLevels& start);
  void set_alarm();
  std::uint32_t number(const Component& component) const {
    return static_cast<std::uint32_t>(&component - components_.data());
  }

  ComponentParts parts_;
  bool eager_;
  std::string obstacle_;
  StepSink step_sink_;
  std::vector<Component> components_;      ///< by group
  std::vector<std::uint32_t> component_;   ///< by tile; kNone where its stage group cannot be one
  std::vector<std::uint32_t> group_;       ///< by tile, of which it is; kNone where it runs nothing
  std::vector<std::uint32_t> place_;       ///< by tile: among those of its component
  /// By replica and tile: which its tiles are in the first one; others are marked.
  std::vector<std::vector<TileId>> names_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> ways_;  ///< by both ends: the components on it
  std::vector<std::uint32_t> touched_;
  std::vector<std::uint32_t> asked_;
  std::priority_queue<Alarm, std::vector<Alarm>, std::greater<>> alarms_;
  const Component* apart_ = nullptr;       ///< is simulated apart
  std::uint64_t naps_ = 0;
  std::uint64_t written_ = 0;              ///< bytes of state for which nothing was saved
  std::uint64_t kept_ = 0;                 ///< bytes of states
  std::uint64_t skipped_operations_ = 0;
};

}  // namespace wafersim::sim
