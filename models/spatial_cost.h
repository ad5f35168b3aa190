#pragma once

#include <optional>

#include "base/rational.h"
#include "models/hardware.h"

namespace wafersim::models {

/// What a collective asks of a mesh, in the terms of the cost model of "Near-Optimal Wafer-Scale Reduce" (Luczynski et al.,
/// HPDC 2024, arXiv 2404.15888, section 4).
struct SpatialTerms {
  Rational contention;  ///< C: bytes that the busiest tile receives or sends
  Rational energy;      ///< E: bytes times the links that they cross, summed
  std::int64_t links = 1;     ///< N: links that carry them
  std::int64_t distance = 0;  ///< L: links on the longest way of a byte, over all tiles that pass it on
  std::int64_t depth = 0;     ///< D: messages on the longest chain of messages
};

/// Cycles by that model: max(C, E / N + L) + overhead D, where bytes take their time on a link, a link of the distance L + R
/// cycles, and each message of the chain what it costs between core and network: Linj + R + Leject + the latency of a stream.
/// On a WSE (ramps of T_R cycles, one cycle a link, one for the core) that overhead is 2 T_R + 1. Rounded to the nearest.
Cycle spatial_cost(const HardwareModel& hardware, const SpatialTerms& terms);

/// Lower bound of the same model for every reduction of `bytes` bytes from each of `tiles` tiles of a line to its end (section
/// 5 of the paper): the smallest over all depths D of max(bytes, E(D) / N + L) + overhead D, with N = L = tiles - 1 and E(D) the
/// least energy of a reduction tree of depth D, by recursion. Rounded to the nearest. Nothing for lines of more than 1024
/// tiles, for which the recursion takes too long.
std::optional<Cycle> line_reduce_bound(const HardwareModel& hardware, int tiles, Bytes bytes);

}  // namespace wafersim::models
