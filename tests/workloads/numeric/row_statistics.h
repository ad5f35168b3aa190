#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <tuple>

namespace wafersim::workloads::numeric {

/// Of a row of attention scores over the keys that came by so far.
struct RowStatistics {
  double maximum = -std::numeric_limits<double>::infinity();
  double sum = 0;  ///< of exp(score - maximum)
};

/// What the attention of one tile keeps from its forward to its backward pass: by layer, microbatch,
/// iteration, row and head.
using AttentionStatistics =
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::uint64_t, std::uint64_t>,
             RowStatistics>;

}  // namespace wafersim::workloads::numeric
