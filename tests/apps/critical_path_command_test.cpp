#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

using nlohmann::json;

/// Number of a column of a critical path.
std::size_t column(const json& path, const std::string& name) {
  const json& columns = path.at("columns");
  return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
}

TEST(CriticalPathCommand, WritesThePathFromTheFirstCycleToTheLast) {
  const Workplace place;
  place.write("small.yaml", kSmallScenario);
  const Outcome outcome = place.wafersim("run small.yaml -o run --critical-path");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* expected : {"Critical path: ", "matrix ", "links 2x", "network ideal", "at most "}) {
    EXPECT_NE(outcome.out.find(expected), std::string::npos) << expected << "\n" << outcome.out;
  }
  const json path = json::parse(place.read("run/critical_path.json"));
  const json summary = json::parse(place.read("run/summary.json"));
  EXPECT_EQ(path.at("cycles"), summary.at("cycles"));
  std::uint64_t at = 0;
  std::map<std::string, std::uint64_t> kinds;
  for (const json& segment : path.at("segments")) {
    ASSERT_EQ(segment.size(), path.at("columns").size());
    EXPECT_EQ(segment.at(column(path, "from")), at);
    const std::uint64_t length = segment.at(column(path, "to")).get<std::uint64_t>() - at;
    at += length;
    const auto kind = segment.at(column(path, "kind")).get<std::string>();
    if (kind == "wire") {
      const auto router = segment.at(column(path, "router_cycles")).get<std::uint64_t>();
      const auto link = segment.at(column(path, "link_cycles")).get<std::uint64_t>();
      kinds["router"] += router;
      kinds["link"] += link;
      kinds["serialization"] += length - router - link;
    } else {
      kinds[kind] += length;
    }
  }
  EXPECT_EQ(at, summary.at("cycles"));
  std::uint64_t all = 0;
  for (const auto& [kind, cycles] : path.at("by_kind").items()) {
    EXPECT_EQ(cycles, kinds[kind]) << kind;
    all += cycles.get<std::uint64_t>();
  }
  EXPECT_EQ(all, at);
  EXPECT_GT(kinds["matrix"], 0U);
  // The next run without it leaves none behind.
  ASSERT_EQ(place.wafersim("run small.yaml -o run --quiet").status, 0);
  EXPECT_FALSE(place.has("run/critical_path.json"));
}

TEST(CriticalPathCommand, PartialRunsHaveNone) {
  const Workplace place;
  place.write("small.yaml", kSmallScenario);
  const Outcome outcome = place.wafersim("run small.yaml -o run --critical-path --max-cycles 1000");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_FALSE(place.has("run/critical_path.json"));
  EXPECT_EQ(outcome.out.find("Critical path"), std::string::npos);
}

TEST(CriticalPathCommand, IsNotForCheckpoints) {
  const Workplace place;
  place.write("small.yaml", kSmallScenario);
  const Outcome outcome = place.wafersim("run small.yaml -o run --critical-path --checkpoint-every 1s");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("--checkpoint-every: a run with --critical-path cannot be taken up again"),
            std::string::npos)
      << outcome.err;
}

TEST(WhatIfCommand, SimulatesWhatItBounds) {
  const Workplace place;
  place.write("small.yaml", kSmallScenario);
  ASSERT_EQ(place.wafersim("run small.yaml -o run --critical-path --quiet").status, 0);
  const Outcome outcome = place.wafersim(
      "whatif run --change 'links 2x' --change 'compute 2x' --change 'routers instant' --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("base_cycles"), json::parse(place.read("run/summary.json")).at("cycles"));
  ASSERT_EQ(result.at("changes").size(), 3U);
  const json bounds = json::parse(place.read("run/critical_path.json")).at("what_if");
  for (const json& change : result.at("changes")) {
    EXPECT_GE(change.at("simulated_cycles"), change.at("at_least_cycles")) << change;
    EXPECT_LT(change.at("simulated_cycles"), result.at("base_cycles")) << change;
    const auto same = std::find_if(bounds.begin(), bounds.end(), [&](const json& each) {
      return each.at("change") == change.at("change");
    });
    ASSERT_NE(same, bounds.end());
    EXPECT_EQ(same->at("at_least_cycles"), change.at("at_least_cycles"));
  }
  EXPECT_EQ(result.at("changes").at(0).at("keys"), json::array({"wafer.link.bandwidth=128 B/cycle"}));
  EXPECT_EQ(json::parse(place.read("run/whatif/links_2x/summary.json")).at("cycles"),
            result.at("changes").at(0).at("simulated_cycles"));
}

TEST(WhatIfCommand, RunsAScenarioFirst) {
  const Workplace place;
  place.write("small.yaml", kSmallScenario);
  const Outcome outcome =
      place.wafersim("whatif small.yaml --set plan.zero=1 --change 'network ideal' -o out");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("network ideal"), std::string::npos) << outcome.out;
  EXPECT_TRUE(place.has("out/base/critical_path.json"));
  EXPECT_EQ(json::parse(place.read("out/network_ideal/summary.json")).at("plan").at("zero"), 1);
}

TEST(WhatIfCommand, BadInputsAreNamed) {
  const Workplace place;
  place.write("small.yaml", kSmallScenario);
  ASSERT_EQ(place.wafersim("run small.yaml -o run --quiet").status, 0);
  Outcome outcome = place.wafersim("whatif run --change 'links 2x'");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_NE(outcome.err.find("run has no critical_path.json; run its scenario with --critical-path"),
            std::string::npos)
      << outcome.err;
  outcome = place.wafersim("whatif small.yaml --change 'wires 2x'");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("'wires 2x' is no change of a machine; valid: 'links 2x'"), std::string::npos)
      << outcome.err;
  outcome = place.wafersim("whatif small.yaml --change 'compute 1.5x' -o out");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("wafer.compute.matrix.arrays"), std::string::npos) << outcome.err;
  outcome = place.wafersim("whatif small.yaml --set network.fidelity=flit --change 'routers instant' -o flits");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("router.switching: wormhole routers"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace wafersim::testing
