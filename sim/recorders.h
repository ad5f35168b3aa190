#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/activity.h"
#include "sim/link_loads.h"
#include "sim/memory_timeline.h"
#include "sim/path_recorder.h"
#include "sim/replicas.h"
#include "sim/simulation.h"
#include "sim/state_archive.h"

namespace wafersim::sim {

/// What a run is asked to record of what happens when: what tiles hold over time, loads over time, spans and sums (Activity), what
/// observers are told, and the critical path.
///
/// Periods that are skipped are recorded as if they had been simulated. What happens in them is what happened in the period
/// before, later by whole periods; so that period is recorded with an eye on those that follow: sums grow by as much again,
/// charges are entered for all of them at once, and links are looked at also in the cycles at which windows of later periods end.
class Recorders {
 public:
  /// All must outlive this. It is attached to the parts of the wafer.
  struct Parts {
    const CompiledTrace& trace;
    const Wafer& wafer;
    Calendar& calendar;
    NetworkContext& network;
    const LinkLoads& loads;
    const SimulationOptions& options;
  };
  explicit Recorders(const Parts& parts);

  /// Something is recorded.
  bool any() const { return !timelines_.empty() || !may_be_kept(); }
  /// All that is recorded can be kept in a checkpoint, by visit().
  bool may_be_kept() const { return !windows_ && path_ == nullptr && parts_.options.observer.tiles.empty(); }
  /// Of a run whose length and tiles have been measured.
  void measure(Measurements& out);

  // From hooks of the calendar, between two cycles.
  /// The `length` cycles from here on are about to come `times` times more; `named` is what the state of now has under way. Ended
  /// by one of the next two.
  void begin_period(Cycle length, std::uint64_t times, const NamedRecords& named);
  /// They have been simulated, and will not be again. `one` moves what is in one period into the next. False: too much happened
  /// in them to be told again, and all is as if nothing had been begun.
  bool end_period(const StateShift& one, const NamedRecords& named);
  /// What was under way has other numbers now, and it is so many cycles later.
  void renumber(const NamedRecords& from, const NamedRecords& to, Cycle by);
  void drop_period();

  /// Why replicas cannot be recorded as one; empty when they can.
  std::string obstacle(const Replicas& replicas) const;
  /// The first replica is all that was recorded, and the others did the same: what was under way there, `first`, is by replica in
  /// the others what `under_way` has.
  void copy_first_replica(const Replicas& replicas, const NamedRecords& first, const std::vector<NamedRecords>& under_way);

  /// State of what may be kept, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive) {
    for (MemoryTimeline& timeline : timelines_) timeline.visit(archive);
  }

 private:
  struct Level {
    TileId tile = kNoTile;
    Cycle cycle = 0;
    MemoryLevels levels;
  };
  using Event = std::variant<OperationRecord, MessageRecord, Level>;
  struct Period {
    Cycle length = 0;
    std::uint64_t times = 0;
    std::vector<Event> events;
    bool too_many = false;
  };
  void attach_timelines();
  void attach_windows();
  void attach_activity();
  void attach_observer();
  void attach_messages();
  void attach_path();
  void measure_memory(Measurements& out) const;
  void measure_windows(Measurements& out);
  void sample_links(Cycle now);
  Activity::Moves moves_of_tiles(const Replicas& replicas, const std::vector<TileId>& moved) const;
  void add_moves_of_links(const Replicas& replicas, const std::vector<TileId>& moved, Activity::Moves& moves) const;
  bool is_observed(TileId tile) const;
  void happened(const Event& event);
  void tell_cycle();
  void tell(const Event& event) const;
  static void move(Event& event, const StateShift& by);
  static bool before(const Event& a, const Event& b);

  Parts parts_;
  std::vector<MemoryTimeline> timelines_;    ///< by used tile, or none
  std::optional<LoadWindows> windows_;       ///< when they are recorded, of tiles with `activity_`
  std::unique_ptr<Activity> activity_;       ///< likewise
  std::unique_ptr<PathRecorder> path_;       ///< likewise
  std::vector<bool> observed_;               ///< by tile
  std::function<void(const OperationRecord&)> operation_sink_;
  std::function<void(const MessageRecord&)> message_sink_;
  std::deque<Sram::LevelSink> level_sinks_;  ///< of observed tiles; they stay in their places
  std::vector<Event> happened_;              ///< of one cycle, not told yet
  Cycle happened_at_ = 0;
  std::unique_ptr<Period> period_;           ///< that comes again
};

}  // namespace wafersim::sim
