#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

const std::string kBookSim = WAFERSIM_SOURCE_DIR "/scenarios/traffic/booksim2.yaml";
const std::string kShort = " --set traffic.seeds=1 --set traffic.measurement=\"1000 cycles\" --set wafer.mesh=4x4";

TEST(TrafficCommand, PrintsTheMeasurementAsJson) {
  const Workplace place;
  const Outcome outcome = place.wafersim("traffic " + kBookSim + kShort + " --set traffic.load=0.2 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_NEAR(json.at("offered_load").get<double>(), 0.2, 0.02);
  EXPECT_NEAR(json.at("accepted_load").get<double>(), 0.2, 0.02);
  EXPECT_TRUE(json.at("stable").get<bool>());
  EXPECT_GT(json.at("flit_hops").get<std::uint64_t>(), 1000U);
  EXPECT_GT(json.at("cpu_seconds").get<double>(), 0.0);
  // 3.5 routers on average, five cycles each, and two more.
  EXPECT_NEAR(json.at("mean_packet_latency").get<double>(), 19.5, 2);
  EXPECT_EQ(json.at("ideal_saturation").at("load").get<double>(), 1.0);
  EXPECT_EQ(json.at("scenario").at("router").at("pipeline_preset"), "p5");
  EXPECT_FALSE(json.at("scenario").contains("model"));
}

TEST(TrafficCommand, EveryKeyCanBeSet) {
  const Workplace place;
  const Outcome outcome = place.wafersim(
      "traffic " + kBookSim + kShort +
      " --set router.virtual_channels=8 --set router.vc_buffer_flits=16 --set router.pipeline_preset=p3"
      " --set traffic.pattern=bit_complement --set traffic.packet_flits=20 --set traffic.load=0.1 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("scenario").at("traffic").at("packet_flits"), 20);
}

TEST(TrafficCommand, SweepFindsSaturationAndDrawsIt) {
  const Workplace place;
  const Outcome outcome = place.wafersim("traffic " + kBookSim + kShort + " --set traffic.sweep=\"{points: 3, precision: 0.1}\""
                                         " --sweep --json -o out");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  const double saturation = json.at("saturation_load").get<double>();
  EXPECT_GT(saturation, 0.5);
  EXPECT_LT(saturation, json.at("ideal_saturation").at("load").get<double>());
  EXPECT_GE(json.at("points").size(), 4U);
  EXPECT_EQ(json, nlohmann::json::parse(place.read("out/traffic.json")));
  const std::string csv = place.read("out/traffic.csv");
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')), json.at("points").size() + 1);
  const std::string svg = place.read("out/latency.svg");
  EXPECT_NE(svg.find("ideal saturation 1"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

/// Through routers of packets and through cut-through routers of flits, all but what the engines themselves are counted by.
TEST(TrafficCommand, PacketsGiveWhatCutThroughFlitsGive) {
  const Workplace place;
  const auto run = [&](const std::string& arguments) {
    const Outcome outcome = place.wafersim("traffic " + kBookSim + kShort + " --set traffic.packet_flits=[2,5]" +
                                           " --set router.vc_buffer_flits=10 --set router.switching=cut_through " + arguments +
                                           " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  const auto expect_equal = [](const nlohmann::json& packets, const nlohmann::json& flits) {
    for (const char* key : {"load", "offered_load", "accepted_load", "mean_packet_latency", "mean_network_latency",
                            "p99_packet_latency", "max_packet_latency", "packets", "stable", "drained", "least_accepted",
                            "cycles"}) {
      EXPECT_EQ(packets.at(key), flits.at(key)) << key;
    }
    EXPECT_GT(packets.at("flit_hops").get<std::uint64_t>(), 0U);
    EXPECT_GT(packets.at("cpu_seconds").get<double>(), 0.0);
  };
  for (const char* arguments : {"--set traffic.load=0.3", "--set traffic.pattern=transpose --set traffic.injection=on_off",
                                "--set router.routing=odd_even --set traffic.seeds=2"}) {
    expect_equal(run(std::string("--set network.fidelity=packet ") + arguments), run(arguments));
  }
  const std::string sweep = " --sweep --set traffic.sweep=\"{points: 2, precision: 0.1}\" --force -o ";
  const auto packets = run("--set network.fidelity=packet" + sweep + "packets");
  const auto flits = run(sweep + "flits");
  EXPECT_EQ(packets.at("saturation_load"), flits.at("saturation_load"));
  EXPECT_EQ(packets.at("saturation_throughput"), flits.at("saturation_throughput"));
  ASSERT_EQ(packets.at("points").size(), flits.at("points").size());
  for (std::size_t i = 0; i < flits.at("points").size(); ++i) expect_equal(packets.at("points").at(i), flits.at("points").at(i));
  EXPECT_NE(place.read("packets/latency.svg").find("</svg>"), std::string::npos);
}

TEST(TrafficCommand, ReplaysATrace) {
  const Workplace place;
  place.write("packets.csv", "cycle, source, destination, bytes\n0, tile_0_0, tile_3_0, 4\n100, 5, 5, 8\n");
  const Outcome outcome =
      place.wafersim("traffic " + kBookSim + kShort + " --set traffic.pattern=trace --set traffic.file=packets.csv --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("packets"), 2);
  EXPECT_EQ(json.at("mean_packet_latency").get<double>(), ((5 * 4 + 2) + (5 + 2 + 1)) / 2.0);
  EXPECT_TRUE(json.at("ideal_saturation").is_null());
}

TEST(TrafficCommand, BadInputsAreNamed) {
  const Workplace place;
  place.write("no.yaml", kSmallScenario);
  Outcome outcome = place.wafersim("traffic no.yaml");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("no.yaml: traffic: missing"), std::string::npos) << outcome.err;
  outcome = place.wafersim("check " + kBookSim);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("model: missing"), std::string::npos) << outcome.err;
  outcome = place.wafersim("traffic " + kBookSim + " --set traffic.pattern=shuffle --set wafer.mesh=3x4");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("power of two"), std::string::npos) << outcome.err;
  outcome = place.wafersim("traffic " + kBookSim + " --set traffic.load=1.5");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("traffic.load: 1.5 flits a cycle in packets of 1 is more than a packet a cycle; valid: at most 1"),
            std::string::npos)
      << outcome.err;
  outcome = place.wafersim("traffic " + kBookSim + " --set traffic.injection=on_off --set traffic.burst_load=0.05");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("traffic.burst_load: 0.05 must be more than traffic.load (0.1)"), std::string::npos) << outcome.err;
  outcome = place.wafersim("traffic " + kBookSim +
                           " --set router.switching=cut_through --set router.vc_buffer_flits=4 --set traffic.packet_flits=[2,8]");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("traffic.packet_flits: 8 is more than a buffer of 4 flits"), std::string::npos) << outcome.err;
  outcome = place.wafersim("traffic " + kBookSim + " --set network.fidelity=packet --set traffic.packet_flits=20");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("traffic.packet_flits: 20 is more than a buffer of 8 flits"), std::string::npos) << outcome.err;
  outcome = place.wafersim("traffic " + kBookSim + " --set network.fidelity=ideal");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("`wafersim traffic` needs routers; valid: flit, packet"), std::string::npos) << outcome.err;
  place.write("bad.csv", "0, tile_0_0, tile_9_0, 4\n");
  outcome = place.wafersim("traffic " + kBookSim + kShort + " --set traffic.pattern=trace --set traffic.file=bad.csv");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("bad.csv:1:13: traffic.file: 'tile_9_0'"), std::string::npos) << outcome.err;
}

/// Runs a trace, or a permutation, of this text.
Outcome run_file(const Workplace& place, const std::string& pattern, const std::string& text, const std::string& more) {
  place.write("packets.csv", text);
  return place.wafersim("traffic " + kBookSim + kShort + " --set traffic.pattern=" + pattern +
                        " --set traffic.file=packets.csv " + more);
}

TEST(TrafficCommand, FilesWithoutPacketsAreRefused) {
  const Workplace place;
  for (const char* pattern : {"permutation", "trace"}) {
    for (const char* text : {"", "# nothing\n", "source,destination\n"}) {
      const Outcome outcome = run_file(place, pattern, text, "-o out");
      EXPECT_EQ(outcome.status, 2) << pattern << text;
      EXPECT_NE(outcome.err.find("packets.csv: traffic.file: no line of"), std::string::npos) << outcome.err;
    }
  }
}

TEST(TrafficCommand, ACommentMayComeBeforeTheHeader) {
  const Workplace place;
  const Outcome outcome = run_file(place, "trace", "# made by hand\ncycle,source,destination,bytes\n0,0,1,4\n", "--json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("packets"), 1);
}

/// The second packet comes after four thousand million cycles in which nothing happens, as late as the first.
TEST(TrafficCommand, IdleCyclesOfATraceCostNothing) {
  const Workplace place;
  const Outcome outcome = run_file(place, "trace", "0,0,1,4\n4000000000,0,1,4\n", "--json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("packets"), 2);
  EXPECT_EQ(json.at("mean_packet_latency").get<double>(), json.at("max_packet_latency").get<double>());
  EXPECT_GT(json.at("cycles"), 4'000'000'000);
  EXPECT_TRUE(json.at("load").is_null());
  const Outcome late = run_file(place, "trace", "18446744073709551615,0,1,4\n", "");
  EXPECT_EQ(late.status, 2);
  EXPECT_NE(late.err.find("is no cycle; valid: 0 to 281474976710656"), std::string::npos) << late.err;
}

TEST(TrafficCommand, WithoutArrivalsThereIsNoLatency) {
  const Workplace place;
  const Outcome outcome = place.wafersim("traffic " + kBookSim + kShort + " --set traffic.load=0.000001 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.at("packets"), 0);
  for (const char* key : {"mean_packet_latency", "p50_packet_latency", "max_packet_latency"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
}

TEST(TrafficCommand, ForeignFilesAreKeptUnlessForced) {
  const Workplace place;
  std::filesystem::create_directory(place.path() / "out");
  place.write("out/mine.txt", "keep");
  EXPECT_EQ(place.wafersim("traffic " + kBookSim + kShort + " -o out").status, 5);
  EXPECT_EQ(place.wafersim("traffic " + kBookSim + kShort + " -o out --force").status, 0);
  EXPECT_EQ(place.wafersim("traffic " + kBookSim + kShort + " -o out").status, 0) << "an earlier run's";
}

TEST(TrafficCommand, WormholeRunsAPlan) {
  const Workplace place;
  place.write("small.yaml", kSmallScenario);
  const Outcome outcome = place.wafersim("run small.yaml --json --quiet --set network.fidelity=flit -o out");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(place.read("out/summary.json")).at("engine").at("fidelity"), "flit");
}

}  // namespace
}  // namespace wafersim::testing
