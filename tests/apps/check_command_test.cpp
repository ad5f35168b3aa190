#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CheckCommand, PrintsTheResolvedScenarioAndItsSize) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("check s.yaml");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part :
       {"name: small", "virtual_channels:", "parameters ", "4 of 4 used", "fits                     yes"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
  EXPECT_FALSE(work.has("runs"));
}

TEST(CheckCommand, JsonIsOneObject) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("check s.yaml --json --verify --set plan.pp=1");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["scenario"]["plan"]["pp"], 1);
  EXPECT_EQ(json["tiles_used"], 2);
  EXPECT_EQ(json["tiles_total"], 4);
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["faults"].size(), 0u);
  // Two layers of 12 h^2 + 13 h, token and position embeddings, final norm, untied head.
  EXPECT_EQ(json["parameters"], 2 * (12 * 64 * 64 + 13 * 64) + (128 + 32) * 64 + 2 * 64 + 128 * 64);
}

TEST(CheckCommand, PlanThatDoesNotFitExitsWithThreeAndSaysByHowMuch) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("check s.yaml --json --set 'wafer.sram.capacity=64 KiB'");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(contains(outcome.err, "wafersim: error: the plan does not fit: ")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "in its SRAM of 64.0 KiB")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "too many, most in step ")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "at most parameters ")) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["fits"], false);
  EXPECT_EQ(json["memory"]["over_bytes"], json["memory"]["peak_sram_bytes"].get<std::uint64_t>() - 65536);
}

TEST(CheckCommand, EveryProblemOfAScenarioHasALine) {
  const Workplace work;
  work.write("s.yaml",
             "name: bad\nwafer: {mesh: 2x2, clok: 1 GHz}\nmodel: {layers: 2, hidden: 64, heads: 4, ffn: 256, "
             "vocab: 128, context: 32, sequence: 32}\nplan: {tp: two}\n");
  const Outcome outcome = work.wafersim("check s.yaml");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(contains(outcome.err, "wafersim: error: s.yaml:2:")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "clok")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "\nwafersim: error: s.yaml:4:")) << outcome.err;
}

TEST(CheckCommand, MissingFileIsAnInputOutputError) {
  const Outcome outcome = Workplace().wafersim("check nowhere.yaml");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_TRUE(contains(outcome.err, "nowhere.yaml")) << outcome.err;
}

TEST(CheckCommand, PlanThatCannotRunExitsWithThree) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("check s.yaml --set plan.dp=4");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(outcome.err.starts_with("wafersim: error: ")) << outcome.err;
}

}  // namespace
}  // namespace wafersim::testing
