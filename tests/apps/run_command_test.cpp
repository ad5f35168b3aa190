#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Long enough to be interrupted: the simulation takes seconds and starts when its directory is there.
constexpr const char* kLong = "--fold off --set training.iterations=3000";

TEST(RunCommand, WritesItsFilesAndASummaryForPeople) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("run s.yaml");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(contains(outcome.out, "Where the time goes")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "Results in runs/small\n"));
  for (const char* file : {"summary.json", "tiles.csv", "links.csv", "steps.csv"}) {
    EXPECT_TRUE(work.has(std::string("runs/small/") + file)) << file;
  }
  EXPECT_FALSE(work.has("runs/small/messages.csv"));
}

TEST(RunCommand, JsonIsTheSummaryFile) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("run s.yaml -o out --json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, work.read("out/summary.json"));
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["tiles_used"], 4);
  EXPECT_EQ(json["partial"], false);
  EXPECT_GT(json["cycles"], 0);
}

TEST(RunCommand, TwoRunsDifferInTheEngineBlockOnly) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  ASSERT_EQ(work.wafersim("run s.yaml -o a --quiet --messages").status, 0);
  ASSERT_EQ(work.wafersim("run s.yaml -o b --quiet --messages").status, 0);
  for (const char* file : {"tiles.csv", "links.csv", "steps.csv", "messages.csv"}) {
    EXPECT_EQ(work.read(std::string("a/") + file), work.read(std::string("b/") + file)) << file;
  }
  auto first = nlohmann::ordered_json::parse(work.read("a/summary.json"));
  auto second = nlohmann::ordered_json::parse(work.read("b/summary.json"));
  first.erase("engine");
  second.erase("engine");
  EXPECT_EQ(first.dump(), second.dump());
}

TEST(RunCommand, QuietPrintsNothing) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("run s.yaml --quiet");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out + outcome.err, "");
}

/// The cells of a line.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  std::istringstream text(line);
  for (std::string cell; std::getline(text, cell, ',');) result.push_back(cell);
  return result;
}

TEST(RunCommand, MemoryOverTimeHasThePeaksOfItsTiles) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  ASSERT_EQ(work.wafersim("run s.yaml -o out --quiet --memory-tiles tile_1_0").status, 0);
  std::istringstream rows(work.read("out/memory.csv"));
  std::string line;
  std::getline(rows, line);
  EXPECT_EQ(line,
            "tile,cycle,window_cycles,parameters_bytes,gradients_bytes,optimizer_bytes,activations_bytes,"
            "stream_buffers_bytes,communication_buffers_bytes,sram_bytes,dram_bytes,total_bytes");
  std::map<std::string, std::uint64_t> most;
  while (std::getline(rows, line)) {
    const std::vector<std::string> row = cells(line);
    ASSERT_EQ(row.size(), 12U) << line;
    std::uint64_t& peak = most[row[0]];
    peak = std::max<std::uint64_t>(peak, std::stoull(row.back()));
  }
  EXPECT_EQ(most.count("tile_1_0"), 1U);
  const auto summary = nlohmann::json::parse(work.read("out/summary.json"));
  EXPECT_EQ(most.at(summary["memory"]["peak_tile"].get<std::string>()), summary["memory"]["peak_bytes"]);
  // A later run without it leaves none.
  ASSERT_EQ(work.wafersim("run s.yaml -o out --quiet").status, 0);
  EXPECT_FALSE(work.has("out/memory.csv"));
}

TEST(RunCommand, MemoryOfATileThatIsNotUsedIsRefused) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("run s.yaml -o out --quiet --memory-tiles tile_1_0,tile_9_9");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(contains(outcome.err, "--memory-tiles: 'tile_9_9' is not a tile that the plan uses; 4 are used, the first "
                                    "is tile_0_0 and the last tile_1_1"))
      << outcome.err;
  EXPECT_FALSE(work.has("out/summary.json"));
}

TEST(RunCommand, ATimelineChangesNoResult) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  ASSERT_EQ(work.wafersim("run s.yaml -o plain --quiet --messages").status, 0);
  const Outcome outcome = work.wafersim("run s.yaml -o recorded --messages --timeline");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "Timeline in recorded/timeline.json.gz, to open in https://ui.perfetto.dev\n")) << outcome.out;
  for (const char* file : {"tiles.csv", "links.csv", "steps.csv", "messages.csv"}) {
    EXPECT_EQ(work.read(std::string("plain/") + file), work.read(std::string("recorded/") + file)) << file;
  }
  EXPECT_FALSE(work.has("plain/timeline.json.gz"));
  ASSERT_EQ(work.wafersim("run s.yaml -o again --quiet --timeline").status, 0);
  EXPECT_EQ(work.read("again/timeline.json.gz"), work.read("recorded/timeline.json.gz"));
  ASSERT_EQ(work.wafersim("run s.yaml -o again --quiet").status, 0);
  EXPECT_FALSE(work.has("again/timeline.json.gz")) << "of the run before";
}

TEST(RunCommand, ATimelineHasTheTilesThatAreNamed) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const auto text = [&](const std::string& options) {
    const Outcome outcome = work.wafersim("run s.yaml -o out --quiet --timeline " + options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const Outcome unpacked = work.shell("gzip -dc out/timeline.json.gz");
    EXPECT_EQ(unpacked.status, 0) << unpacked.err;
    return unpacked.out;
  };
  EXPECT_EQ(nlohmann::json::parse(text(""))["otherData"]["tiles"], 2) << "one of each stage";
  const std::string of_column = text("--timeline-tiles 'tile_1_*,tile_1_0'");
  EXPECT_EQ(nlohmann::json::parse(of_column)["otherData"]["tiles"], 2);
  EXPECT_TRUE(contains(of_column, "\"tile_1_0 matrix\"") && contains(of_column, "\"tile_1_1 matrix\""));
  EXPECT_FALSE(contains(of_column, "\"tile_0_0 matrix\""));
  EXPECT_EQ(nlohmann::json::parse(text("--timeline-tiles 'tile_*_*'"))["otherData"]["tiles"], 4);
}

TEST(RunCommand, ATimelineThatIsFullSaysSo) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("run s.yaml -o out --set training.iterations=30 --timeline --timeline-bytes '64 KiB'");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "; it has reached its size (--timeline-bytes), from cycle ")) << outcome.out;
  const Outcome unpacked = work.shell("gzip -dc out/timeline.json.gz");
  EXPECT_LE(unpacked.out.size(), 65'536U);
  EXPECT_EQ(nlohmann::json::parse(unpacked.out)["otherData"]["complete"], false);
}

TEST(RunCommand, TimelineOptionsThatCannotBe) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const auto expect_refused = [&](const std::string& options, const std::string& reason) {
    const Outcome outcome = work.wafersim("run s.yaml -o out --quiet " + options);
    EXPECT_EQ(outcome.status, 2) << options;
    EXPECT_TRUE(contains(outcome.err, reason)) << outcome.err;
  };
  expect_refused("--timeline-tiles tile_0_0", "--timeline-tiles requires --timeline");
  expect_refused("--timeline-bytes '1 MB'", "--timeline-bytes requires --timeline");
  expect_refused("--timeline --timeline-bytes '1 KiB'", "'1 KiB' is too small; valid: 64 KiB and more");
  expect_refused("--timeline --timeline-bytes many", "--timeline-bytes");
  expect_refused("--timeline --timeline-bytes 100", "--timeline-bytes");
  expect_refused("--timeline --timeline-tiles tile_9_9", "--timeline-tiles: 'tile_9_9' names no live tile");
  expect_refused("--timeline --timeline-tiles tile_2_0 --set wafer.mesh=3x3",
                 "--timeline-tiles: 'tile_2_0' names no tile that the plan uses; 4 are used, the first is ");
  EXPECT_FALSE(work.has("out"));
}

TEST(RunCommand, OutOfMemoryNamesTileStepClassesAndExcess) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("run s.yaml -o out --quiet --set 'wafer.sram.capacity=500 KiB'");
  EXPECT_EQ(outcome.status, 3);
  for (const char* part : {"tile_0_0: out of SRAM in cycle", "(layer.forward), layer 0, microbatch 0", "512000 B there", "too many: ",
                           "parameters ", "gradients ", "optimizer ", "activations "}) {
    EXPECT_TRUE(contains(outcome.err, part)) << part << " in " << outcome.err;
  }
}

TEST(RunCommand, MessagesAreLogged) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  ASSERT_EQ(work.wafersim("run s.yaml -o out --quiet --messages").status, 0);
  const auto json = nlohmann::json::parse(work.read("out/summary.json"));
  const std::string log = work.read("out/messages.csv");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n') - 1, json["network"]["messages"].get<std::ptrdiff_t>());
}

TEST(RunCommand, ForeignDirectoryIsRefusedUnlessForced) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  std::filesystem::create_directories(work.path() / "mine");
  work.write("mine/thesis.tex", "years of work");
  const Outcome outcome = work.wafersim("run s.yaml -o mine");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_TRUE(contains(outcome.err, "wafersim: error: cannot write results to mine: ")) << outcome.err;
  EXPECT_EQ(work.wafersim("run s.yaml -o mine --force --quiet").status, 0);
  EXPECT_EQ(work.read("mine/thesis.tex"), "years of work");
  EXPECT_EQ(work.wafersim("run s.yaml -o mine --quiet").status, 0) << "now it is an earlier run";
}

TEST(RunCommand, DirectoryThatCannotBeMadeIsAnInputOutputError) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("run s.yaml -o s.yaml/out");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_TRUE(contains(outcome.err, "s.yaml/out")) << outcome.err;
}

TEST(RunCommand, MaxCyclesGivesPartialResults) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("run s.yaml -o out --max-cycles 100");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "PARTIAL RESULTS: stopped by max-cycles")) << outcome.out;
  const auto json = nlohmann::json::parse(work.read("out/summary.json"));
  EXPECT_EQ(json["partial"], true);
  EXPECT_EQ(json["stopped_by"], "max-cycles");
  EXPECT_EQ(json["cycles"], 100);
  EXPECT_TRUE(json["mfu"].is_null());
}

TEST(RunCommand, InterruptWritesPartialResults) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.shell(std::string("\"$WAFERSIM\" run s.yaml -o out --quiet ") + kLong +
                                     " & program=$!; while [ ! -d out ] && kill -0 $program; do sleep 0.01; "
                                     "done; kill -TERM $program; wait $program");
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  const auto json = nlohmann::json::parse(work.read("out/summary.json"));
  EXPECT_EQ(json["stopped_by"], "interrupt");
  EXPECT_EQ(json["partial"], true);
}

TEST(RunCommand, LargePacketsAreWarnedAbout) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("run s.yaml --set 'network.packet_bytes=4 MiB'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("wafersim: warning: packets of 4.00 MiB need ")) << outcome.err;
}

TEST(RunCommand, BadScenarioWritesNothing) {
  const Workplace work;
  work.write("s.yaml", "name: [\n");
  const Outcome outcome = work.wafersim("run s.yaml");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(contains(outcome.err, "wafersim: error: s.yaml:")) << outcome.err;
  EXPECT_FALSE(work.has("runs"));
}

}  // namespace
}  // namespace wafersim::testing
