// The scenario files that come with the project, as a user would run them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kScenarios = fs::path(WAFERSIM_SOURCE_DIR) / "scenarios";

std::string quoted(const fs::path& path) { return "'" + path.string() + "'"; }

/// What `check` says, without what a search for a mapping brought: the resolved form has nothing to search.
nlohmann::json without_search(const Outcome& outcome) {
  auto json = nlohmann::json::parse(outcome.out);
  json.erase("mapping_report");
  return json;
}

TEST(Scenarios, EachFitsAndItsResolvedFormMeansTheSame) {
  const Workplace work;
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(kScenarios)) {
    if (entry.path().extension() != ".yaml") continue;
    ++seen;
    const Outcome outcome = work.wafersim("check " + quoted(entry.path()));
    ASSERT_EQ(outcome.status, 0) << entry.path() << "\n" << outcome.err;
    work.write("resolved.yaml", outcome.out.substr(0, outcome.out.find("\n\n") + 1));
    const Outcome again = work.wafersim("check --json resolved.yaml");
    ASSERT_EQ(again.status, 0) << entry.path() << "\n" << again.err;
    EXPECT_EQ(without_search(again), without_search(work.wafersim("check --json " + quoted(entry.path()))));
    const Outcome flits = work.wafersim("check --set network.fidelity=flit " + quoted(entry.path()));
    EXPECT_EQ(flits.status, 0) << entry.path() << "\n" << flits.err;
  }
  EXPECT_GE(seen, 2);
}

TEST(Scenarios, QuickStartRuns) {
  const Workplace work;
  const Outcome outcome = work.wafersim("run " + quoted(kScenarios / "quickstart.yaml") +
                                        " -o out --quiet --set model.layers=4 --set training.global_batch=16");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(work.read("out/summary.json"));
  EXPECT_EQ(json["tiles_used"], 256);
  EXPECT_EQ(json["memory"]["fits"], true);
  EXPECT_GT(json["mfu"].get<double>(), 0.1);
}

TEST(Scenarios, EveryHardwarePresetRunsATinyModel) {
  const Workplace work;
  for (const auto& entry : fs::directory_iterator(kScenarios / "hardware")) {
    const std::string name = entry.path().stem().string();
    work.write("tiny.yaml", "name: tiny\nwafer: {preset: " + quoted(entry.path()) +
                                ", mesh: 2x2, dead_tiles: []}\n"
                                "model: {layers: 2, hidden: 8, heads: 2, ffn: 32, vocab: 16, context: 8, sequence: 8}\n"
                                "training: {global_batch: 2}\nplan: {dp: 1, tp: 2, pp: 2, sp: megatron}\n");
    for (const char* fidelity : {"packet", "flit"}) {
      const Outcome outcome =
          work.wafersim("run tiny.yaml --force --quiet -o out-" + name + " --set network.fidelity=" + fidelity);
      EXPECT_EQ(outcome.status, 0) << name << ' ' << fidelity << "\n" << outcome.err;
    }
  }
}

TEST(Scenarios, ADeadLinkOnTheWayRefusesDimensionOrderRoutingAndTableFindsAWay) {
  const Workplace work;
  const std::string common = " " + quoted(kScenarios / "quickstart.yaml") +
                             " --quiet --set model.layers=4 --set training.global_batch=8"
                             " --set 'wafer.dead_links=[tile_3_0>tile_2_0]'";
  const Outcome refused = work.wafersim("run -o refused" + common);
  EXPECT_EQ(refused.status, 3);
  EXPECT_NE(refused.err.find("is dead"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("tile_2_0"), std::string::npos) << refused.err;
  EXPECT_FALSE(work.has("refused"));
  EXPECT_EQ(work.wafersim("run -o found" + common + " --set router.routing=table").status, 0);
}

}  // namespace
}  // namespace wafersim::testing
