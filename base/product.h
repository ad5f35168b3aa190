#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace wafersim {

/// A product that may not fit 64 bits, such as the FLOPs of a large batch.
struct Product {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  double to_double() const { return static_cast<double>(a) * static_cast<double>(b); }
  /// The exact value, if it fits.
  std::optional<std::uint64_t> exact() const {
    if (a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a) return std::nullopt;
    return a * b;
  }
};

}  // namespace wafersim
