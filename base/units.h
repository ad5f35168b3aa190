#pragma once

#include <cstdint>

namespace wafersim {

/// A point in time or a duration in whole cycles of the wafer clock. Cycles are the truth; seconds are derived.
using Cycle = std::uint64_t;

/// An amount of data. 1 GB is 10^9 bytes, 1 GiB is 2^30; texts always write the unit out.
using Bytes = std::uint64_t;

/// A cycle that never comes.
inline constexpr Cycle kNever = ~Cycle{0};

/// Index of a tile in its mesh, row-major from the north-west corner.
using TileId = std::uint32_t;
inline constexpr TileId kNoTile = ~TileId{0};

template <class T>
constexpr T ceil_div(T numerator, T denominator) {
  return numerator / denominator + (numerator % denominator != 0 ? 1 : 0);
}

}  // namespace wafersim
