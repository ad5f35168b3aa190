#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "sim/measurements.h"

namespace wafersim::sim {

/// What one tile holds over time, in a bounded number of rows. As long as the changes fit, every cycle that leaves
/// another level than the one before is a row. When they do not, time is cut into windows of equal length, a power of
/// two of cycles, doubled until they fit, and a row has the largest levels of its window.
class MemoryTimeline {
 public:
  /// `most_rows` at least 2; rows() has at most two more, for the start and the end. `window`, a power of two, is the
  /// length to begin with: more than 1 gives up exact rows for less work.
  MemoryTimeline(const MemoryLevels& start, std::size_t most_rows, Cycle window = 1);

  /// Cycle `cycle` ends with these levels; cycles ascending.
  void change(Cycle cycle, const MemoryLevels& levels);

  // Periods that come again, see Recorders.
  void begin_period() { in_period_ = true; }
  /// What changed since then changes `times` times more, each `length` cycles later.
  void end_period(Cycle length, std::uint64_t times);
  void drop_period();

  /// The levels before the first step, the rows, the levels when the run ends in cycle `end`.
  std::vector<MemoryRow> rows(Cycle end) const;

  /// Its state, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive);

 private:
  struct Entry {
    Cycle start = 0;       ///< of its window
    MemoryLevels highest;  ///< at the end of a cycle of the window
    MemoryLevels last;     ///< at the end of the window
  };
  struct Change {
    Cycle cycle = 0;
    MemoryLevels levels;
  };

  std::size_t put(const Entry& entry, std::size_t count);
  void widen();

  MemoryLevels start_;
  std::size_t most_rows_;
  Cycle window_;
  Cycle window_end_ = 0;  ///< of the last entry
  std::vector<Entry> entries_;
  bool in_period_ = false;
  std::vector<Change> changes_;  ///< in the period
};

}  // namespace wafersim::sim
