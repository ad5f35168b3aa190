#pragma once

#include <cstddef>
#include <vector>

#include "sim/measurements.h"

namespace wafersim::sim {

/// What one tile holds over time, in a bounded number of rows. As long as the changes fit, every cycle that leaves
/// another level than the one before is a row. When they do not, time is cut into windows of equal length, a power of
/// two of cycles, doubled until they fit, and a row has the largest levels of its window. Which changes came is all that
/// counts, not when they were entered.
class MemoryWindows {
 public:
  /// `most_rows` at least 2; rows() has at most two more, for the start and the end.
  MemoryWindows(const MemoryLevels& start, std::size_t most_rows);

  /// Cycle `cycle` ends with these levels; cycles ascending.
  void change(Cycle cycle, const MemoryLevels& levels);

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

  std::size_t put(const Entry& entry, std::size_t count);
  void widen();

  MemoryLevels start_;
  std::size_t most_rows_;
  Cycle window_ = 1;
  Cycle window_end_ = 0;  ///< of the last entry
  std::vector<Entry> entries_;
};

}  // namespace wafersim::sim
