#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/units.h"
#include "workloads/plan.h"

/// Where the memory classes of a tile live.
namespace wafersim::workloads {

/// How much of a class may lie in SRAM. What the class holds beyond it lies in DRAM, spread evenly over all that it
/// holds: of bytes that are read or written as many pass through DRAM in proportion.
class SramQuota {
 public:
  /// All of it.
  constexpr SramQuota() = default;
  constexpr explicit SramQuota(Bytes bytes) : bytes_(bytes) {}

  /// Of `held` bytes, those in SRAM. They may be below 0 while the changes of a cycle are under way.
  constexpr std::int64_t in_sram(std::int64_t held) const {
    return whole() ? held : std::min(held, static_cast<std::int64_t>(bytes_));
  }
  constexpr Bytes in_sram(Bytes held) const { return std::min(held, bytes_); }
  constexpr Bytes in_dram(Bytes held) const { return held - in_sram(held); }
  /// Of `moved` bytes that are read or written while `held` are there, those that pass through DRAM, rounded up.
  Bytes through_dram(Bytes moved, Bytes held) const;
  constexpr bool whole() const { return bytes_ == kAll; }
  auto operator<=>(const SramQuota&) const = default;

 private:
  static constexpr Bytes kAll = ~Bytes{0};
  Bytes bytes_ = kAll;
};

/// By class.
using MemoryLayout = std::array<SramQuota, kMemoryClasses>;

}  // namespace wafersim::workloads
