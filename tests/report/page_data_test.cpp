#include "report/page_data.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "report/packed.h"
#include "report/page.h"
#include "report/run_directory.h"
#include "tests/report/run_fixture.h"

namespace wafersim::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using wafersim::testing::read_text;
using wafersim::testing::RunFixture;
using wafersim::testing::TestDirectory;
using wafersim::testing::write_text;

/// The fixture with what is recorded on request: two windows, a message, an operation, spans of a tile.
RunFixture recorded_run() {
  RunFixture run;
  sim::ActivityMeasurement activity;
  sim::WindowMeasurement windows;
  windows.length = 512;
  windows.count = 2;
  for (const sim::TileMeasurement& tile : run.measurements.tiles) {
    sim::CyclesByKind first = sim::by_kind(tile.cycles);
    sim::CyclesByKind second{};
    second[0] = 300;  // of the 488 cycles of the last window
    second[9] = 188;
    for (std::size_t i = 0; i < first.size(); ++i) first[i] -= std::min(first[i], second[i]);
    windows.tiles.insert(windows.tiles.end(), {first, second});
    activity.steps = {{0, false, workloads::StepKind::layer, workloads::Pass::forward, first},
                      {0, true, workloads::StepKind::custom, workloads::Pass::none, second}};
  }
  for (const sim::LinkMeasurement& link : run.measurements.links) {
    windows.links.push_back({link.busy / 4, link.queued / 2});
    windows.links.push_back({link.busy - link.busy / 4, link.queued - link.queued / 2});
  }
  workloads::Work work;
  work.gemm = {1, 8, 16, 4};
  work.sram_bytes = 640;
  activity.operations = {{workloads::OpKind::matrix, work, "layer.forward", 3, 90, 30, 30}};
  sim::MessageStatistics messages;
  messages.messages = 1;
  messages.axis = workloads::Axis::tp;
  messages.latency.add(100);
  messages.queued.add(0);
  activity.messages = {messages};
  activity.tiles = {{0, {{0, 600, 0}, {600, 1000, 9}}, {{10, 50, 0}}, true}};
  activity.bubbles = {{0, 0, {{600, 700}}}};
  run.measurements.windows = windows;
  run.measurements.activity = activity;
  return run;
}

void write(const fs::path& directory, const RunFixture& run) {
  const analysis::RunSummary summary = run.summarize();
  RunContext context = run.context(summary);
  context.scenario_json = R"({"name": "small", "wafer": {"mesh": "2x2", "dead_tiles": ["tile_1_1"]}})";
  context.flows = {{1, 2, 4000, {{0, 1, workloads::Axis::tp, 3000}}}};
  write_run(directory, context, {});
}

json data_of(const fs::path& directory) { return json::parse(page_data(RunTables(directory))); }

std::uint64_t total(const json& column) {
  std::uint64_t sum = 0;
  for (const json& value : column) sum += value.get<std::uint64_t>();
  return sum;
}

std::string error_of(const fs::path& directory) {
  try {
    page_data(RunTables(directory));
  } catch (const IoError& error) {
    return error.what();
  }
  return {};
}

TEST(Packed, Base64) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},        {"f", "Zg=="},          {"fo", "Zm8="},
      {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}, {"\xff\xfe\xfd", "//79"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(base64(std::vector<std::uint8_t>(bytes.begin(), bytes.end())), text);
  }
}

TEST(Packed, SharesIn255ths) {
  EXPECT_EQ(in_255ths(0, 10), 0);
  EXPECT_EQ(in_255ths(10, 10), 255);
  EXPECT_EQ(in_255ths(5, 10), 128);
  EXPECT_EQ(in_255ths(1, 1e9), 1) << "little is not nothing";
  EXPECT_EQ(in_255ths(20, 10), 255);
  EXPECT_EQ(in_255ths(1, 0), 0);
}

TEST(PageData, HasTheTotalsOfTheTables) {
  const TestDirectory directory;
  const RunFixture run;
  write(directory.path(), run);
  const json data = data_of(directory.path());
  EXPECT_EQ(data["summary"], json::parse(read_text(directory.path() / kSummaryFile)));
  EXPECT_EQ(data["tiles"]["id"], json({0, 1}));
  std::uint64_t cycles = 0;
  for (const auto& [kind, column] : data["tiles"]["cycles"].items()) cycles += total(column);
  EXPECT_EQ(cycles, 2 * run.measurements.cycles);
  EXPECT_FALSE(data["tiles"]["cycles"].contains("exposed_sp")) << "causes of no cycle are left out";
  Bytes bytes = 0;
  Cycle busy = 0;
  for (const sim::LinkMeasurement& link : run.measurements.links) {
    bytes += link.bytes;
    busy += link.busy;
  }
  EXPECT_EQ(data["links"]["id"].size(), run.measurements.links.size());
  EXPECT_EQ(total(data["links"]["bytes"]), bytes);
  EXPECT_EQ(total(data["links"]["busy"]), busy);
  EXPECT_EQ(total(data["links"]["by_axis"]["tp"]) + total(data["links"]["by_axis"]["dp"]), bytes);
  EXPECT_EQ(data["mesh"]["dead_tiles"], json({"tile_1_1"}));
  EXPECT_EQ(data["ranks"], json({{"tp", {0, 1}}})) << "axes with one rank are left out";
  EXPECT_EQ(data["steps"]["columns"]["start"], json({0, 80}));
  for (const char* part : {"windows", "step_cycles", "operations", "latency", "spans", "flows", "memory"}) {
    EXPECT_TRUE(data[part].is_null()) << part;
  }
}

TEST(PageData, HasWhatWasRecorded) {
  const TestDirectory directory;
  write(directory.path(), recorded_run());
  const json data = data_of(directory.path());
  EXPECT_EQ(data["windows"]["length"], 512);
  EXPECT_EQ(data["windows"]["count"], 2);
  // 300 of 512 and of 488 cycles, then 100 and 300.
  EXPECT_EQ(data["windows"]["tiles"]["compute"], base64(std::vector<std::uint8_t>{149, 157, 50, 157}));
  EXPECT_EQ(data["windows"]["links"]["row"].size(), 2u) << "links that carried nothing are left out";
  EXPECT_EQ(data["windows"]["links"]["busy"],
            base64(std::vector<std::uint8_t>{in_255ths(125, 512), in_255ths(375, 488), in_255ths(75, 512),
                                             in_255ths(225, 488)}));
  EXPECT_EQ(data["windows"]["links"]["queue_most"], 25);
  EXPECT_EQ(data["step_cycles"]["kind"], json({"layer", "none"}));
  EXPECT_EQ(data["operations"]["rows"],
            json::parse(R"([["matrix","layer.forward",1,8,4,16,1024,640,3,90]])"));
  EXPECT_EQ(data["latency"]["tp"]["latency"], json::parse("[[96,103,1]]"));
  EXPECT_EQ(data["spans"]["words"], json({"compute", "idle", "tp"}));
  EXPECT_EQ(data["spans"]["tiles"][0]["core"]["cycles"], json({600, 400}));
  EXPECT_EQ(data["bubbles"]["cycles"], json({100}));
  EXPECT_EQ(data["flows"][0]["heaviest"], json::parse(R"([[0,1,"tp",3000]])"));
}

TEST(PageData, NoRecordsOfAnEarlierRunStay) {
  const TestDirectory directory;
  write(directory.path(), recorded_run());
  write(directory.path(), RunFixture());
  EXPECT_TRUE(data_of(directory.path())["windows"].is_null());
  EXPECT_FALSE(fs::exists(directory.path() / kFlowsFile));
}

TEST(Page, TooManyTilesAreRefused) {
  EXPECT_NO_THROW(require_page_for(kMostPageTiles));
  EXPECT_THROW(require_page_for(kMostPageTiles + 1), PlanError);
}

/// However many steps, windows and spans a run has, the page stays small.
TEST(PageData, IsBounded) {
  const TestDirectory directory;
  RunFixture run = recorded_run();
  const sim::StepMeasurement step = run.measurements.steps[1];
  for (std::uint32_t i = 0; i < 40'000; ++i) {
    run.measurements.steps.push_back(step);
    run.measurements.steps.back().start = i;
  }
  std::vector<sim::TileSpans::Span>& core = run.measurements.activity->tiles[0].core;
  core.clear();
  for (Cycle at = 0; at < 50'000; ++at)
    core.push_back({at, at + 1, static_cast<std::uint8_t>(at % 2 == 0 ? 0 : 9)});
  write(directory.path(), run);
  const json data = data_of(directory.path());
  EXPECT_EQ(data["steps"]["columns"]["start"].size(), 16'000u);
  EXPECT_EQ(data["steps"]["whole_replica"], false);
  EXPECT_EQ(data["steps"]["all"], 40'002);
  EXPECT_LE(data["spans"]["tiles"][0]["core"]["from"].size(), 12'000u);
  EXPECT_EQ(data["spans"]["tiles"][0]["core"]["from"][0], 0);
}

TEST(PageData, SaysWhichFileCannotBeUsed) {
  const TestDirectory directory;
  EXPECT_NE(error_of(directory.path()).find("holds no results of a run: it has no summary.json"),
            std::string::npos);
  write(directory.path(), RunFixture());
  const std::string links = read_text(directory.path() / kLinksFile);
  write_text(directory.path() / kLinksFile, links + "tile_0_0>tile_9_9,0,0\n");
  EXPECT_NE(error_of(directory.path()).find("links.csv:10: 3 cells, the first line has 17"),
            std::string::npos)
      << error_of(directory.path());
  write_text(directory.path() / kLinksFile, "link,x,y\n");
  EXPECT_NE(error_of(directory.path()).find("links.csv: it has no column 'direction'"), std::string::npos)
      << error_of(directory.path());
  write(directory.path(), RunFixture());
  std::string tiles = read_text(directory.path() / kTilesFile);
  tiles.replace(tiles.find("tile_0_0,0,0,0,0,600"), 20, "tile_0_0,0,0,0,0,6x0");
  write_text(directory.path() / kTilesFile, tiles);
  EXPECT_NE(error_of(directory.path()).find("tiles.csv:2: compute_cycles: '6x0' is no whole number"),
            std::string::npos)
      << error_of(directory.path());
  write(directory.path(), recorded_run());
  std::string windows = read_text(directory.path() / kTileWindowsFile);
  windows.replace(windows.find("tile_0_0,512,"), 13, "tile_0_0,1024,");
  write_text(directory.path() / kTileWindowsFile, windows);
  EXPECT_NE(error_of(directory.path()).find("tile_windows.csv:3: start_cycle is not within the run"), std::string::npos)
      << error_of(directory.path());
  fs::remove(directory.path() / kTilesFile);
  EXPECT_NE(error_of(directory.path()).find("cannot read "), std::string::npos);
  write_text(directory.path() / kSummaryFile,
             R"({"wafersim_version": "0.0.1", "schema_version": 1, "scenario": {}})");
  EXPECT_NE(error_of(directory.path()).find("it is of wafersim \"0.0.1\""), std::string::npos)
      << error_of(directory.path());
}

}  // namespace
}  // namespace wafersim::report
