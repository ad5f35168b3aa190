#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "workloads/trace.h"

namespace wafersim::workloads {

/// Bytes of each memory class, and in the last place of all of them.
using MemorySums = std::array<std::int64_t, kMemoryClasses + 1>;

inline MemorySums operator+(MemorySums a, const MemorySums& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

inline MemorySums times(MemorySums a, std::int64_t factor) {
  for (std::int64_t& each : a) each *= factor;
  return a;
}

/// Each for itself.
inline MemorySums largest(MemorySums a, const MemorySums& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
  return a;
}

inline MemorySums sums_of(std::size_t memory_class, Bytes bytes) {
  MemorySums sums{};
  sums[memory_class] = static_cast<std::int64_t>(bytes);
  sums.back() = sums[memory_class];
  return sums;
}

/// What the bound of a tile's memory needs to know of a step (bound_tiles()).
struct StepMemory {
  MemorySums peak{};           ///< above the level at which the step opens
  MemorySums change{};         ///< from its opening to its end
  MemorySums detached_free{};  ///< bytes that may be freed later than that
  Bytes early_of_all = 0;      ///< messages that may come before the step takes part in its collectives
  Bytes early_of_one = 0;      ///< of its largest collective
  Bytes pipeline_receives = 0;
};

StepMemory step_memory(const StepTemplate& step);
/// Of all templates of a trace. Those that hold the same in the same order, whoever they exchange messages with, are looked at
/// once.
std::vector<StepMemory> step_memories(const Trace& trace);

}  // namespace wafersim::workloads
