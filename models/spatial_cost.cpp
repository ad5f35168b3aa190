#include "models/spatial_cost.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.h"

namespace wafersim::models {
namespace {

constexpr int kLongestLine = 1024;
constexpr std::int64_t kNoTree = std::numeric_limits<std::int64_t>::max() / 4;

std::int64_t whole(Cycle cycles) { return static_cast<std::int64_t>(cycles); }

Cycle nearest(const Rational& cycles) { return (cycles + Rational(1, 2)).floor(); }

Rational exact_cost(const HardwareModel& hardware, const SpatialTerms& terms) {
  const Rational rate = hardware.link_bytes_per_cycle;
  const std::int64_t hop = whole(hardware.link_cycles + hardware.router_cycles);
  const std::int64_t overhead = whole(hardware.injection_cycles + hardware.router_cycles + hardware.ejection_cycles +
                                      hardware.stream_cycles + 2 * hardware.message_overhead);
  const Rational spread = terms.energy / Rational(terms.links) / rate + Rational(terms.distance * hop);
  return std::max(terms.contention / rate, spread) + Rational(overhead * terms.depth);
}

/// Least sum of the distances over which whole vectors go when 1 .. tiles tiles reduce to the first one with trees one level
/// deeper than `shallower` has them: what comes last to the root is from tile i and brings all behind it.
std::vector<std::int64_t> one_level_deeper(const std::vector<std::int64_t>& shallower) {
  std::vector<std::int64_t> least(shallower.size(), kNoTree);
  least[1] = 0;
  for (std::size_t tiles = 2; tiles < least.size(); ++tiles) {
    for (std::size_t i = 1; i < tiles; ++i) {
      least[tiles] = std::min(least[tiles], least[i] + shallower[tiles - i] + static_cast<std::int64_t>(i));
    }
  }
  return least;
}

}  // namespace

Cycle spatial_cost(const HardwareModel& hardware, const SpatialTerms& terms) {
  require_invariant(terms.links >= 1, "a collective uses no link");
  return nearest(exact_cost(hardware, terms));
}

std::optional<Cycle> line_reduce_bound(const HardwareModel& hardware, int tiles, Bytes bytes) {
  require_invariant(tiles >= 1, "a collective has no members");
  if (tiles == 1) return 0;
  if (tiles > kLongestLine) return std::nullopt;
  const std::int64_t links = tiles - 1;
  const Rational vector(static_cast<std::int64_t>(bytes));
  const auto cost = [&](std::int64_t vector_hops, std::int64_t depth) {
    return exact_cost(hardware, {vector, vector * Rational(vector_hops), links, links, depth});
  };
  std::vector<std::int64_t> least(static_cast<std::size_t>(tiles) + 1, kNoTree);
  least[1] = 0;
  std::optional<Rational> best;
  // No tree needs less energy than the chain; deeper ones than the chain do not exist.
  for (std::int64_t depth = 1; depth <= links; ++depth) {
    if (best && cost(links, depth) >= *best) break;
    least = one_level_deeper(least);
    const Rational at_depth = cost(least.back(), depth);
    best = best ? std::min(*best, at_depth) : at_depth;
  }
  return nearest(*best);
}

}  // namespace wafersim::models
