#include "report/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/report/run_fixture.h"

namespace wafersim::report {
namespace {

using wafersim::testing::RunFixture;

constexpr TerminalStyle kAscii{.colour = false, .unicode = false, .width = 96};
constexpr TerminalStyle kUnicode{.colour = false, .unicode = true, .width = 96};

std::string text_of(const RunFixture& run, const TerminalStyle& style) {
  const analysis::RunSummary summary = run.summarize();
  return terminal_summary(run.context(summary), style);
}

/// Characters, not bytes, without colour sequences.
std::size_t columns_of(const std::string& line) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033') {
      i = line.find('m', i);
      continue;
    }
    columns += (static_cast<unsigned char>(line[i]) & 0xC0U) != 0x80U ? 1 : 0;
  }
  return columns;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A run on a mesh of another shape, in which tile i of `used` computes for i per mille of the time.
RunFixture run_on(const topology::Shape& shape, TileId used) {
  RunFixture run;
  run.mesh = topology::Mesh(topology::MeshSpec{shape, {}, {}});
  const sim::TileMeasurement pattern;
  run.measurements.tiles.clear();
  for (TileId id = 0; id < used; ++id) {
    sim::TileMeasurement tile = pattern;
    tile.tile = id;
    tile.cycles.compute = id % 1000;
    tile.cycles.idle = 1000 - id % 1000;
    run.measurements.tiles.push_back(tile);
  }
  return run;
}

/// The lines of the map: those between its title and its legend.
std::vector<std::string> map_of(const std::string& text) {
  const std::vector<std::string> lines = lines_of(text);
  auto at = std::find_if(lines.begin(), lines.end(),
                         [](const auto& line) { return line.starts_with("Compute util"); });
  std::vector<std::string> map;
  for (++at; at != lines.end() && !contains(*at, "%"); ++at) map.push_back(at->substr(2));
  return map;
}

TEST(Terminal, TellsTheEnergyAndWhatIsNotInIt) {
  RunFixture run;
  EXPECT_FALSE(contains(text_of(run, kAscii), "Energy"));
  run.hardware.energy.link = EnergyPerBit{Rational(1, 8'000'000'000)};
  run.hardware.energy.standing = Power{Rational(4)};
  const std::string text = text_of(run, kAscii);
  // 8,000 bytes over links are 8 uJ; 4 W of two tiles for 1 us as much.
  EXPECT_TRUE(contains(text, "Energy: 16.0 uJ, 16.0 W in the mean, 125 nJ a token")) << text;
  EXPECT_TRUE(contains(text, "  static     8.00 uJ   50.0 %  ####################\n")) << text;
  EXPECT_TRUE(contains(text, "not modelled, and not in the sum: matrix, vector, sram, router, nic")) << text;
}

TEST(Terminal, SaysWhatMatters) {
  const std::string text = text_of(RunFixture(), kAscii);
  for (const char* part :
       {"small\n", "2 of 4 tiles (2x2 mesh), dp 1 x pp 1 x tp 2", "1.00 us", "128,000,000", "5.0 %",
        "# compute 50.0 %", "= exposed communication 20.0 %", "o bubble 5.0 %", "m memory stall 2.5 %",
        ". idle 22.5 %", "60.0 % of the time with messages in flight is hidden",
        "Memory: 800 B of 1000 B (80.0 %)", "tile_1_0", "tile_0_0>tile_1_0", "tp 75 %, dp 25 %",
        "2.00 packet-hops per CPU second", "2.50 s wall"}) {
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  }
  EXPECT_FALSE(contains(text, "PARTIAL"));
}

TEST(Terminal, AxesWithoutExposedCyclesAreLeftOut) {
  const std::string text = text_of(RunFixture(), kAscii);
  EXPECT_TRUE(contains(text, "\n  tp     15.0 %  ####"));
  EXPECT_TRUE(contains(text, "\n  dp      5.0 %  ####"));
  EXPECT_FALSE(contains(text, "\n  pp "));
}

TEST(Terminal, StackedBarFillsTheWidth) {
  const std::vector<std::string> lines = lines_of(text_of(RunFixture(), kAscii));
  const auto bar =
      std::find_if(lines.begin(), lines.end(), [](const auto& line) { return line.starts_with("  ####"); });
  ASSERT_NE(bar, lines.end());
  EXPECT_EQ(bar->size(), 2u + 92u);
  EXPECT_EQ(std::count(bar->begin(), bar->end(), '#'), 46);
  EXPECT_EQ(std::count(bar->begin(), bar->end(), '.'), 21);
}

TEST(Terminal, NoLineIsWiderThanAsked) {
  for (const int width : {80, 96, 100}) {
    for (const bool unicode : {false, true}) {
      for (const bool colour : {false, true}) {
        const RunFixture run = run_on({64, 128}, 8000);
        for (const std::string& line : lines_of(text_of(run, {colour, unicode, width}))) {
          EXPECT_LE(columns_of(line), static_cast<std::size_t>(width)) << line;
        }
      }
    }
  }
}

TEST(Terminal, NeverWiderThanAHundredColumns) {
  for (const std::string& line : lines_of(text_of(RunFixture(), {false, true, 300})))
    EXPECT_LE(columns_of(line), 100u);
}

TEST(Terminal, AsciiIsAsciiAndPlainHasNoEscapes) {
  const std::string ascii = text_of(run_on({40, 40}, 900), kAscii);
  EXPECT_TRUE(
      std::all_of(ascii.begin(), ascii.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  EXPECT_FALSE(contains(text_of(RunFixture(), kUnicode), "\033"));
  EXPECT_TRUE(contains(text_of(RunFixture(), {true, true, 96}), "\033[38;5;"));
}

TEST(Terminal, SmallMapHasTwoCharactersATileAndDotsForUnusedOnes) {
  EXPECT_EQ(map_of(text_of(RunFixture(), kAscii)), (std::vector<std::string>{"##--", "...."}));
  EXPECT_TRUE(contains(text_of(RunFixture(), kUnicode), "\n  ██░░\n  ····\n"));
}

TEST(Terminal, LargeMapIsDownsampledInProportion) {
  const std::vector<std::string> map = map_of(text_of(run_on({64, 128}, 64 * 128), kAscii));
  ASSERT_EQ(map.size(), 32u);
  for (const std::string& line : map) EXPECT_EQ(line.size(), 64u);
  const std::vector<std::string> tall = map_of(text_of(run_on({100, 10}, 1000), kAscii));
  EXPECT_EQ(tall.size(), 25u);
  EXPECT_EQ(tall[0].size(), 6u);
}

TEST(Terminal, EqualTilesAreDrawnAlike) {
  RunFixture run;
  run.measurements.tiles[1].cycles = run.measurements.tiles[0].cycles;
  EXPECT_EQ(map_of(text_of(run, kAscii))[0], "####");
}

TEST(Terminal, PartialResultsAreMarked) {
  RunFixture run;
  run.measurements.partial = true;
  run.measurements.stopped_by = "max-wall";
  run.measurements.iteration_ends.clear();
  const std::string text = text_of(run, kAscii);
  EXPECT_TRUE(
      contains(text, "PARTIAL RESULTS: stopped by max-wall at cycle 1,000\n0 of 1 iterations completed\n"));
}

TEST(Terminal, SaysWhatWasFolded) {
  RunFixture run;
  EXPECT_FALSE(contains(text_of(run, kAscii), "Folded"));
  run.measurements.engine.fold.fraction = 0.735;
  run.measurements.engine.fold.replicas_folded = 8;
  run.measurements.engine.fold.skipped_periods = 3;
  EXPECT_TRUE(contains(text_of(run, kAscii), "Folded: 73.5 % of the operations (8 replicas as one, 3 periods skipped)"));
}

TEST(Terminal, RunWithoutMessages) {
  RunFixture run;
  run.measurements.links.clear();
  for (sim::TileMeasurement& tile : run.measurements.tiles) tile.communicating = 0;
  const std::string text = text_of(run, kAscii);
  EXPECT_TRUE(contains(text, "no messages"));
  EXPECT_TRUE(contains(text, "no link carried a packet"));
}

}  // namespace
}  // namespace wafersim::report
