#include "analysis/model_trial.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace wafersim::analysis {
namespace {

TEST(KendallTau, CountsPairsByHand) {
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3, 4}, {10, 20, 30, 40}), 1);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  // Of six pairs (1,2) alone is in the other order.
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3, 4}, {2, 1, 3, 4}), 4.0 / 6);
  EXPECT_DOUBLE_EQ(kendall_tau({1}, {1}), 0);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 1, 1}, {1, 2, 3}), 0);
}

/// Tied in a: (1,2). Tied in b: (2,3). Of the other four pairs all agree: tau-b = 4 / sqrt(5 * 5).
TEST(KendallTau, LeavesTiesOut) {
  EXPECT_DOUBLE_EQ(kendall_tau({1, 1, 2, 3}, {1, 2, 2, 3}), 4.0 / 5);
  // A pair tied in both counts in neither: of three pairs one is, two agree; 2 / sqrt(2 * 2).
  EXPECT_DOUBLE_EQ(kendall_tau({1, 1, 2}, {5, 5, 6}), 1);
}

TEST(KendallTau, EqualsTheSumOverAllPairs) {
  RandomStream random(3, "tau");
  std::vector<double> a, b;
  for (int i = 0; i < 200; ++i) {
    a.push_back(static_cast<double>(random.below(40)));
    b.push_back(static_cast<double>(random.below(40)));
  }
  double sum = 0, differ_a = 0, differ_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      sum += (a[i] > a[j] ? 1 : a[i] < a[j] ? -1 : 0) * (b[i] > b[j] ? 1 : b[i] < b[j] ? -1 : 0);
      differ_a += a[i] != a[j] ? 1 : 0;
      differ_b += b[i] != b[j] ? 1 : 0;
    }
  }
  EXPECT_NEAR(kendall_tau(a, b), sum / std::sqrt(differ_a * differ_b), 1e-12);
}

/// Errors: +10 %, -20 %, 0, +50 %.
TEST(ErrorStatistics, AreThoseOfAHandfulOfPoints) {
  const ErrorStatistics errors = error_statistics({110, 160, 300, 600}, {100, 200, 300, 400});
  EXPECT_EQ(errors.points, 4U);
  EXPECT_NEAR(errors.mape, 0.2, 1e-12);
  EXPECT_NEAR(errors.bias, 0.1, 1e-12);
  EXPECT_NEAR(errors.median, 0.15, 1e-12);
  EXPECT_NEAR(errors.p95, 0.5, 1e-12);
  EXPECT_NEAR(errors.worst, 0.5, 1e-12);
  // Residuals 10^2 + 40^2 + 0 + 200^2 = 41700; spread 150^2 + 50^2 + 50^2 + 150^2 = 50000.
  EXPECT_NEAR(errors.r2, 1 - 41700.0 / 50000, 1e-12);
  EXPECT_DOUBLE_EQ(errors.tau, 1);
  EXPECT_EQ(error_statistics({}, {}).points, 0U);
}

TEST(ErrorStatistics, TheP95IsTheSmallestThat95PercentDoNotExceed) {
  std::vector<double> predicted, simulated(100, 100);
  for (int i = 1; i <= 100; ++i) predicted.push_back(100 + i);
  EXPECT_NEAR(error_statistics(predicted, simulated).p95, 0.95, 1e-12);
}

/// Group 0: the model's favourite is the second fastest, 20 % slower. Group 1: it picks the fastest. Group 2 has one point.
TEST(ChoiceStatistics, RegretIsWhatTheFavouriteCosts) {
  const ChoiceStatistics choices =
      choice_statistics({1, 2, 3, 4, 5, 1, 9}, {120, 100, 150, 500, 300, 200, 1}, {0, 0, 0, 1, 1, 1, 2});
  EXPECT_EQ(choices.groups, 2U);
  EXPECT_DOUBLE_EQ(choices.best_picked, 0.5);
  EXPECT_NEAR(choices.regret, 0.1, 1e-12);
  EXPECT_NEAR(choices.worst_regret, 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(choices.top3_regret, 0);
}

TEST(ChoiceStatistics, ThreeFavouritesMayStillMissTheFastest) {
  const ChoiceStatistics choices = choice_statistics({1, 2, 3, 4}, {400, 300, 200, 100}, {7, 7, 7, 7});
  EXPECT_DOUBLE_EQ(choices.regret, 3);
  EXPECT_DOUBLE_EQ(choices.top3_regret, 1);
}

TEST(FitFactors, FindsFactorsThatExplainEverything) {
  RandomStream random(1, "fit");
  const CycleParts truth{1.1, 0.5, 2, 1, 0};
  std::vector<CycleParts> parts;
  std::vector<double> simulated;
  for (int i = 0; i < 60; ++i) {
    CycleParts part{};
    for (double& value : part) value = static_cast<double>(1 + random.below(1000));
    parts.push_back(part);
    simulated.push_back(scaled(part, truth));
  }
  const CycleParts factors = fit_factors(parts, simulated);
  for (std::size_t k = 0; k < kCycleParts; ++k) EXPECT_NEAR(factors[k], truth[k], 1e-3) << k;
}

TEST(FitFactors, LeavesWhatThePointsDoNotShowAndNeverTurnsNegative) {
  const CycleParts factors = fit_factors({{100, 0, 10, 0, 0}, {200, 0, 5, 0, 0}}, {95, 195});
  EXPECT_DOUBLE_EQ(factors[1], 1);
  for (const double factor : factors) EXPECT_GE(factor, 0);
  const CycleParts scale = fit_factors({{100}, {300}}, {150, 450});
  EXPECT_NEAR(scale[0], 1.5, 1e-4);
}

}  // namespace
}  // namespace wafersim::analysis
