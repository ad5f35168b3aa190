#include "analysis/link_calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "analysis/step_schedule.h"
#include "tests/workloads/lowering_fixture.h"
#include "topology/routing_policy.h"

namespace wafersim::test {
namespace {

using analysis::LinkFactors;

TEST(LinkCalibration, FindsTheLeastErrorAndAsksForEachPairOnce) {
  for (const auto& [latency, bandwidth] : {std::pair{5, -9}, std::pair{0, 0}, std::pair{-28, 28}, std::pair{1, 13}}) {
    std::set<std::pair<double, double>> asked;
    const LinkFactors found = analysis::fit_link_factors([&](const LinkFactors& tried) {
      EXPECT_TRUE(asked.emplace(tried.latency, tried.bandwidth).second);
      return std::abs(std::log(tried.latency) / std::log(1.05) - latency) +
             std::abs(std::log(tried.bandwidth) / std::log(1.05) - bandwidth);
    });
    EXPECT_NEAR(found.latency, std::pow(1.05, latency), 1e-9);
    EXPECT_NEAR(found.bandwidth, std::pow(1.05, bandwidth), 1e-9);
    EXPECT_LE(asked.size(), 60U);
  }
  // Nothing to choose by: as it was.
  EXPECT_EQ(analysis::fit_link_factors([](const LinkFactors& /*tried*/) { return 1.0; }), LinkFactors{});
}

TEST(LinkCalibration, ScalesWhatMessagesTake) {
  models::HardwareModel hardware;
  hardware.link_bytes_per_cycle = hardware.injection_bytes_per_cycle = hardware.ejection_bytes_per_cycle = Rational(6);
  hardware.router_cycles = 3;
  hardware.link_cycles = 2;
  hardware.wrap_cycles = 1;
  hardware.message_overhead = 10;
  const models::HardwareModel scaled = analysis::with_link_factors(hardware, {0.25, 1.5});
  EXPECT_EQ(scaled.link_bytes_per_cycle, Rational(9));
  EXPECT_EQ(scaled.ejection_bytes_per_cycle, Rational(9));
  EXPECT_EQ(scaled.router_cycles, 1U);
  EXPECT_EQ(scaled.link_cycles, 1U);
  EXPECT_EQ(scaled.wrap_cycles, Cycle{1});
  EXPECT_EQ(scaled.message_overhead, 3U);
  const models::HardwareModel same = analysis::with_link_factors(hardware, {});
  EXPECT_EQ(same.link_bytes_per_cycle, hardware.link_bytes_per_cycle);
  EXPECT_EQ(same.link_cycles, hardware.link_cycles);
  EXPECT_EQ(same.router_cycles, hardware.router_cycles);
  EXPECT_EQ(same.message_overhead, hardware.message_overhead);
}

/// Measured on a machine whose links are worse by factors that nobody told: they are found.
TEST(LinkCalibration, FindsTheLinksOfAnotherMachine) {
  workloads::LoweringFixture fixture;
  fixture.set_degrees(1, 4, 1);
  const workloads::LoweredPlan lowered = fixture.lower();
  const topology::Mesh mesh = fixture.mesh();
  const auto policy = topology::make_routing_policy("xy", mesh);
  std::vector<models::HardwareModel> machines;
  for (const int bandwidth : {2, 16, 128}) {
    for (const int latency : {10, 400}) {
      models::WaferSpec wafer = fixture.wafer;
      wafer.link.bandwidth = Bandwidth::per_clock(Rational(bandwidth));
      wafer.link.latency = Duration::of_cycles(latency);
      machines.push_back(models::resolve_hardware(wafer, {}, {}));
    }
  }
  const auto cycles = [&](const models::HardwareModel& hardware) {
    analysis::StepCosts costs({lowered.trace, lowered.mapping, fixture.plan, hardware, mesh, *policy,
                               models::CostModel::alpha_beta_contention, 1});
    return static_cast<double>(analysis::predict(costs, lowered.trace).cycles);
  };
  const LinkFactors truth{std::pow(1.05, 8), std::pow(1.05, -6)};
  std::vector<double> measured;
  for (const auto& machine : machines) measured.push_back(cycles(analysis::with_link_factors(machine, truth)));
  const auto error = [&](const LinkFactors& tried) {
    double squares = 0;
    for (std::size_t i = 0; i < machines.size(); ++i) {
      const double off = cycles(analysis::with_link_factors(machines[i], tried)) / measured[i] - 1;
      squares += off * off;
    }
    return squares;
  };
  const LinkFactors found = analysis::fit_link_factors(error);
  EXPECT_NEAR(found.latency / truth.latency, 1, 0.03);
  EXPECT_NEAR(found.bandwidth / truth.bandwidth, 1, 0.03);
  EXPECT_LT(error(found), error({}) / 100);
}

}  // namespace
}  // namespace wafersim::test
