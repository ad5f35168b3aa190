// The page of `wafersim report`; part of builds that have it.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ReportCommand, ReportIsThatOfTheDirectory) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("run s.yaml -o out --report");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "Results in out, to look at: out/report.html\n")) << outcome.out;
  for (const char* file : {"tile_windows.csv", "link_windows.csv", "step_cycles.csv", "operations.csv", "latency.csv", "spans.csv",
                           "bubbles.csv", "flows.csv", "memory.csv", "ranks.csv"}) {
    EXPECT_TRUE(work.has(std::string("out/") + file)) << file;
  }
  const std::string page = work.read("out/report.html");
  EXPECT_TRUE(contains(page, "<title>small - wafersim</title>"));
  EXPECT_LT(page.size(), 1'500'000u);
  std::filesystem::remove(work.path() / "out/report.html");
  const Outcome again = work.wafersim("report out");
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, "out/report.html\n");
  EXPECT_EQ(work.read("out/report.html"), page);
  // A later run without it leaves neither page nor records.
  ASSERT_EQ(work.wafersim("run s.yaml -o out --quiet").status, 0);
  for (const char* file : {"report.html", "tile_windows.csv", "flows.csv"}) {
    EXPECT_FALSE(work.has(std::string("out/") + file)) << file;
  }
}

TEST(ReportCommand, RecordsChangeNoResult) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  ASSERT_EQ(work.wafersim("run s.yaml -o plain --quiet").status, 0);
  ASSERT_EQ(work.wafersim("run s.yaml -o recorded --quiet --report-tiles tile_1_1,tile_0_0").status, 0);
  for (const char* file : {"tiles.csv", "links.csv", "steps.csv"}) {
    EXPECT_EQ(work.read(std::string("plain/") + file), work.read(std::string("recorded/") + file)) << file;
  }
  EXPECT_TRUE(contains(work.read("recorded/spans.csv"), "\ntile_1_1,core,compute,"));
  const Outcome wrong = work.wafersim("run s.yaml -o wrong --quiet --report-tiles tile_9_9");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(contains(wrong.err, "--report-tiles: 'tile_9_9' is not a tile that the plan uses")) << wrong.err;
}

TEST(ReportCommand, NeedsARun) {
  const Workplace work;
  const Outcome outcome = work.wafersim("report .");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_TRUE(contains(outcome.err, ". holds no results of a run: it has no summary.json")) << outcome.err;
  EXPECT_FALSE(work.has("report.html"));
}

}  // namespace
}  // namespace wafersim::testing
