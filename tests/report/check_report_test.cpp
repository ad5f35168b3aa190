#include "report/check_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace wafersim::report {
namespace {

CheckFacts facts() {
  CheckFacts result;
  result.scenario_json = R"({"name": "small"})";
  result.parameters = 174'604'402'688;
  result.flops_per_iteration = {123'456'789, 1};
  result.tiles_used = 256;
  result.tiles_total = 2048;
  result.memory.by_class = {1 << 20, 2 << 20, 0, 512, 0, 0};
  result.memory.peak_bytes = 3'146'240;
  result.memory.peak_sram_bytes = 3'146'240;
  result.memory.sram_capacity = 4 << 20;
  result.memory.fits = true;
  result.peak_tile = "tile_3_4";
  return result;
}

CheckFacts too_large() {
  CheckFacts result = facts();
  result.memory.sram_capacity = 3'145'728;
  result.memory.fits = false;
  return result;
}

TEST(CheckReport, Json) {
  const auto json = nlohmann::json::parse(check_json(facts()));
  EXPECT_EQ(json["scenario"]["name"], "small");
  EXPECT_EQ(json["parameters"], 174'604'402'688);
  EXPECT_EQ(json["flops_per_iteration"], 123'456'789);
  EXPECT_EQ(json["tiles_used"], 256);
  EXPECT_EQ(json["tiles_total"], 2048);
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["memory"]["fits"], true);
  EXPECT_EQ(json["memory"]["by_class"]["gradients"], 2 << 20);
  EXPECT_EQ(json["memory"]["capacity_bytes"], 4 << 20);
  EXPECT_EQ(json["memory"]["peak_tile"], "tile_3_4");
  EXPECT_EQ(json["memory"]["over_bytes"], 0);
  EXPECT_FALSE(json.contains("faults"));
}

TEST(CheckReport, JsonSaysHowMuchItIsOver) {
  const auto json = nlohmann::json::parse(check_json(too_large()));
  EXPECT_EQ(json["fits"], false);
  EXPECT_EQ(json["memory"]["over_bytes"], 512);
}

TEST(CheckReport, FaultsAreListedWhenVerified) {
  CheckFacts verified = facts();
  verified.verified = true;
  EXPECT_EQ(nlohmann::json::parse(check_json(verified))["faults"].size(), 0u);
  EXPECT_NE(check_text(verified).find("sound"), std::string::npos);
  verified.faults = {"a send without its receive"};
  EXPECT_EQ(nlohmann::json::parse(check_json(verified))["faults"][0], "a send without its receive");
  EXPECT_NE(check_text(verified).find("  a send without its receive\n"), std::string::npos);
}

TEST(CheckReport, Text) {
  EXPECT_EQ(check_text(facts()),
            "parameters               174,604,402,688\n"
            "FLOPs per iteration      123,456,789\n"
            "tiles                    256 of 2,048 used\n"
            "memory of a tile         at most, fullest tile of each class\n"
            "  parameters             1.00 MiB (1,048,576 bytes)\n"
            "  gradients              2.00 MiB (2,097,152 bytes)\n"
            "  activations            512 B (512 bytes)\n"
            "fullest tile             tile_3_4: 3.00 MiB (3,146,240 bytes)\n"
            "capacity                 4.00 MiB (4,194,304 bytes)\n"
            "fits                     yes\n");
}

TEST(CheckReport, OverflowNamesTheMemory) {
  CheckFacts over = too_large();
  EXPECT_EQ(overflow_text(over.memory), "512 B (512 bytes) over a tile's SRAM of 3.00 MiB");
  over.memory.dram_capacity = 1024;
  over.memory.peak_dram_bytes = 2048;
  EXPECT_EQ(overflow_text(over.memory),
            "512 B (512 bytes) over a tile's SRAM of 3.00 MiB and 1.00 KiB (1,024 bytes) over a tile's share "
            "of DRAM of "
            "1.00 KiB");
  EXPECT_EQ(overflow_text(facts().memory), "");
}

}  // namespace
}  // namespace wafersim::report
