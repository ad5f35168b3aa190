#include <gtest/gtest.h>

#include <filesystem>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class PlotCommand : public ::testing::Test {
 protected:
  PlotCommand() {
    place_.write("small.yaml", kSmallScenario);
    EXPECT_EQ(place_.wafersim("run small.yaml -o run --quiet --memory").status, 0);
  }
  Outcome plot(const std::string& rest) const { return place_.wafersim("plot run " + rest); }
  /// Nothing beside the scenario, the run, the pictures named and what the test itself made.
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(place_.path()), {}));
  }
  Workplace place_;
};

TEST_F(PlotCommand, DrawsEveryPicture) {
  for (const std::string what : {"heatmap", "breakdown", "memory", "timeline"}) {
    const Outcome outcome = plot("--what " + what + " -o " + what + ".svg");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, what + ".svg\n");
    const std::string svg = place_.read(what + ".svg");
    EXPECT_TRUE(has(svg, "<svg ")) << what;
    EXPECT_TRUE(svg.ends_with("</svg>\n")) << what;
  }
  const Outcome outcome = plot("--what heatmap --measure peak_memory --links utilization -o links.svg");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(has(place_.read("links.svg"), "link utilization"));
  EXPECT_NE(place_.read("links.svg"), place_.read("heatmap.svg"));
}

TEST_F(PlotCommand, WordsThatItDoesNotKnow) {
  const std::size_t before = files();
  Outcome outcome = plot("--what pie -o x.svg");
  EXPECT_EQ(outcome.status, 2);
  for (const char* word : {"pie", "heatmap", "breakdown", "memory", "timeline"}) EXPECT_TRUE(has(outcome.err, word)) << outcome.err;
  outcome = plot("--what heatmap --measure warmth -o x.svg");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(has(outcome.err, "warmth") && has(outcome.err, "memory_stall")) << outcome.err;
  outcome = plot("--what heatmap -o x.gif");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(has(outcome.err, "x.gif") && has(outcome.err, ".svg, .pdf or .png")) << outcome.err;
  outcome = plot("--what breakdown --measure idle -o x.svg");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(has(outcome.err, "--measure") && has(outcome.err, "heatmap")) << outcome.err;
  outcome = plot("--what breakdown --replica 1 -o x.svg");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(has(outcome.err, "--replica") && has(outcome.err, "timeline")) << outcome.err;
  outcome = plot("--what timeline --replica 7 -o x.svg");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(has(outcome.err, "--replica 7")) << outcome.err;
  EXPECT_EQ(files(), before) << "nothing is left behind";
}

TEST_F(PlotCommand, FilesThatAreNotThere) {
  Outcome outcome = place_.wafersim("plot none --what heatmap -o x.svg");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_TRUE(has(outcome.err, "none") && has(outcome.err, "summary.json")) << outcome.err;
  outcome = plot("--what heatmap -o nowhere/x.svg");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_TRUE(has(outcome.err, "nowhere/x.svg")) << outcome.err;
  std::filesystem::remove(place_.path() / "run/memory.csv");
  outcome = plot("--what memory -o x.svg");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_TRUE(has(outcome.err, "memory.csv") && has(outcome.err, "--memory")) << outcome.err;
}

TEST_F(PlotCommand, OtherFormatsNeedTheConverter) {
  const Outcome outcome = place_.shell("PATH=/nowhere $WAFERSIM plot run --what breakdown -o x.pdf");
  EXPECT_EQ(outcome.status, 5);
  for (const char* word : {".pdf", "rsvg-convert", "librsvg2-bin"}) EXPECT_TRUE(has(outcome.err, word)) << outcome.err;
  EXPECT_FALSE(place_.has("x.pdf"));
}

/// A converter of the test: it notes how it was called and copies the picture.
TEST_F(PlotCommand, TheExtensionDecidesTheFormat) {
  std::filesystem::create_directory(place_.path() / "bin");
  place_.write("bin/rsvg-convert", "#!/bin/sh\necho \"$@\" > called\nfor last; do :; done\ncp \"$last\" \"$4\"\n");
  place_.shell("chmod +x bin/rsvg-convert");
  ASSERT_EQ(plot("--what breakdown -o x.svg").status, 0);
  const std::string svg = place_.read("x.svg");
  const Outcome pdf = place_.shell("PATH=$PWD/bin:$PATH $WAFERSIM plot run --what breakdown -o x.pdf");
  ASSERT_EQ(pdf.status, 0) << pdf.err;
  EXPECT_EQ(place_.read("x.pdf"), svg);
  EXPECT_TRUE(has(place_.read("called"), "--format pdf"));
  ASSERT_EQ(place_.shell("PATH=$PWD/bin:$PATH $WAFERSIM plot run --what breakdown -o x.png").status, 0);
  EXPECT_TRUE(has(place_.read("called"), "--format png"));
}

TEST_F(PlotCommand, AConverterThatFailsLeavesNoFile) {
  std::filesystem::create_directory(place_.path() / "bin");
  place_.write("bin/rsvg-convert", "#!/bin/sh\necho no fonts >&2\nexit 1\n");
  place_.shell("chmod +x bin/rsvg-convert");
  const Outcome outcome = place_.shell("PATH=$PWD/bin:$PATH $WAFERSIM plot run --what breakdown -o x.png");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_TRUE(has(outcome.err, "x.png") && has(outcome.err, "no fonts")) << outcome.err;
  EXPECT_FALSE(place_.has("x.png"));
}

}  // namespace
}  // namespace wafersim::testing
