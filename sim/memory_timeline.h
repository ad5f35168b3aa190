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
  /// `most_rows` at least 2; rows() has at most two more, for the start and the end.
  MemoryTimeline(const MemoryLevels& start, std::size_t most_rows);

  /// Cycle `cycle` ends with these levels; cycles ascending.
  void change(Cycle cycle, const MemoryLevels& levels);

  struct Change {
    Cycle cycle = 0;
    MemoryLevels levels;
  };
  /// From now on the calls of change() are kept, too.
  void keep_changes() { keeps_changes_ = true; }
  std::vector<Change>& changes() { return changes_; }

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

  void add(const Entry& entry, std::vector<Entry>& to) const;
  void widen();

  MemoryLevels start_;
  std::size_t most_rows_;
  Cycle window_ = 1;
  std::vector<Entry> entries_;
  bool keeps_changes_ = false;
  std::vector<Change> changes_;
};

}  // namespace wafersim::sim
