#include <gtest/gtest.h>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CommandLine, Version) {
  const Outcome outcome = Workplace().wafersim("--version");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.out.starts_with("wafersim ")) << outcome.out;
  EXPECT_EQ(outcome.err, "") << "no banner of a library";
}

TEST(CommandLine, HelpNamesTheCommands) {
  const Outcome outcome = Workplace().wafersim("--help");
  EXPECT_EQ(outcome.status, 0);
  for (const char* command : {"run", "check", "presets"}) EXPECT_TRUE(contains(outcome.out, command));
}

TEST(CommandLine, ErrorsOfUseExitWithTwo) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  for (const char* arguments :
       {"", "fly", "run", "run s.yaml --max-cycles 0", "run s.yaml --max-cycles many",
        "run s.yaml --max-wall -1", "run s.yaml --unknown", "check s.yaml other.yaml"}) {
    const Outcome outcome = work.wafersim(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_NE(outcome.err, "") << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
  }
  EXPECT_FALSE(work.has("runs"));
}

TEST(CommandLine, PresetsAreListedWithFacts) {
  const Outcome outcome = Workplace().wafersim("presets");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "wafer-2048"));
  EXPECT_TRUE(contains(outcome.out, "32x64 tiles"));
  EXPECT_TRUE(contains(outcome.out, "gpt3-175b"));
  EXPECT_TRUE(contains(outcome.out, "B parameters, 96 layers")) << outcome.out;
}

TEST(CommandLine, PresetThatCannotBeReadIsReportedAndTheOthersListed) {
  const Workplace work;
  std::filesystem::create_directories(work.path() / "hardware");
  work.write("hardware/broken.yaml", "wafer: {mesh: 2x2, clok: 1 GHz}\n");
  const Outcome outcome = work.wafersim("presets");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(contains(outcome.err, "wafersim: error: ")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "clok")) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "wafer-2048"));
}

TEST(CommandLine, FullStandardOutputIsAnInputOutputError) {
  const Outcome outcome = Workplace().shell("\"$WAFERSIM\" presets >/dev/full");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_TRUE(contains(outcome.err, "wafersim: error: cannot write to standard output: ")) << outcome.err;
}

}  // namespace
}  // namespace wafersim::testing
