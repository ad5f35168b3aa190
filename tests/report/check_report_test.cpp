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
  result.memory.sram_by_class = result.memory.by_class;
  result.memory.fits = true;
  result.peak_tile = "tile_3_4";
  return result;
}

CheckFacts too_large() {
  CheckFacts result = facts();
  result.memory.sram_capacity = 3'145'728;
  result.memory.fits = false;
  result.memory.overflow = {7,         false,
                            3'146'240, 3'145'728,
                            {1 << 20, 2 << 20, 0, 512, 0, 0},
                            "step 12 (layer.backward), layer 3, microbatch 0"};
  result.overflow_tile = "tile_3_4";
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
  const auto& overflow = json["memory"]["overflow"];
  EXPECT_EQ(overflow["tile"], "tile_3_4");
  EXPECT_EQ(overflow["memory"], "sram");
  EXPECT_EQ(overflow["over_bytes"], 512);
  EXPECT_EQ(overflow["by_class"]["gradients"], 2 << 20);
  EXPECT_EQ(overflow["step"], "step 12 (layer.backward), layer 3, microbatch 0");
  EXPECT_TRUE(nlohmann::json::parse(check_json(facts()))["memory"]["overflow"].is_null());
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

TEST(CheckReport, TextSaysHowMuchOfAClassIsInSram) {
  CheckFacts split = facts();
  split.memory.sram_by_class[1] = 512 << 10;
  EXPECT_NE(check_text(split).find("  gradients              2.00 MiB (2,097,152 bytes), 512 KiB of it in SRAM\n"),
            std::string::npos)
      << check_text(split);
}

TEST(CheckReport, OverflowNamesTileMemoryStepAndClasses) {
  CheckFacts over = too_large();
  const std::string amounts = "parameters 1.00 MiB (1,048,576 bytes), gradients 2.00 MiB (2,097,152 bytes), "
                              "activations 512 B (512 bytes)";
  EXPECT_EQ(overflow_text(over.memory, over.overflow_tile),
            "tile_3_4 may hold 3.00 MiB (3,146,240 bytes) in its SRAM of 3.00 MiB, 512 B (512 bytes) too many, most in "
            "step 12 (layer.backward), layer 3, microbatch 0: at most " + amounts);
  over.memory.overflow->dram = true;
  over.memory.overflow->step.clear();
  EXPECT_EQ(overflow_text(over.memory, over.overflow_tile),
            "tile_3_4 may hold 3.00 MiB (3,146,240 bytes) in its share of DRAM of 3.00 MiB, 512 B (512 bytes) too many: "
            "at most " + amounts);
  EXPECT_EQ(overflow_text(facts().memory, ""), "");
}

}  // namespace
}  // namespace wafersim::report
