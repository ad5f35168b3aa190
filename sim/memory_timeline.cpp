#include "sim/memory_timeline.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace wafersim::sim {

MemoryLevels largest(const MemoryLevels& a, const MemoryLevels& b) {
  MemoryLevels result{{}, std::max(a.sram, b.sram), std::max(a.dram, b.dram), std::max(a.total, b.total)};
  for (std::size_t i = 0; i < a.by_class.size(); ++i) result.by_class[i] = std::max(a.by_class[i], b.by_class[i]);
  return result;
}

MemoryTimeline::MemoryTimeline(const MemoryLevels& start, std::size_t most_rows) : start_(start), most_rows_(most_rows) {
  require_invariant(most_rows >= 2, "a timeline has room for two rows");
}

void MemoryTimeline::change(Cycle cycle, const MemoryLevels& levels) {
  if (keeps_changes_) changes_.push_back({cycle, levels});
  if (levels == (entries_.empty() ? start_ : entries_.back().last)) return;
  add({cycle, levels, levels}, entries_);
  // Windows with a peak that does not last have a second row, for what comes after it.
  while (entries_.size() > (window_ == 1 ? most_rows_ : most_rows_ / 2)) widen();
}

/// Adds an entry of the same or a shorter window.
void MemoryTimeline::add(const Entry& entry, std::vector<Entry>& to) const {
  const Cycle start = entry.start / window_ * window_;
  if (!to.empty() && to.back().start == start) {
    to.back().highest = largest(to.back().highest, entry.highest);
    to.back().last = entry.last;
    return;
  }
  // Until the first change of a window its cycles end with what was held before.
  const MemoryLevels& before = to.empty() ? start_ : to.back().last;
  to.push_back({start, entry.start > start ? largest(before, entry.highest) : entry.highest, entry.last});
}

void MemoryTimeline::widen() {
  window_ *= 2;
  std::vector<Entry> wider;
  for (const Entry& entry : entries_) add(entry, wider);
  entries_ = std::move(wider);
}

std::vector<MemoryRow> MemoryTimeline::rows(Cycle end) const {
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
