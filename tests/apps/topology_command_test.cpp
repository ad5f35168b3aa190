#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TopologyCommand, PrintsTheNetworkOfAScenario) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("topology s.yaml");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part :
       {"mesh                     2x2, 4 tiles and 8 directed links\n",
        "dependency graph         8 channels, 4 dependencies: acyclic, no deadlock\n", "hottest links\n"})
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  EXPECT_FALSE(work.has("runs"));
}

// What it says of the plan's link loads is what a run measures.
TEST(TopologyCommand, LinkLoadsAreThoseOfARun) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  for (const std::string routing : {"xy", "yx", "table", "balanced"}) {
    const std::string set = " s.yaml --set wafer.mesh=3x3 --set router.routing=" + routing;
    const auto json = nlohmann::json::parse(work.wafersim("topology --json" + set).out);
    ASSERT_EQ(work.wafersim("run --quiet --force -o out" + set).status, 0);
    const auto summary = nlohmann::json::parse(work.read("out/summary.json"));
    std::uint64_t largest = 0;
    for (const auto& link : summary["network"]["hotspots"])
      largest = std::max(largest, link["bytes"].get<std::uint64_t>());
    EXPECT_EQ(json["traffic"]["max_link_bytes"], largest) << routing;
    EXPECT_EQ(json["traffic"]["loads"], "exact");
  }
}

TEST(TopologyCommand, ExaminesEveryRoutingThatCanBeSimulated) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  for (const std::string routing :
       {"o1turn", "valiant", "west_first", "north_last", "negative_first", "odd_even"}) {
    const std::string set = " s.yaml --set router.routing=" + routing;
    const Outcome outcome = work.wafersim("topology --json" + set);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["routing"]["name"], routing);
    EXPECT_EQ(work.wafersim("check --json" + set).status, 0);
    for (const char* fidelity : {"packet", "flit"}) {
      const Outcome run = work.wafersim("run --quiet --force -o out" + set + " --set network.fidelity=" + fidelity);
      EXPECT_EQ(run.status, 0) << routing << ", " << fidelity << ": " << run.err;
    }
  }
}

TEST(TopologyCommand, ADeadlockIsPrintedAndExitsWithThree) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome =
      work.wafersim("topology s.yaml --json --set router.routing=o1turn --set router.virtual_channels=1");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(contains(outcome.err, "router.routing: o1turn can deadlock on this mesh with one class"))
      << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "tile_0_0 > tile_")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "; valid: router.virtual_channels of 2 or more\n")) << outcome.err;
  for (const std::string command : {"check", "run -o out"}) {
    const Outcome refused =
        work.wafersim(command + " s.yaml --set router.routing=o1turn --set router.virtual_channels=1");
    EXPECT_EQ(refused.status, 3);
    EXPECT_TRUE(contains(refused.err, "; valid: router.virtual_channels of 2 or more\n")) << refused.err;
  }
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["dependency_graph"]["acyclic"], false);
}

TEST(TopologyCommand, NeedsNoModel) {
  const Workplace work;
  work.write("s.yaml",
             "name: bare\nwafer: {mesh: 3x4}\nrouter: {routing: odd_even}\n"
             "network: {fidelity: flit}\ntraffic: {load: 0.1}\n");
  const Outcome outcome = work.wafersim("topology s.yaml --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["dependency_graph"]["acyclic"], true);
  EXPECT_TRUE(json["traffic"].is_null());
}

TEST(TopologyCommand, ATorusNeedsTwoChannelsAndRunsInBothFidelities) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const std::string torus = " s.yaml --set wafer.mesh=5x6 --set wafer.topology=torus";
  for (const std::string command : {"topology", "run -o out"}) {
    const Outcome refused = work.wafersim(command + torus + " --set router.virtual_channels=1");
    EXPECT_EQ(refused.status, 3);
    EXPECT_TRUE(contains(refused.err, "router.routing: xy can deadlock on this mesh with one class")) << refused.err;
    EXPECT_TRUE(contains(refused.err, "tile_0_0 > tile_0_4 > tile_0_3 > tile_0_2 > tile_0_1 > tile_0_0"))
        << refused.err;
  }
  const auto json = nlohmann::json::parse(work.wafersim("topology --json" + torus).out);
  EXPECT_EQ(json["mesh"]["topology"], "torus");
  EXPECT_EQ(json["mesh"]["links"], 120);
  EXPECT_EQ(json["mesh"]["link_classes"].size(), 1u);
  EXPECT_EQ(json["mesh"]["link_classes"][0]["kind"], "folded");
  EXPECT_EQ(json["mesh"]["link_classes"][0]["latency_cycles"], 2);
  EXPECT_EQ(json["distance"]["diameter_hops"], 5);
  EXPECT_EQ(json["bisection"]["links"], 10);
  for (const char* fidelity : {"packet", "flit"}) {
    const Outcome run = work.wafersim("run --quiet --force -o out" + torus + " --set network.fidelity=" + fidelity);
    EXPECT_EQ(run.status, 0) << fidelity << ": " << run.err;
  }
  EXPECT_EQ(work.wafersim("check" + torus + " --set router.routing=o1turn").status, 3);
}

TEST(TopologyCommand, ReticlesSlowTheBisectionAndTheRun) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const std::string borders = " --set 'wafer.reticle={every: 1, bandwidth: 16 B/cycle, latency: 5 cycles}'";
  const auto json = nlohmann::json::parse(work.wafersim("topology --json s.yaml" + borders).out);
  EXPECT_EQ(json["bisection"]["bytes_per_cycle"], 32);
  EXPECT_EQ(json["mesh"]["link_classes"][0]["reticle_borders"], 1);
  for (const std::string fidelity : {"packet", "flit"}) {
    std::vector<std::uint64_t> cycles;
    for (const std::string& reticle : {std::string(), borders}) {
      const Outcome run = work.wafersim("run --quiet --force -o out s.yaml" + reticle + " --set network.fidelity=" + fidelity);
      ASSERT_EQ(run.status, 0) << fidelity << ": " << run.err;
      cycles.push_back(nlohmann::json::parse(work.read("out/summary.json"))["cycles"].get<std::uint64_t>());
    }
    EXPECT_LT(cycles[0], cycles[1]) << fidelity;
  }
}

TEST(TopologyCommand, TrafficThatIsBlockedExitsWithThreeAndNamesTheLink) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const std::string set =
      "topology s.yaml --set 'wafer.dead_links=[tile_0_0>tile_1_0]' --set router.routing=";
  const Outcome blocked = work.wafersim(set + "xy");
  EXPECT_EQ(blocked.status, 3);
  EXPECT_TRUE(
      contains(blocked.out, "traffic                  blocked: no 'xy' route from tile_0_0 to tile_1_0: "))
      << blocked.out;
  EXPECT_TRUE(contains(blocked.err, "wafersim: error: no 'xy' route")) << blocked.err;
  EXPECT_EQ(work.wafersim(set + "table").status, 0);
  const Outcome adaptive = work.wafersim(set + "odd_even");
  EXPECT_EQ(adaptive.status, 3);
  EXPECT_TRUE(contains(adaptive.err, "no 'odd_even' route from ")) << adaptive.err;
}

TEST(TopologyCommand, AWrongScenarioExitsWithTwoAndAMissingOneWithFive) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  EXPECT_EQ(work.wafersim("topology s.yaml --set router.routing=zigzag").status, 2);
  EXPECT_EQ(work.wafersim("topology nowhere.yaml").status, 5);
  EXPECT_EQ(work.wafersim("topology").status, 2);
}

}  // namespace
}  // namespace wafersim::testing
