#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

/// `wafersim run` with network.fidelity: analytic.
class PredictionCommand : public ::testing::Test {
 protected:
  PredictionCommand() { place_.write("small.yaml", kSmallScenario); }

  Outcome predict(const std::string& options = "") const {
    return place_.wafersim("run small.yaml -o out --force --set network.fidelity=analytic " + options);
  }
  nlohmann::json summary(const std::string& directory) const {
    return nlohmann::json::parse(place_.read(directory + "/summary.json"));
  }

  Workplace place_;
};

std::set<std::string> keys_of(const nlohmann::json& block, const std::string& prefix = "") {
  std::set<std::string> keys;
  for (const auto& [key, value] : block.items()) {
    keys.insert(prefix + key);
    if (value.is_object()) keys.merge(keys_of(value, prefix + key + "."));
  }
  return keys;
}

TEST_F(PredictionCommand, HasTheKeysOfARunAndNoTables) {
  ASSERT_EQ(place_.wafersim("run small.yaml -o out --quiet").status, 0);
  const nlohmann::json run = summary("out");
  ASSERT_TRUE(place_.has("out/tiles.csv"));
  const Outcome outcome = predict();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("small: predicted by alpha_beta_contention, 4 of 4 tiles"), std::string::npos) << outcome.out;
  const nlohmann::json prediction = summary("out");
  for (const char* file : {"tiles.csv", "links.csv", "steps.csv", "ranks.csv"}) {
    EXPECT_FALSE(place_.has(std::string("out/") + file)) << file;
  }
  const std::set<std::string> wanted = keys_of(run), had = keys_of(prediction);
  for (const std::string& key : wanted) {
    const bool below_null = key.starts_with("memory.peak_by_class.") || key.starts_with("engine.fold.") ||
                            key.starts_with("engine.trains.");
    EXPECT_TRUE(had.contains(key) || below_null) << key;
  }
  EXPECT_EQ(prediction["engine"]["fidelity"], "analytic");
  EXPECT_EQ(prediction["engine"]["cost_model"], "alpha_beta_contention");
  EXPECT_TRUE(prediction["memory"]["peak_bytes"].is_null());
  EXPECT_EQ(prediction["memory"]["bound_bytes"], run["memory"]["bound_bytes"]);
  EXPECT_EQ(prediction["matrix_flops"], run["matrix_flops"]);
  EXPECT_EQ(prediction["tiles_used"], run["tiles_used"]);
  const double cycles = run["cycles"].get<double>();
  EXPECT_NEAR(prediction["cycles"].get<double>(), cycles, 0.02 * cycles);
  // Link loads are exact, so the hottest link carries the same.
  EXPECT_EQ(prediction["network"]["hotspots"][0]["bytes"].get<double>(), run["network"]["hotspots"][0]["bytes"].get<double>());
}

TEST_F(PredictionCommand, CostModelsLookAtMoreAndMore) {
  double before = 0;
  for (const char* model : {"roofline", "alpha_beta", "alpha_beta_contention"}) {
    ASSERT_EQ(predict(std::string("--quiet --set network.cost_model=") + model).status, 0);
    const double cycles = summary("out")["cycles"].get<double>();
    EXPECT_GE(cycles, before) << model;
    before = cycles;
  }
}

TEST_F(PredictionCommand, RefusesWhatOnlyASimulationShows) {
  for (const char* option :
       {"--messages", "--memory", "--timeline", "--max-cycles 5", "--resume", "--vcd a.vcd --vcd-routers tile_0_0"}) {
    const Outcome outcome = predict(option);
    EXPECT_EQ(outcome.status, 2) << option;
    EXPECT_NE(outcome.err.find("a prediction (network.fidelity: analytic) simulates nothing"), std::string::npos)
        << outcome.err;
  }
}

TEST_F(PredictionCommand, IsSwept) {
  place_.write("study.yaml", "scenario: small.yaml\nset: {network.fidelity: analytic}\nvary: {plan.schedule: [1f1b, gpipe]}\n");
  const Outcome outcome = place_.wafersim("sweep study.yaml -o swept --jobs 1");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("2 of 2 points done"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace wafersim::testing
