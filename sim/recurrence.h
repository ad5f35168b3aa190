#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/program_stretch.h"
#include "sim/recorders.h"
#include "sim/step_recorder.h"
#include "sim/wafer_state.h"

namespace wafersim::sim {

/// What a recurrence acts on; all must outlive it.
struct RecurrenceParts {
  WaferState& state;
  Calendar& calendar;
  const CompiledTrace& trace;
  StepRecorder& recorder;
  SharedByCores& shared;
  Recorders& recorders;
};

/// Finds that the complete state of some tiles recurs, and skips the periods that would repeat what was seen.
///
/// When one tile ends a step that occurs again and again, the state is written in relative form. If that is, byte by byte,
/// the form that it had at an earlier such moment, and if the programs go on as they did from there, up to the numbers of
/// microbatches and iterations, then so does the run: a whole number of periods is added to all times, positions, keys and
/// counters, and the steps of the period are recorded for each period skipped. What else is recorded (Recorders) wants to see
/// the period once more first: then a state must be found a third time.
class Recurrence {
 public:
  /// `tiles` are all that take part in the run; the order is kept. Steps are told by step_done(), which the owner calls.
  /// With `eager` no moment is too dear to be looked at.
  Recurrence(const RecurrenceParts& parts, std::vector<Tile*> tiles, bool eager);
  ~Recurrence();
  Recurrence(const Recurrence&) = delete;
  Recurrence& operator=(const Recurrence&) = delete;

  /// Of each step that a tile has done; true when the state should be looked at behind this cycle.
  bool step_done(const workloads::TileBinding& binding, std::uint32_t index, const StepTimes& times);
  /// Looks at the state, between two cycles, and skips what can be.
  void look();

  std::uint64_t periods() const { return periods_; }
  Cycle skipped_cycles() const { return skipped_cycles_; }
  /// Of the longest stretch skipped.
  Cycle period() const { return period_; }
  std::uint64_t skipped_operations() const { return skipped_operations_; }
  bool seen_again() const { return seen_again_; }
  bool too_much_recorded() const { return too_much_recorded_; }

 private:
  struct Done {
    const workloads::TileBinding* binding = nullptr;
    std::uint32_t index = 0;
    StepTimes times;
  };
  struct Moment {
    Cycle at = 0;
    std::int32_t microbatch = 0;
    std::int32_t iteration = 0;
    std::uint64_t mixed_arrivals = 0;
    std::array<std::uint64_t, 2> hash{};
    RelativeState state;
    std::vector<ProgramPosition> positions;  ///< by used tile
    std::size_t done = 0;             ///< steps logged before, from the log's first on
    bool first_of_iteration = false;
    std::uint64_t kept_until = 0;     ///< look number: it may recur then
  };
  /// What is so many periods later than something, with what its shift refers to.
  struct Move {
    StateShift shift;
    std::vector<std::uint64_t> counters;
    std::vector<std::uint32_t> steps;  ///< by tile
  };
  /// What is recorded before it is skipped.
  struct Recording {
    Cycle end = 0;              ///< the state recurs behind this cycle
    std::uint64_t periods = 0;  ///< to skip then
  };

  void choose_anchor();
  bool may_look() const;
  Moment moment();
  void end_recording(const Moment& now);
  void skip_from(const Moment& before, const Moment& now, std::uint64_t periods);
  std::uint64_t periods_ahead(const Moment& from, const Moment& to) const;
  static std::uint64_t periods_ahead(const ProgramStretch& stretch);
  Move move(const Moment& from, const Moment& to, std::uint64_t periods) const;
  void skip(const Moment& from, const Moment& to, std::uint64_t periods);
  void replay(const Moment& from, const Moment& to, std::uint64_t periods);
  void remember(Moment moment);
  void forget_log();
  std::uint64_t operations() const;

  RecurrenceParts parts_;
  bool eager_;
  std::vector<Tile*> tiles_;
  std::vector<Tile*> used_;
  std::vector<std::uint32_t> place_;  ///< in `used_`, by tile
  // What the anchoring tile ends again and again.
  const workloads::TileBinding* anchor_ = nullptr;
  const workloads::Step* anchor_step_ = nullptr;
  std::uint32_t anchored_ = 0;        ///< the step that it ended last
  std::list<Moment> moments_;         ///< oldest first
  std::optional<Recording> recording_;  ///< since the latest moment
  std::map<std::array<std::uint64_t, 2>, std::uint64_t> looks_by_hash_;  ///< the last look with each
  std::uint64_t looks_ = 0;
  std::uint64_t misses_ = 0;          ///< looks since a state was seen again
  std::vector<Done> done_;            ///< since the oldest moment
  std::uint64_t events_at_look_ = 0;
  std::uint64_t bytes_at_look_ = 0;
  std::int32_t last_iteration_ = -1;
  std::uint64_t periods_ = 0;
  Cycle skipped_cycles_ = 0;
  Cycle longest_ = 0;
  Cycle period_ = 0;
  std::uint64_t skipped_operations_ = 0;
  bool seen_again_ = false;
  bool too_much_recorded_ = false;
};

}  // namespace wafersim::sim
