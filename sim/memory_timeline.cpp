#include "sim/memory_timeline.h"

#include <algorithm>
#include <utility>

namespace wafersim::sim {
namespace {

constexpr std::size_t kBytesPerRow = 128;

/// Small numbers of either sign are small.
std::uint64_t fold_sign(std::uint64_t difference) { return (difference << 1) ^ (difference >> 63 != 0 ? ~std::uint64_t{0} : 0); }
std::uint64_t unfold_sign(std::uint64_t number) { return (number >> 1) ^ (0 - (number & 1)); }

}  // namespace

MemoryTimeline::MemoryTimeline(const MemoryLevels& start, std::size_t most_rows) : start_(start), most_rows_(most_rows) {
  written_.levels = start;
}

void MemoryTimeline::change(Cycle cycle, const MemoryLevels& levels) {
  if (windows_) windows_->change(cycle, levels);
  if (in_period_) return write(cycle, levels);  // even where nothing changes: what comes after the period may differ from it
  if (windows_ || levels == written_.levels) return;
  write(cycle, levels);
  bound();
}

/// What is too long becomes rows.
void MemoryTimeline::bound() {
  if (bytes_.size() <= kBytesPerRow * most_rows_) return;
  windows_ = windows();
  bytes_ = {};
  written_.byte = 0;
  repetitions_ = {};
}

void MemoryTimeline::begin_period() {
  in_period_ = true;
  period_ = written_;
}

void MemoryTimeline::end_period(Cycle length, std::uint64_t times) {
  const std::size_t end = bytes_.size();
  if (end != period_.byte && !windows_) repetitions_.push_back({period_, end, length, times});
  for (std::uint64_t k = 1; windows_ && k <= times; ++k) enter(*windows_, period_, end, length * k);
  drop_period();
}

void MemoryTimeline::drop_period() {
  in_period_ = false;
  if (!windows_) return bound();
  bytes_.clear();
  written_.byte = 0;
}

/// The cycles since the change before, which numbers are others than then, and by how much.
void MemoryTimeline::write(Cycle cycle, const MemoryLevels& levels) {
  constexpr std::size_t kClasses = workloads::kMemoryClasses;
  write_number(cycle - written_.cycle);
  unsigned changed = levels.sram != written_.levels.sram ? 1U << kClasses : 0;
  for (std::size_t i = 0; i < kClasses; ++i) changed |= levels.by_class[i] != written_.levels.by_class[i] ? 1U << i : 0;
  write_number(changed);
  for (std::size_t i = 0; i < kClasses; ++i) {
    if ((changed >> i & 1) != 0) write_number(fold_sign(levels.by_class[i] - written_.levels.by_class[i]));
  }
  if ((changed >> kClasses) != 0) write_number(fold_sign(levels.sram - written_.levels.sram));
  written_ = {bytes_.size(), cycle, levels};
}

/// Seven bits a byte, the lowest first; the last byte is below 128.
void MemoryTimeline::write_number(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<std::uint8_t>(number | 0x80));
  bytes_.push_back(static_cast<std::uint8_t>(number));
}

std::uint64_t MemoryTimeline::read_number(std::size_t& byte) const {
  std::uint64_t number = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint64_t bits = bytes_[byte++];
    number |= (bits & 0x7f) << shift;
    if (bits < 0x80) return number;
  }
}

void MemoryTimeline::read(Place& place) const {
  constexpr std::size_t kClasses = workloads::kMemoryClasses;
  place.cycle += read_number(place.byte);
  const std::uint64_t changed = read_number(place.byte);
  for (std::size_t i = 0; i < kClasses; ++i) {
    if ((changed >> i & 1) == 0) continue;
    const Bytes difference = unfold_sign(read_number(place.byte));
    place.levels.by_class[i] += difference;
    place.levels.total += difference;
  }
  if ((changed >> kClasses) != 0) place.levels.sram += unfold_sign(read_number(place.byte));
  place.levels.dram = place.levels.total - place.levels.sram;
}

/// What lies from a place on, up to a byte, `later` than it is there. Returns the place behind it.
MemoryTimeline::Place MemoryTimeline::enter(MemoryWindows& windows, Place from, std::size_t end, Cycle later) const {
  while (from.byte != end) {
    read(from);
    windows.change(from.cycle + later, from.levels);
  }
  return from;
}

MemoryWindows MemoryTimeline::windows() const {
  MemoryWindows result(start_, most_rows_);
  Place place;
  place.levels = start_;
  for (const Repetition& each : repetitions_) {
    place = enter(result, place, each.end, 0);
    for (std::uint64_t k = 1; k <= each.times; ++k) enter(result, each.first, each.end, each.length * k);
  }
  enter(result, place, bytes_.size(), 0);
  return result;
}

std::vector<MemoryRow> MemoryTimeline::rows(Cycle end) const { return windows_ ? windows_->rows(end) : windows().rows(end); }

}  // namespace wafersim::sim
