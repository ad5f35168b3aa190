#include <gtest/gtest.h>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

const char* const kStudy = R"(name: tiny
scenario: small.yaml
vary:
  wafer.link.bandwidth: {from: 16 B/cycle, to: 64 B/cycle, factor: 2}
  plan.schedule: [1f1b, gpipe]
list:
  - {plan.tp: 4, plan.pp: 1}
  - {plan.tp: 64}
)";

class SweepCommand : public ::testing::Test {
 protected:
  SweepCommand() {
    place_.write("small.yaml", kSmallScenario);
    place_.write("study.yaml", kStudy);
  }
  /// All rows of the results, as CSV.
  std::string results(const std::string& directory) const { return place_.read(directory + "/results.csv"); }

  Workplace place_;
};

TEST_F(SweepCommand, RunsAllPointsAndRecordsFailures) {
  const Outcome outcome = place_.wafersim("sweep study.yaml -o out --jobs 2 --keep-runs");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("tiny: 7 of 8 points done, 1 failed"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("point 8: "), std::string::npos) << outcome.out;
  EXPECT_TRUE(place_.has("out/study.sqlite"));
  EXPECT_TRUE(place_.has("out/runs/7/summary.json"));
  EXPECT_FALSE(place_.has("out/runs/8"));
  EXPECT_FALSE(place_.has("out/.work"));
  // What a point has is what a run of its own has.
  ASSERT_EQ(place_.wafersim("run small.yaml -o alone --set plan.tp=4 --set plan.pp=1").status, 0);
  const auto without_engine = [](const std::string& text) { return text.substr(0, text.find("\"engine\"")); };
  EXPECT_EQ(without_engine(place_.read("out/runs/7/summary.json")), without_engine(place_.read("alone/summary.json")));
}

TEST_F(SweepCommand, FinishedPointsAreNotRunAgain) {
  ASSERT_EQ(place_.wafersim("sweep study.yaml -o out").status, 0);
  const std::string before = results("out");
  const Outcome again = place_.wafersim("sweep study.yaml -o out --keep-runs");
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(results("out"), before);
  EXPECT_FALSE(place_.has("out/runs"));
  // Another scenario: all are.
  ASSERT_EQ(place_.shell("sed -i 's/vocab: 128/vocab: 256/' small.yaml").status, 0);
  ASSERT_EQ(place_.wafersim("sweep study.yaml -o out --keep-runs").status, 0);
  EXPECT_TRUE(place_.has("out/runs/1"));
  EXPECT_NE(results("out"), before);
}

TEST_F(SweepCommand, NothingIsLostWhenItIsKilled) {
  ASSERT_EQ(place_.wafersim("sweep study.yaml -o whole").status, 0);
  const Outcome killed = place_.shell(
      "for i in 1 2 3 4 5 6 7 8 9 10; do \"$WAFERSIM\" sweep study.yaml -o out --jobs 2 >/dev/null 2>&1 & "
      "sleep 0.0$((i * 3 % 10))5; kill -9 $!; wait $!; done; \"$WAFERSIM\" sweep study.yaml -o out --quiet");
  EXPECT_EQ(killed.status, 0) << killed.err;
  EXPECT_EQ(results("out"), results("whole"));
}

TEST_F(SweepCommand, GoesOnWhereASweepWasKilledAtOnce) {
  ASSERT_EQ(place_.shell("mkdir out && : > out/.lock").status, 0);
  const Outcome outcome = place_.wafersim("sweep study.yaml -o out --quiet");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(SweepCommand, AnInterruptKeepsWhatIsDone) {
  const Outcome outcome = place_.shell("\"$WAFERSIM\" sweep study.yaml -o out --jobs 1 & sleep 0.15; kill -TERM $!; wait $!");
  EXPECT_TRUE(outcome.status == 130 || outcome.status == 0) << outcome.err;
  EXPECT_TRUE(place_.has("out/results.csv"));
  EXPECT_FALSE(place_.has("out/.work"));
}

TEST_F(SweepCommand, ShardsTogetherAreTheWhole) {
  ASSERT_EQ(place_.wafersim("sweep study.yaml -o whole").status, 0);
  ASSERT_EQ(place_.wafersim("sweep study.yaml -o first --shard 1/2 --quiet").status, 0);
  ASSERT_EQ(place_.wafersim("sweep study.yaml -o second --shard 2/2 --quiet").status, 0);
  EXPECT_NE(results("first"), results("whole"));
  const Outcome merged = place_.wafersim("sweep study.yaml -o both --merge first second");
  ASSERT_EQ(merged.status, 0) << merged.err;
  EXPECT_EQ(results("both"), results("whole"));
}

TEST_F(SweepCommand, SweepsTheNetworkAlone) {
  place_.write("traffic.yaml", "scenario: base.yaml\ncommand: traffic\n"
                               "set: {wafer.mesh: 4x4, traffic.seeds: 1, traffic.measurement: 500 cycles}\n"
                               "vary: {traffic.load: [0.1, 0.2], router.routing: [xy, yx]}\n");
  ASSERT_EQ(place_.shell("cp " WAFERSIM_SOURCE_DIR "/scenarios/traffic/booksim2.yaml base.yaml").status, 0);
  const Outcome outcome = place_.wafersim("sweep traffic.yaml -o out");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("4 of 4 points done"), std::string::npos) << outcome.out;
  const std::string before = results("out");
  ASSERT_EQ(place_.wafersim("sweep traffic.yaml -o again").status, 0);
  EXPECT_EQ(results("again"), before);
}

TEST_F(SweepCommand, BadInputsAreNamed) {
  place_.write("bad.yaml", "scenario: small.yaml\nvary: {plan.tq: [1]}\n");
  Outcome outcome = place_.wafersim("sweep bad.yaml");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("bad.yaml:2:8: vary.plan.tq: no scenario has this key; did you mean 'plan.tp'?"),
            std::string::npos)
      << outcome.err;
  outcome = place_.wafersim("sweep none.yaml");
  EXPECT_EQ(outcome.status, 5);
  outcome = place_.wafersim("sweep study.yaml --shard 3/2");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("'3/2' is no shard"), std::string::npos) << outcome.err;
  ASSERT_EQ(place_.shell("mkdir -p foreign && echo x > foreign/file").status, 0);
  outcome = place_.wafersim("sweep study.yaml -o foreign");
  EXPECT_EQ(outcome.status, 5) << outcome.err;
}

}  // namespace
}  // namespace wafersim::testing
