#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/apps/search_results.h"

/// Searches against the simulation of all plans of a small space. The space is enumerated here, by other means than the search
/// does.
namespace wafersim::testing {
namespace {

struct Machine {
  const char* name;
  const char* bandwidth;
  const char* latency;
  const char* most_plans;
  int batch;
};

class SearchExhaustive : public ::testing::TestWithParam<Machine> {};

/// A study of all plans of kSearchScenario that use at least half of the wafer, and how many points it has.
std::pair<std::string, std::size_t> study_of(const Machine& machine) {
  std::ostringstream text;
  text << "name: all\nscenario: tiny.yaml\nset: {wafer.link.bandwidth: " << machine.bandwidth
       << ", wafer.link.latency: " << machine.latency << ", training.global_batch: " << machine.batch << "}\nlist:\n";
  std::size_t points = 0;
  for (const int tp : {1, 2, 4}) {
    for (const int tatp : {1, 2, 4, 8, 16}) {
      for (const int pp : {1, 2, 4}) {
        for (const int dp : {1, 2, 4, 8, 16}) {
          const int tiles = tp * tatp * pp * dp;
          if (tiles > 16 || tiles < 8 || machine.batch % dp != 0) continue;
          for (int zero = 0; zero <= (dp > 1 ? 3 : 0); ++zero) {
            for (const char* recompute : {"none", "full"}) {
              for (const char* schedule : {"1f1b", "gpipe", "zb_h1", "interleaved"}) {
                if (pp == 1 && std::string(schedule) != "1f1b") continue;
                const bool chunks = std::string(schedule) == "interleaved";
                if (chunks && pp == 4) continue;
                for (int microbatch = 1; microbatch <= machine.batch / dp; microbatch *= 2) {
                  text << "  - {plan.dp: " << dp << ", plan.tp: " << tp << ", plan.tatp: " << tatp << ", plan.pp: " << pp
                       << ", plan.zero: " << zero << ", training.recompute: " << recompute << ", plan.schedule: " << schedule
                       << ", plan.virtual_stages: " << (chunks ? 2 : 1) << ", training.microbatch: " << microbatch << "}\n";
                  ++points;
                }
              }
            }
          }
        }
      }
    }
  }
  return {text.str(), points};
}

TEST_P(SearchExhaustive, TheAnswerIsAmongTheBestHundredthAndNearTheBest) {
  const Machine& machine = GetParam();
  const Workplace place;
  place.write("tiny.yaml", kSearchScenario);
  const auto [study, points] = study_of(machine);
  ASSERT_LE(points, 2000u);
  place.write("all.yaml", study);
  const Outcome swept = place.wafersim("sweep all.yaml -o all --quiet");
  ASSERT_EQ(swept.status, 0) << swept.err;
  std::vector<std::uint64_t> all;
  for (const SearchRow& row : search_rows(place.read("all/results.csv"))) {
    if (row.at("status") == "done") all.push_back(static_cast<std::uint64_t>(std::stod(row.at("cycles"))));
  }
  ASSERT_GT(all.size(), points / 4);
  std::sort(all.begin(), all.end());

  const Outcome searched = place.wafersim("search tiny.yaml -o out --keep plan.mapping,plan.sp,router.routing --max-plans " +
                                          std::string(machine.most_plans) + " --set wafer.link.bandwidth='" +
                                          machine.bandwidth + "' --set wafer.link.latency='" + machine.latency +
                                          "' --set training.global_batch=" + std::to_string(machine.batch));
  ASSERT_EQ(searched.status, 0) << searched.err;
  const std::vector<SearchRow> rows = search_rows(place.read("out/search.csv"));
  const std::uint64_t found = fastest_simulated(rows).number("simulated_cycles");
  const auto faster = static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), found) - all.begin());
  std::printf("%s: %zu plans simulated, best %lu, search found %lu after %zu predictions, %zu are faster\n", machine.name,
              all.size(), static_cast<unsigned long>(all.front()), static_cast<unsigned long>(found), rows.size(), faster);
  EXPECT_LE(faster, all.size() / 100);
  EXPECT_LE(static_cast<double>(found), 1.02 * static_cast<double>(all.front()));
  EXPECT_GE(found, all.front()) << "the search has found a plan that is not among all";
}

INSTANTIATE_TEST_SUITE_P(Machines, SearchExhaustive,
                         ::testing::Values(Machine{"fast_links", "256 B/cycle", "1 cycles", "2000", 4},
                                           Machine{"slow_links", "4 B/cycle", "1 cycles", "2000", 4},
                                           Machine{"long_links", "64 B/cycle", "200 cycles", "2000", 8},
                                           Machine{"few_predictions", "32 B/cycle", "4 cycles", "250", 4}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace wafersim::testing
