#include "report/search_report.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>

namespace wafersim::report {
namespace {

using analysis::PlanVerdict;
using analysis::SearchedPlan;

SearchedPlan plan_of(Cycle cycles, Bytes bytes, std::optional<double> joules) {
  SearchedPlan plan;
  plan.point.routing = "xy";
  plan.verdict.outcome = PlanVerdict::Outcome::predicted;
  plan.verdict.cycles = cycles;
  plan.verdict.memory.peak_bytes = bytes;
  plan.verdict.joules = joules;
  return plan;
}

struct Fixture {
  topology::Mesh mesh{topology::MeshSpec{{2, 2}, {}, {}}};
  SearchReport report{"small", {Rational(1'000'000'000)}, mesh, 1000, 64, {{}}, true, false, {}};

  explicit Fixture(std::vector<SearchedPlan> plans) {
    for (std::size_t i = 0; i < plans.size(); ++i) plans[i].base = i;
    report.searches.front().plans = std::move(plans);
  }
};

TEST(ParetoFront, HasEnergyWhereItIsModelled) {
  // The third is slower and larger than the first two, but needs less energy.
  const std::vector<SearchedPlan> plans{plan_of(100, 900, 5.0), plan_of(200, 300, 6.0), plan_of(300, 950, 4.0),
                                        plan_of(300, 950, 7.0)};
  const Fixture with(plans);
  EXPECT_TRUE(energy_modelled(with.report));
  EXPECT_EQ(pareto_front(with.report), (std::vector<std::size_t>{0, 1, 2}));
  constexpr std::array kTwo{PlanMeasure::time, PlanMeasure::energy};
  EXPECT_EQ(pareto_front(with.report, kTwo), (std::vector<std::size_t>{0, 2}));

  std::vector<SearchedPlan> without = plans;
  for (SearchedPlan& plan : without) plan.verdict.joules.reset();
  const Fixture plain(without);
  EXPECT_FALSE(energy_modelled(plain.report));
  EXPECT_EQ(pareto_front(plain.report), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(search_text(plain.report).find("energy"), std::string::npos);
  EXPECT_NE(search_text(with.report).find("energy"), std::string::npos);
}

TEST(ParetoFront, PlansThatDoNotFitAreNotOnIt) {
  Fixture fixture({plan_of(100, 100, 1.0), plan_of(50, 50, 0.5)});
  fixture.report.searches.front().plans[1].verdict.outcome = PlanVerdict::Outcome::does_not_fit;
  EXPECT_EQ(pareto_front(fixture.report), (std::vector<std::size_t>{0}));
}

TEST(SearchCsv, HasTheEnergyOfEachPlan) {
  Fixture fixture({plan_of(100, 900, 5.25), plan_of(200, 300, std::nullopt)});
  fixture.report.searches.front().plans[0].simulated = 110;
  fixture.report.searches.front().plans[0].simulated_joules = 5.5;
  const std::string csv = search_csv(fixture.report);
  EXPECT_NE(csv.find(",predicted_cycles,simulated_cycles,predicted_joules,simulated_joules,pareto,reason\n"), std::string::npos);
  EXPECT_NE(csv.find(",100,110,5.25,5.5,1,"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",200,,,,"), std::string::npos) << csv;
}

TEST(SearchPicture, HasAPanelForEnergyWhereItIsModelled) {
  const auto picture = [](std::optional<double> joules) {
    return search_picture(Fixture({plan_of(100, 900, joules), plan_of(200, 300, joules)}).report);
  };
  EXPECT_NE(picture(1500.0).find("energy of a run (kJ)"), std::string::npos);
  EXPECT_EQ(picture(std::nullopt).find("energy"), std::string::npos);
}

/// No plan of the front is beaten, and each of the others is beaten or equalled by one of the front.
RC_GTEST_PROP(ParetoFrontProperty, IsThatOfComparingAllPairs, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 40);
  std::vector<SearchedPlan> plans;
  for (std::size_t i = 0; i < count; ++i) {
    plans.push_back(plan_of(*rc::gen::inRange<Cycle>(1, 8), *rc::gen::inRange<Bytes>(1, 8), *rc::gen::inRange(1, 8)));
  }
  const Fixture fixture(plans);
  constexpr std::array kAll{PlanMeasure::time, PlanMeasure::memory, PlanMeasure::energy};
  const auto no_worse = [&](std::size_t a, std::size_t b) {
    return std::all_of(kAll.begin(), kAll.end(),
                       [&](PlanMeasure m) { return measure_of(plans[a], m) <= measure_of(plans[b], m); });
  };
  const std::vector<std::size_t> front = pareto_front(fixture.report);
  for (std::size_t i = 0; i < count; ++i) {
    const bool on = std::find(front.begin(), front.end(), i) != front.end();
    bool beaten = false;
    for (std::size_t j = 0; j < count; ++j) beaten = beaten || (no_worse(j, i) && (!no_worse(i, j) || j < i));
    RC_ASSERT(on == !beaten);
  }
}

}  // namespace
}  // namespace wafersim::report
