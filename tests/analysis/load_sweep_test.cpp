#include "analysis/load_sweep.h"

#include <gtest/gtest.h>

#include <vector>

namespace wafersim::analysis {
namespace {

/// A run in which packets of these latencies arrived.
sim::TrafficMeasurement run_of(const std::vector<Cycle>& latencies) {
  sim::TrafficMeasurement one;
  for (const Cycle latency : latencies) one.latency.add(latency);
  one.stable = one.drained = true;
  return one;
}

/// Means of 8, 10 and 12 have a standard deviation of 2; Student's t with two degrees of freedom is 4.303.
TEST(MeasureLoad, MeansOverRunsHaveAConfidenceInterval) {
  std::vector<std::uint64_t> seeds;
  const LoadPoint point = measure_load(Rational(1, 10), 3, 7, [&](const Rational&, std::uint64_t seed) {
    seeds.push_back(seed);
    const Cycle mean = 8 + 2 * (seed - 7);
    return run_of({mean - 1, mean + 1});
  });
  EXPECT_EQ(seeds, (std::vector<std::uint64_t>{7, 8, 9}));
  EXPECT_DOUBLE_EQ(point.latency.mean, 10);
  EXPECT_NEAR(*point.latency.half_width, 4.303 * 2 / 1.7320508, 1e-6);
  EXPECT_EQ(point.latencies.count(), 6U);
}

TEST(MeasureLoad, RunsWithoutArrivalsDoNotLowerTheLatency) {
  const auto run = [](const Rational&, std::uint64_t seed) {
    return seed == 1 ? run_of({20}) : run_of({});
  };
  EXPECT_DOUBLE_EQ(measure_load(Rational(1, 10), 2, 1, run).latency.mean, 20);
  const LoadPoint none = measure_load(Rational(1, 10), 2, 5, run);
  EXPECT_EQ(none.latencies.count(), 0U);
  EXPECT_EQ(none.latency.mean, 0);
  EXPECT_FALSE(none.latency.half_width.has_value());
}

/// A network that is stable up to a load and accepts no more than that.
RunTraffic saturating_at(const Rational& limit) {
  return [limit](const Rational& load, std::uint64_t) {
    sim::TrafficMeasurement one = run_of({10});
    one.stable = load <= limit;
    one.accepted_load = std::min(load, limit).to_double();
    return one;
  };
}

TEST(SweepLoads, FindsTheLargestStableLoadToItsPrecision) {
  workloads::SweepSpec spec;
  for (const Rational limit : {Rational(1, 3), Rational(4, 10), Rational(1, 100)}) {
    const LoadSweep sweep = sweep_loads(spec, Rational(1, 2), 1, 1, saturating_at(limit));
    ASSERT_TRUE(sweep.saturation.has_value());
    EXPECT_LE(*sweep.saturation, limit);
    EXPECT_GE(*sweep.saturation * (Rational(1) + Rational(2) * spec.precision), limit);
    EXPECT_NEAR(sweep.saturation_throughput, limit.to_double(), 1e-12);
  }
}

TEST(SweepLoads, MeasuresLoadsOnTheWayInOrder) {
  workloads::SweepSpec spec;
  spec.points = 4;
  const LoadSweep sweep = sweep_loads(spec, Rational(1, 2), 1, 1, saturating_at(Rational(1)));
  EXPECT_EQ(*sweep.saturation, Rational(1, 2));
  std::vector<Rational> loads;
  for (const LoadPoint& point : sweep.points) loads.push_back(point.load);
  EXPECT_EQ(loads, (std::vector{Rational(1, 10), Rational(2, 10), Rational(3, 10), Rational(4, 10), Rational(1, 2)}));
}

TEST(SweepLoads, SaysWhenNoLoadIsStable) {
  const LoadSweep sweep = sweep_loads({}, Rational(1, 2), 1, 1, saturating_at(Rational(0)));
  EXPECT_FALSE(sweep.saturation.has_value());
  EXPECT_FALSE(sweep.points.empty());
}

}  // namespace
}  // namespace wafersim::analysis
