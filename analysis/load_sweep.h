#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/rational.h"
#include "sim/traffic_measurement.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::analysis {

/// A mean over runs with different random numbers, and half the width of its 95 % confidence interval (Student's t); the
/// latter is absent with one run.
struct Estimate {
  double mean = 0;
  std::optional<double> half_width;
};

/// What one offered load gave, over all its runs.
struct LoadPoint {
  Rational load;                   ///< as asked for
  int runs = 0;
  Estimate offered_load;           ///< as made
  Estimate accepted_load;
  Estimate latency;                ///< of packets, from creation; of the runs in which measured ones arrived
  Estimate network_latency;        ///< from injection
  Estimate max_link_utilization;
  sim::LatencyHistogram latencies; ///< of all runs
  double least_accepted = 1;       ///< smallest accepted / offered of a source in a run
  bool stable = true;              ///< every run was
  bool drained = true;
  std::uint64_t flit_hops = 0;     ///< these are sums
  std::uint64_t router_traversals = 0;
  std::uint64_t router_cycles = 0;
  Cycle cycles = 0;
  double cpu_seconds = 0;
};

using RunTraffic = std::function<sim::TrafficMeasurement(const Rational& load, std::uint64_t seed)>;

/// `runs` runs with the seeds from `seed` on.
LoadPoint measure_load(const Rational& load, int runs, std::uint64_t seed, const RunTraffic& run);

struct LoadSweep {
  std::vector<LoadPoint> points;      ///< all that was measured, by load
  std::optional<Rational> saturation; ///< the largest load that was stable; absent when none was
  double saturation_throughput = 0;   ///< the largest accepted load
};

/// Searches for the largest stable load below `bound` by halving, to spec.precision of itself, then measures spec.points
/// loads that divide the way to it evenly.
LoadSweep sweep_loads(const workloads::SweepSpec& spec, const Rational& bound, int runs, std::uint64_t seed,
                      const RunTraffic& run);

}  // namespace wafersim::analysis
