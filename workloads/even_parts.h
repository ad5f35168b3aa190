#pragma once

#include <cstdint>

namespace wafersim::workloads {

/// Part `index` of `total` things that are cut into `parts`: the first ones have one more.
constexpr std::uint64_t even_part(std::int64_t total, int parts, int index) {
  return static_cast<std::uint64_t>(total / parts + (index < total % parts ? 1 : 0));
}

}  // namespace wafersim::workloads
