#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/measurements.h"
#include "sim/memory_windows.h"

namespace wafersim::sim {

/// What one tile holds over time. Changes are kept as they come, in a few bytes each, and become rows (MemoryWindows) when
/// somebody asks for them: which tiles those are is known at the end of a run only. What periods that come again change is kept
/// once. Where there are too many changes for that, they become rows at once.
class MemoryTimeline {
 public:
  /// The arguments are those of MemoryWindows. What is kept of changes takes no more than the rows may.
  MemoryTimeline(const MemoryLevels& start, std::size_t most_rows);

  /// Cycle `cycle` ends with these levels; cycles ascending.
  void change(Cycle cycle, const MemoryLevels& levels);

  // Periods that come again, see Recorders.
  void begin_period();
  /// What changed since then changes `times` times more, each `length` cycles later.
  void end_period(Cycle length, std::uint64_t times);
  void drop_period();

  /// The levels before the first step, the rows, the levels when the run ends in cycle `end`.
  std::vector<MemoryRow> rows(Cycle end) const;

  /// Its state, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive);

 private:
  /// Where in the bytes one is: what was before, from which the next change is told.
  struct Place {
    std::size_t byte = 0;
    Cycle cycle = 0;
    MemoryLevels levels;
  };
  /// A stretch of the bytes that comes again behind its end.
  struct Repetition {
    Place first;
    std::size_t end = 0;
    Cycle length = 0;
    std::uint64_t times = 0;
  };

  void bound();
  void write(Cycle cycle, const MemoryLevels& levels);
  void write_number(std::uint64_t number);
  void read(Place& place) const;
  std::uint64_t read_number(std::size_t& byte) const;
  MemoryWindows windows() const;
  Place enter(MemoryWindows& windows, Place from, std::size_t end, Cycle later) const;

  MemoryLevels start_;
  std::size_t most_rows_;
  Place written_;                         ///< all of it
  std::vector<std::uint8_t> bytes_;
  std::vector<Repetition> repetitions_;   ///< ascending by their ends
  std::optional<MemoryWindows> windows_;  ///< instead: then only what a period changes is written
  bool in_period_ = false;
  Place period_;  ///< where it begins
};

}  // namespace wafersim::sim
