#include "analysis/load_sweep.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace wafersim::analysis {
namespace {

/// 97.5 % quantiles of Student's t with 1, 2, ... degrees of freedom; beyond the table that of the normal distribution.
double student_t(std::size_t degrees) {
  constexpr std::array kQuantiles = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                     2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                     2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return degrees <= kQuantiles.size() ? kQuantiles[degrees - 1] : 1.960;
}

Estimate estimate(const std::vector<double>& values) {
  Estimate result;
  if (values.empty()) return result;
  for (const double value : values) result.mean += value;
  const auto count = static_cast<double>(values.size());
  result.mean /= count;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.half_width = student_t(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return result;
}

/// `load` with at most six decimals, so that it can be written and asked for again.
Rational rounded(const Rational& load) {
  constexpr std::int64_t kParts = 1'000'000;
  const auto parts = static_cast<std::int64_t>(load.to_double() * static_cast<double>(kParts));
  return {std::max<std::int64_t>(parts, 1), kParts};
}

}  // namespace

LoadPoint measure_load(const Rational& load, int runs, std::uint64_t seed, const RunTraffic& run) {
  LoadPoint point;
  point.load = load;
  point.runs = runs;
  std::vector<double> offered, accepted, latency, network, busiest;
  for (int i = 0; i < runs; ++i) {
    const sim::TrafficMeasurement one = run(load, seed + static_cast<std::uint64_t>(i));
    offered.push_back(one.offered_load);
    accepted.push_back(one.accepted_load);
    if (one.latency.count() != 0) {
      latency.push_back(one.latency.mean());
      network.push_back(one.network_latency.mean());
    }
    busiest.push_back(one.max_link_utilization);
    point.latencies.add(one.latency);
    point.least_accepted = std::min(point.least_accepted, one.least_accepted);
    point.stable = point.stable && one.stable;
    point.drained = point.drained && one.drained;
    point.flit_hops += one.flit_hops;
    point.router_traversals += one.router_traversals;
    point.router_cycles += one.router_cycles;
    point.cycles += one.cycles;
    point.cpu_seconds += one.cpu_seconds;
  }
  point.offered_load = estimate(offered);
  point.accepted_load = estimate(accepted);
  point.latency = estimate(latency);
  point.network_latency = estimate(network);
  point.max_link_utilization = estimate(busiest);
  return point;
}

LoadSweep sweep_loads(const workloads::SweepSpec& spec, const Rational& bound, int runs, std::uint64_t seed,
                      const RunTraffic& run) {
  LoadSweep sweep;
  const auto measure = [&](const Rational& load) -> const LoadPoint& {
    sweep.points.push_back(measure_load(load, runs, seed, run));
    return sweep.points.back();
  };
  Rational low(0);
  Rational high = rounded(bound);
  if (measure(high).stable) {
    low = high;
  } else {
    // A load below this is as good as none.
    const Rational least = rounded(bound / Rational(1000));
    while (high - low > spec.precision * high && high > least) {
      const Rational middle = rounded((low + high) / Rational(2));
      if (middle == low || middle == high) break;
      (measure(middle).stable ? low : high) = middle;
    }
  }
  if (low > Rational(0)) sweep.saturation = low;
  for (int i = 1; i <= spec.points; ++i) {
    const Rational load = rounded(low * Rational(i, spec.points + 1));
    const bool known = std::any_of(sweep.points.begin(), sweep.points.end(), [&](const LoadPoint& p) { return p.load == load; });
    if (low > Rational(0) && !known) measure(load);
  }
  std::sort(sweep.points.begin(), sweep.points.end(), [](const LoadPoint& a, const LoadPoint& b) { return a.load < b.load; });
  for (const LoadPoint& point : sweep.points) {
    sweep.saturation_throughput = std::max(sweep.saturation_throughput, point.accepted_load.mean);
  }
  return sweep;
}

}  // namespace wafersim::analysis
