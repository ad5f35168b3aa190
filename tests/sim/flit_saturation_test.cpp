// Ideal saturation bounds what a flit network accepts, and routers with four virtual channels come near it.
#include <gtest/gtest.h>

#include "analysis/ideal_saturation.h"
#include "analysis/load_sweep.h"
#include "tests/models/csv_table.h"
#include "tests/sim/flit_rig.h"

namespace wafersim::test {
namespace {

using workloads::SyntheticPattern;

/// Names of mesh_xy_saturation.csv; nothing for the uniform traffic without the node itself, which no pattern here is.
std::optional<SyntheticPattern> pattern_of(const std::string& name) {
  static const std::map<std::string, SyntheticPattern> kNames = {
      {"uniform_including_self", SyntheticPattern::uniform}, {"transpose", SyntheticPattern::transpose},
      {"bit_complement", SyntheticPattern::bit_complement},  {"tornado_x", SyntheticPattern::tornado_x},
      {"perfect_shuffle", SyntheticPattern::shuffle},        {"bit_reverse", SyntheticPattern::bit_reverse}};
  const auto at = kNames.find(name);
  return at == kNames.end() ? std::nullopt : std::optional(at->second);
}

TEST(IdealSaturation, OfClassicPatternsIsTheFormula) {
  const models::HardwareModel hardware = booksim_hardware(models::stages_of(models::PipelinePreset::p5), 4, 8);
  int compared = 0;
  for (const CsvRow& row : read_reference("mesh_xy_saturation.csv")) {
    const std::optional<SyntheticPattern> pattern = pattern_of(row.at("pattern"));
    if (!pattern) continue;
    const int k = std::stoi(row.at("k"));
    const topology::Mesh mesh({{k, k}, {}, {}});
    workloads::TrafficSpec spec;
    spec.pattern = *pattern;
    const auto routing = topology::make_routing("xy", mesh);
    const auto ideal = analysis::ideal_saturation(workloads::Destinations(spec, mesh), *routing, mesh, hardware);
    const std::string name = row.at("pattern") + " " + row.at("k");
    EXPECT_NEAR(ideal.channel_load.to_double(), std::stod(row.at("max_channel_load")), 1e-4) << name;
    EXPECT_NEAR(ideal.load.to_double(), std::stod(row.at("ideal_saturation_flits_per_node_cycle")), 1e-4) << name;
    EXPECT_NEAR(ideal.hops.to_double(), std::stod(row.at("average_hops")), 1e-4) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 24);
}

class Saturation : public testing::TestWithParam<SyntheticPattern> {};

TEST_P(Saturation, IsBoundedByTheIdealAndAboveSixtyPercentOfIt) {
  const topology::Mesh mesh({{8, 8}, {}, {}});
  const models::HardwareModel hardware = booksim_hardware(models::stages_of(models::PipelinePreset::p3), 4, 8);
  workloads::TrafficSpec spec;
  spec.pattern = GetParam();
  spec.drain = Duration::of_cycles(5000);
  const auto routing = topology::make_routing("xy", mesh);
  const Rational bound = analysis::ideal_saturation(workloads::Destinations(spec, mesh), *routing, mesh, hardware).load;
  spec.load = bound * Rational(6, 10);
  const MeanLoad below = run_load(mesh, hardware, spec, 2);
  EXPECT_TRUE(below.stable);
  EXPECT_NEAR(below.accepted, below.offered, 0.01 * below.offered);
  spec.load = bound * Rational(104, 100);
  spec.measurement = Duration::of_cycles(30'000);
  spec.drain = Duration::of_cycles(0);
  EXPECT_FALSE(run_load(mesh, hardware, spec, 1).stable);
}
INSTANTIATE_TEST_SUITE_P(Patterns, Saturation,
                         testing::Values(SyntheticPattern::uniform, SyntheticPattern::transpose, SyntheticPattern::bit_complement,
                                         SyntheticPattern::tornado_x, SyntheticPattern::shuffle, SyntheticPattern::bit_reverse));

/// A made-up network that is stable up to a load of 0.3.
TEST(LoadSweep, FindsTheLargestStableLoad) {
  const auto run = [](const Rational& load, std::uint64_t) {
    sim::TrafficMeasurement one;
    one.stable = load <= Rational(3, 10);
    one.accepted_load = std::min(load.to_double(), 0.31);
    one.latency.add(10);
    return one;
  };
  const analysis::LoadSweep sweep = analysis::sweep_loads({4, Rational(1, 100)}, Rational(1, 2), 2, 1, run);
  ASSERT_TRUE(sweep.saturation);
  EXPECT_LE(*sweep.saturation, Rational(3, 10));
  EXPECT_GE(*sweep.saturation, Rational(3, 10) * Rational(99, 100) - Rational(1, 1'000'000));
  EXPECT_EQ(sweep.saturation_throughput, 0.31);
  EXPECT_TRUE(std::is_sorted(sweep.points.begin(), sweep.points.end(),
                             [](const auto& a, const auto& b) { return a.load < b.load; }));
  EXPECT_EQ(sweep.points.front().latency.half_width, 0.0);
}

TEST(LoadSweep, WithoutAStableLoadEnds) {
  const auto run = [](const Rational&, std::uint64_t) { return sim::TrafficMeasurement{}; };
  EXPECT_FALSE(analysis::sweep_loads({4, Rational(1, 100)}, Rational(1, 2), 1, 1, run).saturation);
}

}  // namespace
}  // namespace wafersim::test
