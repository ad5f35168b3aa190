// Chosen mappings and balanced routes, as a user meets them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

using Bytes = std::uint64_t;
using nlohmann::json;

const std::string kQuickstart =
    " '" + (std::filesystem::path(WAFERSIM_SOURCE_DIR) / "scenarios/quickstart.yaml").string() +
    "' --set model.layers=4 --set training.global_batch=16";
constexpr const char* kAuto = " --set plan.mapping=auto";
constexpr const char* kBalanced = " --set router.routing=balanced";

json summary_of_run(const Workplace& work, const std::string& arguments) {
  const Outcome outcome = work.wafersim("run -o out --force --json" + arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return json::parse(outcome.out);
}

Bytes hottest(const json& summary) {
  Bytes most = 0;
  for (const json& link : summary["network"]["hotspots"]) most = std::max(most, link["bytes"].get<Bytes>());
  return most;
}

TEST(ChosenMapping, TheResolvedScenarioNamesItAndMeansTheSame) {
  const Workplace work;
  const Outcome chosen = work.wafersim("check" + kQuickstart + kAuto);
  ASSERT_EQ(chosen.status, 0) << chosen.err;
  EXPECT_NE(chosen.out.find("mapping chosen "), std::string::npos) << chosen.out;
  const std::string resolved = chosen.out.substr(0, chosen.out.find("\n\n") + 1);
  EXPECT_EQ(resolved.find("tp: auto"), std::string::npos) << resolved;
  work.write("resolved.yaml", resolved);
  const Outcome again = work.wafersim("check resolved.yaml");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out.substr(0, again.out.find("\n\n") + 1), resolved);
  EXPECT_EQ(again.out.find("mapping chosen "), std::string::npos);

  auto first = json::parse(work.wafersim("run -o a --json" + kQuickstart + kAuto).out);
  auto second = json::parse(work.wafersim("run -o b --json resolved.yaml").out);
  EXPECT_FALSE(first["plan"]["mapping_report"].is_null());
  EXPECT_TRUE(second["plan"]["mapping_report"].is_null());
  for (json* summary : {&first, &second}) {
    summary->erase("engine");
    (*summary)["plan"].erase("mapping_report");
  }
  EXPECT_EQ(first, second);
}

TEST(ChosenMapping, TheReportedLoadsAreThoseOfTheRuns) {
  const Workplace work;
  const json chosen = summary_of_run(work, kQuickstart + kAuto);
  const json report = chosen["plan"]["mapping_report"];
  EXPECT_EQ(report["max_link_bytes_after"], hottest(chosen));
  const json standard = summary_of_run(work, kQuickstart + " --set plan.mapping=default");
  EXPECT_EQ(report["max_link_bytes_before"], hottest(standard));
  EXPECT_LT(report["max_link_bytes_after"], report["max_link_bytes_before"]);
}

TEST(ChosenMapping, NothingFits) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim(
      "check s.yaml --set plan.mapping=auto --set wafer.mesh=2x3 --set 'wafer.dead_tiles=[[1, 1]]'");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("plan.mapping: no place on the mesh of 2x3"), std::string::npos) << outcome.err;
}

TEST(BalancedRouting, TheReportedLoadsAreThoseOfTheRun) {
  const Workplace work;
  const std::string strided = kQuickstart + " --set plan.mapping.pp=strided --set plan.mapping.dp=block";
  const json balanced = summary_of_run(work, strided + kBalanced);
  const json report = balanced["network"]["routing_report"];
  EXPECT_EQ(report["baseline"], "xy");
  EXPECT_EQ(report["max_link_bytes_after"], hottest(balanced));
  const json xy = summary_of_run(work, strided);
  EXPECT_TRUE(xy["network"]["routing_report"].is_null());
  EXPECT_EQ(report["max_link_bytes_before"], hottest(xy));
  EXPECT_LT(report["max_link_bytes_after"], report["max_link_bytes_before"]);
  EXPECT_LE(report["max_link_bytes_bound"], report["max_link_bytes_after"]);
}

TEST(BalancedRouting, MergesMessagesWithTheSameContent) {
  const Workplace work;
  const std::string direct = kQuickstart + " --set plan.collectives=direct --set plan.zero=3";
  const json merged = summary_of_run(work, direct + kBalanced);
  const json xy = summary_of_run(work, direct);
  const json report = merged["network"]["routing_report"];
  EXPECT_EQ(report["max_link_bytes_before"], hottest(xy));
  EXPECT_EQ(report["max_link_bytes_after"], hottest(merged));
  EXPECT_LT(hottest(merged), hottest(xy));
}

TEST(BalancedRouting, GoesRoundFaultsWithAChosenMapping) {
  const Workplace work;
  const json summary =
      summary_of_run(work, kQuickstart + kBalanced + kAuto +
                               " --set 'wafer.dead_links=[tile_3_0>tile_2_0, tile_5_5>tile_5_6]'");
  EXPECT_EQ(summary["network"]["routing_report"]["max_link_bytes_after"], hottest(summary));
  EXPECT_FALSE(summary["plan"]["mapping_report"].is_null());
}

}  // namespace
}  // namespace wafersim::testing
