#include "report/summary_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/report/run_fixture.h"

namespace wafersim::report {
namespace {

using nlohmann::ordered_json;
using wafersim::testing::RunFixture;

std::string text_of(const RunFixture& run) {
  const analysis::RunSummary summary = run.summarize();
  return summary_text(run.context(summary));
}

ordered_json json_of(const RunFixture& run) { return ordered_json::parse(text_of(run)); }

std::vector<std::string> keys(const ordered_json& json) {
  std::vector<std::string> names;
  for (const auto& [key, value] : json.items()) names.push_back(key);
  return names;
}

TEST(SummaryJson, KeysAndTheirOrder) {
  const ordered_json json = json_of(RunFixture());
  EXPECT_EQ(keys(json), (std::vector<std::string>{"schema_version",
                                                  "wafersim_version",
                                                  "name",
                                                  "partial",
                                                  "stopped_by",
                                                  "cycles",
                                                  "seconds",
                                                  "tokens_per_second",
                                                  "mfu",
                                                  "hfu",
                                                  "mfu_wafer",
                                                  "compute_utilization",
                                                  "tiles_used",
                                                  "tiles_total",
                                                  "model_flops_per_iteration",
                                                  "matrix_flops",
                                                  "iterations",
                                                  "breakdown",
                                                  "communication_share",
                                                  "hidden_communication",
                                                  "memory",
                                                  "network",
                                                  "energy",
                                                  "machine",
                                                  "plan",
                                                  "scenario",
                                                  "engine"}));
  EXPECT_EQ(keys(json["breakdown"]),
            (std::vector<std::string>{"compute", "exposed_communication", "bubble", "memory_stall", "idle"}));
  EXPECT_EQ(keys(json["breakdown"]["exposed_communication"]),
            (std::vector<std::string>{"tp", "tatp", "sp", "ep", "dp", "pp"}));
  EXPECT_EQ(keys(json["memory"]["peak_by_class"]),
            (std::vector<std::string>{"parameters", "gradients", "optimizer", "activations", "stream_buffers",
                                      "communication_buffers"}));
  EXPECT_EQ(keys(json["network"]["hotspots"][0]),
            (std::vector<std::string>{"link", "bytes", "utilization", "queue_cycles", "by_axis"}));
  EXPECT_EQ(keys(json["engine"]),
            (std::vector<std::string>{"fidelity", "wall_seconds", "cpu_seconds", "peak_rss_bytes", "events",
                                      "packet_hops_per_cpu_second", "folded_fraction", "fold", "trains"}));
}

TEST(SummaryJson, Values) {
  const ordered_json json = json_of(RunFixture());
  EXPECT_EQ(json["schema_version"], kSchemaVersion);
  EXPECT_EQ(json["partial"], false);
  EXPECT_TRUE(json["stopped_by"].is_null());
  EXPECT_TRUE(json["energy"].is_null());
  EXPECT_EQ(json["cycles"], 1000);
  EXPECT_EQ(json["tiles_used"], 2);
  EXPECT_EQ(json["breakdown"]["compute"], 0.5);
  EXPECT_EQ(json["memory"]["peak_tile"], "tile_1_0");
  EXPECT_EQ(json["network"]["hotspots"][0]["by_axis"]["dp"], 1000);
  EXPECT_EQ(json["machine"]["matrix_flops_per_cycle"], 32768);
  EXPECT_TRUE(json["machine"]["sram_bytes_per_cycle"].is_null());
  EXPECT_TRUE(json["machine"]["dram_bytes_per_cycle"].is_null());
  EXPECT_EQ(json["plan"]["tp"], 2);
  EXPECT_EQ(json["plan"]["mapping"]["tp"], "1x2");
  EXPECT_EQ(json["scenario"], ordered_json::parse(R"({"name": "small", "seed": 1})"));
  EXPECT_TRUE(json["iterations"]["steady_state_cycles"].is_null());
}

TEST(SummaryJson, EnergyIsTheSumOfItsParts) {
  RunFixture run;
  run.hardware.energy.matrix = EnergyPerFlop{Rational(1, 1 << 20)};
  run.hardware.energy.link = EnergyPerBit{Rational(1, 1 << 10)};
  run.hardware.energy.standing = Power{Rational(1'000'000)};
  const ordered_json energy = json_of(run)["energy"];
  EXPECT_EQ(keys(energy), (std::vector<std::string>{"total_joules", "average_watts", "joules_per_token", "by_part",
                                                    "unused_tiles_joules", "not_modelled"}));
  EXPECT_EQ(keys(energy["by_part"]), (std::vector<std::string>{"matrix", "link", "static"}));
  EXPECT_EQ(energy["not_modelled"], (std::vector<std::string>{"vector", "sram", "router", "nic"})) << "there is no DRAM";
  EXPECT_EQ(energy["by_part"]["matrix"], 3'276'800.0 / (1 << 20));
  EXPECT_EQ(energy["by_part"]["link"], 8.0 * 8000 / (1 << 10));
  EXPECT_DOUBLE_EQ(energy["by_part"]["static"].get<double>(), 2) << "two tiles, 1 us";
  const double total = energy["total_joules"].get<double>();
  EXPECT_DOUBLE_EQ(total, 3'276'800.0 / (1 << 20) + 62.5 + 2);
  EXPECT_DOUBLE_EQ(energy["average_watts"].get<double>(), total / 1e-6);
  EXPECT_DOUBLE_EQ(energy["joules_per_token"].get<double>(), total / (4 * 32));
  run.measurements.partial = true;
  EXPECT_TRUE(json_of(run)["energy"]["joules_per_token"].is_null());
}

TEST(SummaryJson, BreakdownReadBackSumsToOne) {
  const ordered_json breakdown = json_of(RunFixture())["breakdown"];
  double sum = 0;
  for (const char* key : {"compute", "bubble", "memory_stall", "idle"}) sum += breakdown[key].get<double>();
  for (const auto& [axis, fraction] : breakdown["exposed_communication"].items())
    sum += fraction.get<double>();
  EXPECT_NEAR(sum, 1.0, 1e-12);
}

TEST(SummaryJson, OnlyTheEngineBlockDiffersBetweenRuns) {
  RunFixture other;
  other.measurements.engine = {7, 8, 9, 10, 11, {}};
  ordered_json first = json_of(RunFixture());
  ordered_json second = json_of(other);
  EXPECT_NE(first, second);
  first.erase("engine");
  second.erase("engine");
  EXPECT_EQ(first.dump(), second.dump());
  EXPECT_EQ(text_of(RunFixture()), text_of(RunFixture()));
}

TEST(SummaryJson, PartialRunSaysSoAndLeavesUnknownRatesNull) {
  RunFixture run;
  run.measurements.partial = true;
  run.measurements.stopped_by = "max-cycles";
  run.measurements.iteration_ends.clear();
  const ordered_json json = json_of(run);
  EXPECT_EQ(json["partial"], true);
  EXPECT_EQ(json["stopped_by"], "max-cycles");
  EXPECT_TRUE(json["tokens_per_second"].is_null());
  EXPECT_TRUE(json["mfu"].is_null());
  EXPECT_TRUE(json["hfu"].is_number());
}

TEST(SummaryJson, TextIsIndentedAndEndsWithANewline) {
  const std::string text = text_of(RunFixture());
  EXPECT_TRUE(text.starts_with("{\n  \"schema_version\": 1,\n"));
  EXPECT_TRUE(text.ends_with("\n}\n"));
}

}  // namespace
}  // namespace wafersim::report
