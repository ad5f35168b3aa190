#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

const std::string kLine = WAFERSIM_SOURCE_DIR "/scenarios/studies/wse/line.yaml";
const std::string kRelay = WAFERSIM_SOURCE_DIR "/scenarios/studies/wse/wse3-relay.yaml";

nlohmann::json run(const Workplace& place, const std::string& arguments) {
  const Outcome outcome = place.wafersim("collective " + arguments + " --json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

TEST(CollectiveCommand, SimulatesALineOfAWse) {
  const Workplace place;
  const auto json = run(place, kLine + " --set wafer.mesh=1x16 --set collective.bytes='256 B'");
  // 64 wavelets, 15 messages of 5 cycles and a hop.
  EXPECT_EQ(json.at("cycles"), 64 + 6 * 15);
  EXPECT_EQ(json.at("model_cycles"), 64 + 6 * 15);
  EXPECT_EQ(json.at("reduce_bound_cycles"), 147);
  EXPECT_EQ(json.at("kind"), "reduce");
  EXPECT_EQ(json.at("algorithm"), "chain");
  EXPECT_EQ(json.at("relay"), "cut_through");
  EXPECT_EQ(json.at("packets"), 64 * 15);
  EXPECT_EQ(json.at("max_link_bytes"), 256);
  EXPECT_TRUE(json.at("row_group").is_null());
  EXPECT_FALSE(json.at("scenario").contains("model"));
  EXPECT_EQ(json.at("scenario").at("collective").at("bytes"), "256 B");
}

TEST(CollectiveCommand, RoutersCopyABroadcast) {
  const Workplace place;
  const auto json = run(place, kLine + " --set wafer.mesh=4x8 --set collective.bytes='64 B' --set collective.kind=broadcast"
                                       " --set collective.algorithm=router_multicast");
  // The farthest tile is 10 hops away.
  EXPECT_EQ(json.at("cycles"), 16 + 10 + 5);
  EXPECT_EQ(json.at("packets"), 16) << "one injection";
  EXPECT_EQ(json.at("packet_hops"), 16 * 31) << "a link of the tree for each receiver";
}

/// A packet of one flit takes the same time through routers of either kind.
TEST(CollectiveCommand, FlitRoutersCopyToo) {
  const Workplace place;
  const std::string common = kLine + " --set wafer.mesh=3x4 --set collective.bytes='64 B' --set router.switching=cut_through";
  for (const char* collective : {" --set collective.kind=broadcast --set collective.algorithm=router_multicast",
                                 " --set collective.kind=all_reduce --set collective.algorithm=tree"}) {
    const auto packets = run(place, common + collective);
    const auto flits = run(place, common + collective + " --set network.fidelity=flit");
    for (const char* key : {"cycles", "packets", "packet_hops", "max_link_bytes"}) {
      EXPECT_EQ(packets.at(key), flits.at(key)) << key;
    }
  }
}

TEST(CollectiveCommand, TwoPhasesTakeTheGroupOfTheModelOrOfTheScenario) {
  const Workplace place;
  const std::string common = kLine + " --set wafer.mesh=1x64 --set collective.bytes='64 B' --set collective.algorithm=two_phase";
  EXPECT_EQ(run(place, common).at("row_group"), 8);
  EXPECT_EQ(run(place, common + " --set collective.group=4").at("row_group"), 4);
}

TEST(CollectiveCommand, ARelayOfAWse3TakesWhatIsPublished) {
  const Workplace place;
  const double cycles = run(place, kRelay).at("cycles").get<double>();
  const double published = 1.001 * 8 * 1024 + 16.1 * 8 + 16.5;
  EXPECT_LE(std::abs(cycles / published - 1), 0.02) << cycles << " for " << published;
}

TEST(CollectiveCommand, SaysWhatDoesNotFit) {
  const Workplace place;
  const auto refused = [&](const std::string& arguments, int status, const std::string& text) {
    const Outcome outcome = place.wafersim("collective " + kLine + arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
  };
  refused(" --set collective.algorithm=ring", 2, "collective.algorithm: 'ring' does not fit; it is for the kind all_reduce");
  refused(" --set collective.shape=2x2", 2, "collective.shape: 2x2 does not fit the mesh 1x512");
  refused(" --set collective.bytes='6 B'", 2, "multiples of 4 B");
  refused(" --set collective.group=4", 2, "collective.group: is only for the algorithms two_phase and k_tree");
  refused(" --set network.fidelity=analytic", 2, "'analytic' predicts iterations of plans; valid: packet, flit, ideal");
  refused(" --set wafer.dead_tiles='[tile_3_0]'", 3, "tile_3_0");
  refused(" --set collective=none", 2, "model");
  const Outcome other = place.wafersim("collective " + std::string(WAFERSIM_SOURCE_DIR) + "/scenarios/traffic/booksim2.yaml");
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("`wafersim collective` needs this section"), std::string::npos) << other.err;
  const Outcome no_plan = place.wafersim("run " + kLine);
  EXPECT_EQ(no_plan.status, 2);
  EXPECT_NE(no_plan.err.find("`wafersim traffic`, `collective`, `kernel`"), std::string::npos) << no_plan.err;
}

}  // namespace
}  // namespace wafersim::testing
