#include "report/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "base/error.h"
#include "report/csv_table.h"
#include "report/picture_parts.h"
#include "report/run_directory.h"
#include "tests/report/run_fixture.h"

namespace wafersim::report {
namespace {

namespace fs = std::filesystem;
using wafersim::testing::RunFixture;
using wafersim::testing::TestDirectory;

/// Two stages of one tile each; a third tile is dead and a fourth is not used.
RunFixture staged_run() {
  RunFixture run;
  run.plan.tp = 1;
  run.plan.pp = 2;
  run.hardware.energy.matrix = EnergyPerFlop{Rational(1, 1'000'000)};
  run.hardware.energy.link = EnergyPerBit{Rational(1, 8'000)};
  run.measurements.tiles[1].stage = 1;
  run.measurements.tiles[1].group = 1;
  using workloads::Pass;
  using workloads::StepKind;
  const auto step = [](std::uint32_t group, StepKind kind, Pass pass, std::int32_t microbatch, Cycle start, Cycle end) {
    sim::StepMeasurement result;
    result.group = group;
    result.stage = group;
    result.kind = kind;
    result.pass = pass;
    result.microbatch = microbatch;
    result.start = start;
    result.first_compute = start;
    result.end = end;
    result.tiles = 1;
    return result;
  };
  run.measurements.steps = {step(0, StepKind::layer, Pass::forward, 0, 0, 100),    step(0, StepKind::layer, Pass::forward, 0, 100, 200),
                            step(0, StepKind::layer, Pass::backward, 0, 600, 900), step(1, StepKind::layer, Pass::forward, 0, 200, 400),
                            step(1, StepKind::layer, Pass::backward, 0, 400, 600), step(1, StepKind::gradient_sync, Pass::none, -1, 600, 700)};
  run.measurements.steps[3].start = 50;  // it waits from 50 to 200
  return run;
}

void write(const fs::path& directory, const RunFixture& run) {
  const analysis::RunSummary summary = run.summarize();
  RunContext context = run.context(summary);
  context.scenario_json = R"({"name": "a < b & c", "wafer": {"mesh": "2x2", "dead_tiles": ["tile_1_1"]}})";
  write_run(directory, context, {});
}

PictureRequest of(PictureKind kind) {
  PictureRequest request;
  request.kind = kind;
  return request;
}

/// Elements are closed in the order in which they were opened, attributes quoted, and no stray '<' or '&' is left.
void expect_well_formed(const std::string& svg) {
  static const std::regex tag(R"re(<(/?)([a-zA-Z]+)((?:\s+[a-zA-Z0-9-]+="[^"<]*")*)\s*(/?)>)re");
  std::vector<std::string> open;
  std::string rest;
  std::size_t last = 0;
  for (std::sregex_iterator found(svg.begin(), svg.end(), tag), none; found != none; ++found) {
    rest += svg.substr(last, static_cast<std::size_t>(found->position()) - last);
    last = static_cast<std::size_t>(found->position() + found->length());
    if (found->str(1) == "/") {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), found->str(2));
      open.pop_back();
    } else if (found->str(4).empty()) {
      open.push_back(found->str(2));
    }
  }
  EXPECT_TRUE(open.empty());
  rest += svg.substr(last);
  EXPECT_EQ(rest.find('<'), std::string::npos);
  EXPECT_FALSE(std::regex_search(rest, std::regex("&(?!(amp|lt|gt);)")));
  EXPECT_EQ(svg.find("href"), std::string::npos) << "a picture needs no other file";
}

/// Rectangles in the paths of a class: the numbers of their subpaths "Mx yhwvhh-wz".
struct Box {
  double x, y, width, height;
};
std::vector<Box> boxes(const std::string& svg, const std::string& of_class) {
  static const std::regex box(R"(M([-0-9.]+) ([-0-9.]+)h([-0-9.]+)v([-0-9.]+)h)");
  std::vector<Box> all;
  const std::regex path("<path class=\"" + of_class + "\"[^>]*>");
  for (std::sregex_iterator found(svg.begin(), svg.end(), path), none; found != none; ++found) {
    const std::string text = found->str();
    for (std::sregex_iterator each(text.begin(), text.end(), box); each != none; ++each) {
      all.push_back({std::stod(each->str(1)), std::stod(each->str(2)), std::stod(each->str(3)), std::stod(each->str(4))});
    }
  }
  return all;
}

std::vector<Box> bars(const std::string& svg, const std::string& of_class) {
  const std::regex bar("<rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"[^>]*class=\"" + of_class + "\"/>");
  std::vector<Box> all;
  for (std::sregex_iterator found(svg.begin(), svg.end(), bar), none; found != none; ++found) {
    all.push_back({std::stod(found->str(1)), std::stod(found->str(2)), std::stod(found->str(3)), std::stod(found->str(4))});
  }
  return all;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string error_of(const fs::path& directory, const PictureRequest& request, ExitStatus status) {
  try {
    draw_picture(directory, request);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    return error.what();
  }
  return "no error";
}

class Picture : public ::testing::Test {
 protected:
  Picture() { write(directory_.path(), staged_run()); }
  std::string draw(const PictureRequest& request) const {
    const std::string svg = draw_picture(directory_.path(), request);
    expect_well_formed(svg);
    EXPECT_EQ(svg, draw_picture(directory_.path(), request)) << "equal files, equal bytes";
    EXPECT_TRUE(has(svg, "width=\"240.945pt\"")) << "85 mm";
    return svg;
  }
  TestDirectory directory_;
};

TEST_F(Picture, HeatmapDrawsEveryTileOnceWithTheColourOfItsValue) {
  const std::string svg = draw(of(PictureKind::heatmap));
  EXPECT_EQ(boxes(svg, "tile").size(), 2U);
  EXPECT_EQ(boxes(svg, "unused").size(), 1U);
  EXPECT_EQ(boxes(svg, "dead").size(), 1U);
  // Tiles 0 and 1 compute in 600 and 400 of 1000 cycles: the ends of the scale.
  EXPECT_TRUE(has(svg, "<path class=\"tile\" fill=\"#08244f\""));
  EXPECT_TRUE(has(svg, "<path class=\"tile\" fill=\"#dbe8f4\""));
  for (const char* label : {">40.0 %<", ">60.0 %<", ">compute (share of cycles)<", ">unused tile<", ">dead tile<", ">column<", ">row<"}) {
    EXPECT_TRUE(has(svg, label)) << label;
  }
  const std::vector<Box> dead = boxes(svg, "dead");
  const std::vector<Box> used = boxes(svg, "tile");
  EXPECT_GT(dead[0].y, std::max(used[0].y, used[1].y)) << "tile_1_1 is in the second row";
  EXPECT_DOUBLE_EQ(dead[0].x, std::max(used[0].x, used[1].x));
}

TEST_F(Picture, HeatmapSumsAllAxesOfExposedCommunication) {
  PictureRequest request = of(PictureKind::heatmap);
  request.measure = "exposed";  // 100 and 300 cycles
  const std::string svg = draw(request);
  EXPECT_TRUE(has(svg, ">10.0 %<"));
  EXPECT_TRUE(has(svg, ">30.0 %<"));
  request.measure = "peak_memory";
  EXPECT_TRUE(has(draw(request), ">800 B<"));
}

TEST_F(Picture, HeatmapOfEveryMeasureHasALabel) {
  for (const std::string& measure : heatmap_measures()) {
    PictureRequest request = of(PictureKind::heatmap);
    request.measure = measure;
    EXPECT_EQ(boxes(draw(request), "tile").size(), 2U) << measure;
  }
}

TEST_F(Picture, HeatmapOfEnergyNeedsFigures) {
  PictureRequest request = of(PictureKind::heatmap);
  request.measure = "energy";
  const std::string svg = draw(request);
  EXPECT_TRUE(has(svg, ">4.00 J<")) << "4,000 bytes";
  EXPECT_TRUE(has(svg, ">7.28 J<")) << "3,276,800 FLOPs and 4,000 bytes";
  RunFixture without;
  const TestDirectory directory;
  write(directory.path() / "none", without);
  try {
    draw_heatmap_picture(RunTables(directory.path() / "none"), "energy", "");
    FAIL() << "an error is expected";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::scenario);
    EXPECT_NE(std::string(error.what()).find("wafer.energy"), std::string::npos);
  }
}

TEST_F(Picture, HeatmapDrawsEveryLinkOfTheTable) {
  PictureRequest request = of(PictureKind::heatmap);
  const CsvTable links(directory_.path() / kLinksFile);
  ASSERT_GT(links.rows(), 0U);
  for (const std::string& measure : link_measures()) {
    request.links = measure;
    const std::string svg = draw(request);
    EXPECT_EQ(boxes(svg, "link").size(), links.rows());
  }
  EXPECT_TRUE(boxes(draw(of(PictureKind::heatmap)), "link").empty());
}

TEST_F(Picture, BarsOfTheBreakdownAreAsLongAsTheirSharesAndSumToTheWhole) {
  const std::string svg = draw(of(PictureKind::breakdown));
  std::map<double, double> sums;  // by row
  double whole = 0;
  for (const Cause& cause : causes()) {
    for (const Box& bar : bars(svg, cause.name)) sums[bar.y] += bar.width;
  }
  ASSERT_EQ(sums.size(), 3U) << "all tiles, stage 0, stage 1";
  whole = sums.begin()->second;
  for (const auto& [row, length] : sums) EXPECT_NEAR(length, whole, 0.01);
  const std::vector<Box> compute = bars(svg, "compute");
  ASSERT_EQ(compute.size(), 3U);
  EXPECT_NEAR(compute[0].width / whole, 0.5, 1e-4);
  EXPECT_NEAR(compute[1].width / whole, 0.6, 1e-4);
  EXPECT_NEAR(compute[2].width / whole, 0.4, 1e-4);
  EXPECT_EQ(bars(svg, "bubble").size(), 2U) << "stage 0 has none";
  for (const char* label : {">all tiles<", ">stage 0<", ">stage 1<", ">compute 50.0 %<", ">exposed tp 15.0 %<", ">exposed dp 5.0 %<",
                            ">bubble 5.0 %<", ">memory stall 2.5 %<", ">idle 22.5 %<"}) {
    EXPECT_TRUE(has(svg, label)) << label;
  }
  EXPECT_FALSE(has(svg, "exposed sp"));
}

TEST_F(Picture, TimelineHasABarForWhatFollowsWithoutAGap) {
  const std::string svg = draw(of(PictureKind::timeline));
  const std::vector<Box> steps = boxes(svg, "step");
  ASSERT_EQ(steps.size(), 4U) << "the two layers of stage 0 are one forward pass";
  EXPECT_EQ(boxes(svg, "background").size(), 2U);
  const Box row = boxes(svg, "background")[0];
  double total = 0;
  for (const Box& step : steps) total += step.width;
  EXPECT_NEAR(total / row.width, (200 + 300 + 200 + 200) / 1000.0, 1e-3) << "waiting is not computing";
  const std::vector<Box> beside = boxes(svg, "beside");
  ASSERT_EQ(beside.size(), 1U);
  EXPECT_NEAR((beside[0].x - row.x) / row.width, 0.6, 1e-3);
  EXPECT_NEAR(beside[0].width / row.width, 0.1, 1e-3);
  for (const char* label : {">stage 0<", ">stage 1<", ">forward<", ">backward<", ">gradient sync<", ">time (µs)<", ">1<"}) {
    EXPECT_TRUE(has(svg, label)) << label;
  }
  EXPECT_FALSE(has(svg, "optimizer")) << "only what there is";
}

TEST_F(Picture, TimelineOfAReplicaThatThereIsNot) {
  PictureRequest request = of(PictureKind::timeline);
  request.replica = 1;
  EXPECT_EQ(error_of(directory_.path(), request, ExitStatus::scenario), "--replica 1: the run has 1 replica; valid: 0 to 0");
}

TEST_F(Picture, MemoryStacksClassesUpToThePeak) {
  RunFixture run = staged_run();
  const auto row = [](Cycle cycle, std::array<Bytes, 6> by_class) {
    sim::MemoryRow result;
    result.cycle = cycle;
    result.window = 1;
    result.levels.by_class = by_class;
    for (const Bytes bytes : by_class) result.levels.total += bytes;
    result.levels.sram = result.levels.total;
    return result;
  };
  sim::TileMemory tile;
  tile.tile = 1;  // the fullest
  // The peak of 800 lasts one cycle; no slot of time may lose it.
  tile.rows = {row(0, {300, 0, 200, 0, 0, 0}), row(500, {300, 0, 200, 300, 0, 0}), row(501, {300, 0, 200, 0, 0, 0})};
  run.measurements.memory = {tile};
  write(directory_.path(), run);
  const std::string svg = draw(of(PictureKind::memory));
  const auto lowest_y = [&](const std::string& name) {
    std::smatch path;
    EXPECT_TRUE(std::regex_search(svg, path, std::regex("<path class=\"" + name + "\"[^>]* d=\"([^\"]*)\"")));
    const std::string points = path.str(1);
    const std::regex point("[ML]([0-9.]+) ([0-9.]+)");
    double lowest = 1e9;
    for (std::sregex_iterator each(points.begin(), points.end(), point), none; each != none; ++each) {
      lowest = std::min(lowest, std::stod(each->str(2)));
    }
    return lowest;
  };
  // The plot is 120 high from 6 on; the areas end at 300, 500 and 800 bytes.
  const double parameters = 126 - lowest_y("parameters");
  EXPECT_NEAR((126 - lowest_y("optimizer")) / parameters, 500.0 / 300, 1e-3);
  EXPECT_NEAR((126 - lowest_y("activations")) / parameters, 800.0 / 300, 1e-3);
  EXPECT_TRUE(has(svg, "capacity"));
  EXPECT_FALSE(has(svg, "gradients"));
}

TEST_F(Picture, MemoryNeedsItsTable) {
  const std::string error = error_of(directory_.path(), of(PictureKind::memory), ExitStatus::io);
  EXPECT_TRUE(has(error, "memory.csv")) << error;
  EXPECT_TRUE(has(error, "--memory")) << error;
}

TEST_F(Picture, MissingFilesAndUnknownMeasuresAreNamed) {
  PictureRequest request = of(PictureKind::heatmap);
  request.measure = "warmth";
  const std::string error = error_of(directory_.path(), request, ExitStatus::scenario);
  EXPECT_TRUE(has(error, "--measure warmth") && has(error, "peak_memory")) << error;
  fs::remove(directory_.path() / kStepsFile);
  EXPECT_TRUE(has(error_of(directory_.path(), of(PictureKind::breakdown), ExitStatus::io), kStepsFile));
  EXPECT_TRUE(has(error_of(directory_.path() / "none", of(PictureKind::breakdown), ExitStatus::io), kSummaryFile));
}

/// Two lists of colours would drift apart.
TEST(PictureColours, AreThoseOfThePage) {
  const std::string theme = read_file(WAFERSIM_SOURCE_DIR "/report/web/theme.js");
  std::vector<std::string> all = {colours::kText, colours::kMuted, colours::kLine, colours::kUnused, colours::kDead, colours::kMark,
                                  colours::kDeepGreen};
  all.insert(all.end(), colours::kTileRamp.begin(), colours::kTileRamp.end());
  all.insert(all.end(), colours::kLinkRamp.begin(), colours::kLinkRamp.end());
  for (const std::string& colour : all) EXPECT_TRUE(has(theme, colour)) << colour;
  for (const Cause& cause : causes()) {
    EXPECT_TRUE(has(theme, cause.name + ": \"" + cause.colour + "\"")) << cause.name;
  }
}

TEST(Ramp, GoesThroughItsColours) {
  EXPECT_EQ(ramp_colour(colours::kTileRamp, 0), "#dbe8f4");
  EXPECT_EQ(ramp_colour(colours::kTileRamp, 1), "#08244f");
  EXPECT_EQ(ramp_colour(colours::kTileRamp, 0.2), "#b0d0e8");
  EXPECT_EQ(ramp_colour(colours::kTileRamp, 7), "#08244f");
}

}  // namespace
}  // namespace wafersim::report
