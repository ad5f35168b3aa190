#include "sim/memory_windows.h"

#include <algorithm>

#include "base/error.h"

namespace wafersim::sim {

MemoryLevels largest(const MemoryLevels& a, const MemoryLevels& b) {
  MemoryLevels result{{}, std::max(a.sram, b.sram), std::max(a.dram, b.dram), std::max(a.total, b.total)};
  for (std::size_t i = 0; i < a.by_class.size(); ++i) result.by_class[i] = std::max(a.by_class[i], b.by_class[i]);
  return result;
}

MemoryWindows::MemoryWindows(const MemoryLevels& start, std::size_t most_rows) : start_(start), most_rows_(most_rows) {
  require_invariant(most_rows >= 2, "a timeline has room for two rows");
}

void MemoryWindows::change(Cycle cycle, const MemoryLevels& levels) {
  if (cycle < window_end_) {
    Entry& entry = entries_.back();
    entry.highest = largest(entry.highest, levels);
    entry.last = levels;
    return;
  }
  if (levels == (entries_.empty() ? start_ : entries_.back().last)) return;
  if (entries_.empty()) entries_.reserve(most_rows_ + 1);  // its pages are touched as they are needed
  entries_.emplace_back();
  put({cycle, levels, levels}, entries_.size() - 1);
  // Windows with a peak that does not last have a second row, for what comes after it.
  while (entries_.size() > (window_ == 1 ? most_rows_ : most_rows_ / 2)) widen();
  window_end_ = entries_.back().start + window_;
}

/// Puts an entry of the same or a shorter window behind the first `count`, or into the last of them; returns how many they
/// are then.
std::size_t MemoryWindows::put(const Entry& entry, std::size_t count) {
  const Cycle start = entry.start & ~(window_ - 1);  // a power of two
  if (count > 0 && entries_[count - 1].start == start) {
    entries_[count - 1].highest = largest(entries_[count - 1].highest, entry.highest);
    entries_[count - 1].last = entry.last;
    return count;
  }
  // Until the first change of a window its cycles end with what was held before.
  const MemoryLevels& before = count == 0 ? start_ : entries_[count - 1].last;
  entries_[count] = {start, entry.start > start ? largest(before, entry.highest) : entry.highest, entry.last};
  return count + 1;
}

void MemoryWindows::widen() {
  window_ *= 2;
  std::size_t count = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) count = put(Entry(entries_[i]), count);
  entries_.resize(count);
}

std::vector<MemoryRow> MemoryWindows::rows(Cycle end) const {
  std::vector<MemoryRow> result{{0, 1, start_}};
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    result.push_back({entry.start, window_, entry.highest});
    const Cycle behind = entry.start + window_;
    const bool goes_on = i + 1 == entries_.size() ? behind <= end : behind < entries_[i + 1].start;
    if (entry.last != entry.highest && goes_on) result.push_back({behind, window_, entry.last});
  }
  result.push_back({end, 1, entries_.empty() ? start_ : entries_.back().last});
  return result;
}

}  // namespace wafersim::sim
