#include "workloads/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace wafersim::workloads {

namespace {

/// The order in which automatic placement fills SRAM: what is touched most often for its size comes first. A block of a
/// stream is read as soon as it has come, optimizer states once an iteration.
constexpr std::array kFillOrder = {MemoryClass::stream_buffers,        MemoryClass::communication_buffers,
                                   MemoryClass::parameters,            MemoryClass::gradients,
                                   MemoryClass::activations,           MemoryClass::optimizer};

MemoryPlace place_of(const PlacementSpec& placement, MemoryClass memory_class) {
  const auto found = placement.find(memory_class);
  return found == placement.end() ? MemoryPlace::automatic : found->second;
}

Bytes over(Bytes held, Bytes capacity) { return held > capacity ? held - capacity : 0; }

/// The bytes of each class in one of the memories.
std::array<Bytes, kMemoryClasses> split(const TileBound& bound, const MemoryLayout& layout, bool dram) {
  std::array<Bytes, kMemoryClasses> result{};
  for (std::size_t c = 0; c < kMemoryClasses; ++c) {
    result[c] = dram ? layout[c].in_dram(bound.by_class[c]) : layout[c].in_sram(bound.by_class[c]);
  }
  return result;
}

/// Parts of the classes at their largest, but no more than the tile holds at all.
Bytes sum_of(const std::array<Bytes, kMemoryClasses>& parts, Bytes most) {
  Bytes sum = 0;
  for (const Bytes bytes : parts) sum += bytes;
  return std::min(sum, most);
}

}  // namespace

MemoryLayout choose_layout(const PlacementSpec& placement, const TileBound& bound,
                           const models::HardwareModel& hardware) {
  MemoryLayout layout{};
  Bytes used = 0;
  for (const auto& [memory_class, place] : placement) {
    const auto index = static_cast<std::size_t>(memory_class);
    if (place == MemoryPlace::dram && hardware.dram_capacity == 0) {
      throw PlanError(fmt::format("placement.{}: dram, but the wafer has no DRAM; use sram or auto",
                                  to_string(memory_class)));
    }
    if (place == MemoryPlace::dram) layout[index] = SramQuota(0);
    if (place == MemoryPlace::sram) used += bound.by_class[index];
  }
  if (hardware.dram_capacity == 0) return layout;
  for (const MemoryClass memory_class : kFillOrder) {
    if (place_of(placement, memory_class) != MemoryPlace::automatic) continue;
    const auto index = static_cast<std::size_t>(memory_class);
    const Bytes room = over(hardware.sram_capacity, used);
    // A message lands in one memory.
    const bool splits = memory_class != MemoryClass::communication_buffers;
    if (bound.by_class[index] > room) layout[index] = SramQuota(splits ? room : 0);
    used += layout[index].in_sram(bound.by_class[index]);
  }
  return layout;
}

void place_memory(Trace& trace, const std::vector<TileBound>& bounds, const PlacementSpec& placement,
                  const models::HardwareModel& hardware) {
  std::map<MemoryLayout, std::uint32_t> known;
  trace.layouts.clear();
  for (std::size_t i = 0; i < trace.tiles.size(); ++i) {
    const auto [found, fresh] = known.emplace(choose_layout(placement, bounds[i], hardware),
                                              static_cast<std::uint32_t>(trace.layouts.size()));
    if (fresh) trace.layouts.push_back(found->first);
    trace.tiles[i].layout = found->second;
  }
}

MemoryBound memory_bound(const Trace& trace, const std::vector<TileBound>& bounds,
                         const models::HardwareModel& hardware) {
  MemoryBound result;
  result.sram_capacity = hardware.sram_capacity;
  result.dram_capacity = hardware.dram_capacity_per_tile();
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const TileBinding& binding = trace.tiles[i];
    const TileBound& bound = bounds[i];
    for (std::size_t c = 0; c < kMemoryClasses; ++c) {
      result.by_class[c] = std::max(result.by_class[c], bound.by_class[c]);
    }
    if (result.peak_tile == kNoTile || bound.total > result.peak_bytes) {
      result.peak_bytes = bound.total;
      result.peak_tile = binding.tile;
    }
    for (const bool dram : {false, true}) {
      const auto parts = split(bound, trace.layouts[binding.layout], dram);
      const Bytes held = sum_of(parts, bound.total);
      const Bytes capacity = dram ? result.dram_capacity : result.sram_capacity;
      Bytes& peak = dram ? result.peak_dram_bytes : result.peak_sram_bytes;
      peak = std::max(peak, held);
      for (std::size_t c = 0; c < kMemoryClasses && !dram; ++c) {
        result.sram_by_class[c] = std::max(result.sram_by_class[c], parts[c]);
      }
      if (over(held, capacity) > (result.overflow ? result.overflow->held - result.overflow->capacity : 0)) {
        result.overflow = {binding.tile, dram, held, capacity, parts, step_text(trace, binding, bound.step)};
      }
    }
  }
  result.fits = !result.overflow;
  return result;
}

}  // namespace wafersim::workloads
