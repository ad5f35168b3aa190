#include "analysis/link_calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

namespace wafersim::analysis {
namespace {

constexpr double kStep = 1.05;
constexpr int kMostSteps = 28;  // kStep to this power is 3.92

/// Positions of both factors: powers of kStep. Multiplied out, so that they are the same on every machine.
using Place = std::pair<int, int>;
double factor(int steps) {
  double result = 1;
  for (int i = 0; i < std::abs(steps); ++i) result *= kStep;
  return steps < 0 ? 1 / result : result;
}

Rational rounded(double value) {
  constexpr std::int64_t kParts = 4096;
  return {std::max<std::int64_t>(1, std::llround(value * kParts)), kParts};
}

}  // namespace

models::HardwareModel with_link_factors(const models::HardwareModel& hardware, const LinkFactors& factors) {
  models::HardwareModel scaled = hardware;
  for (Rational* const bandwidth :
       {&scaled.link_bytes_per_cycle, &scaled.injection_bytes_per_cycle, &scaled.ejection_bytes_per_cycle}) {
    *bandwidth = *bandwidth * rounded(factors.bandwidth);
  }
  const auto scale = [&](Cycle& cycles) {
    cycles = static_cast<Cycle>(std::llround(static_cast<double>(cycles) * factors.latency));
  };
  for (Cycle* const cycles : {&scaled.router_cycles, &scaled.turn_cycles, &scaled.link_cycles, &scaled.border_cycles,
                              &scaled.injection_cycles, &scaled.ejection_cycles, &scaled.message_overhead}) {
    scale(*cycles);
  }
  for (std::optional<Cycle>* const cycles : {&scaled.wafer_cycles, &scaled.wrap_cycles, &scaled.express_cycles}) {
    if (*cycles) scale(**cycles);
    if (*cycles == Cycle{0}) *cycles = 1;
  }
  scaled.link_cycles = std::max<Cycle>(scaled.link_cycles, 1);
  return scaled;
}

LinkFactors fit_link_factors(const std::function<double(const LinkFactors&)>& error) {
  std::map<Place, double> known;
  const auto at = [&](const Place& place) {
    const auto [found, fresh] = known.try_emplace(place, 0);
    if (fresh) found->second = error({factor(place.first), factor(place.second)});
    return found->second;
  };
  Place best{0, 0};
  double least = at(best);
  for (int step = 8; step != 0; step /= 2) {
    for (bool moved = true; moved;) {
      moved = false;
      for (const Place& way : {Place{0, step}, Place{0, -step}, Place{step, 0}, Place{-step, 0}}) {
        const Place next{best.first + way.first, best.second + way.second};
        if (std::abs(next.first) > kMostSteps || std::abs(next.second) > kMostSteps) continue;
        if (const double there = at(next); there < least) {
          least = there;
          best = next;
          moved = true;
        }
      }
    }
  }
  return {factor(best.first), factor(best.second)};
}

}  // namespace wafersim::analysis
