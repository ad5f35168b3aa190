// Studies that mpirun starts on several ranks.
#include <gtest/gtest.h>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

const char* const kStudy = R"(name: tiny
scenario: small.yaml
vary:
  wafer.link.bandwidth: {from: 16 B/cycle, to: 128 B/cycle, factor: 2}
  plan.schedule: [1f1b, gpipe]
list:
  - {plan.tp: 64}
)";

const std::string kRanks = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n ";

class ClusterOfTwo : public ::testing::Test {
 protected:
  ClusterOfTwo() {
    place_.write("small.yaml", kSmallScenario);
    place_.write("study.yaml", kStudy);
  }
  Outcome mpirun(const std::string& arguments, int ranks = 2) const {
    return place_.shell(kRanks + std::to_string(ranks) + " \"$WAFERSIM\" " + arguments);
  }

  Workplace place_;
};

TEST_F(ClusterOfTwo, SweepsAsOneProcessDoes) {
  ASSERT_EQ(place_.wafersim("sweep study.yaml -o alone").status, 0);
  for (const int ranks : {2, 3}) {
    const std::string directory = "of" + std::to_string(ranks);
    const Outcome outcome = mpirun("sweep study.yaml --keep-runs -o " + directory, ranks);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("tiny: 8 of 9 points done, 1 failed"), std::string::npos) << outcome.out;
    EXPECT_EQ(place_.read(directory + "/results.csv"), place_.read("alone/results.csv"));
    for (int point = 1; point <= 8; ++point) {
      EXPECT_TRUE(place_.has(directory + "/runs/" + std::to_string(point) + "/summary.json")) << point;
    }
    EXPECT_FALSE(place_.has(directory + "/.work"));
  }
}

/// A rank that is lost ends all; the same command goes on from what is done.
TEST_F(ClusterOfTwo, ALostRankCostsNoFinishedPoint) {
  ASSERT_EQ(place_.wafersim("sweep study.yaml -o alone").status, 0);
  for (const char* moment : {"0.3", "0.5", "0.7"}) {
    // The last process of that name is not the first rank, or is a point: both are lost.
    const Outcome lost = place_.shell("(" + kRanks + "2 \"$WAFERSIM\" sweep study.yaml -o out >/dev/null 2>&1 & sleep " + moment +
                                      "; pkill -9 -n -f 'sweep study.yaml -o out$'; wait)");
    EXPECT_EQ(lost.status, 0);
  }
  const Outcome outcome = mpirun("sweep study.yaml -o out --quiet");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(place_.read("out/results.csv"), place_.read("alone/results.csv"));
}

TEST_F(ClusterOfTwo, ValidatesModelsToo) {
  place_.write("trial.yaml", std::string(kStudy) + "models: [alpha_beta]\n");
  ASSERT_EQ(place_.wafersim("validate trial.yaml -o alone").status, 0);
  const Outcome outcome = mpirun("validate trial.yaml -o out");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(place_.read("out/results.csv"), place_.read("alone/results.csv"));
}

TEST_F(ClusterOfTwo, ErrorsEndAllRanks) {
  const Outcome missing = mpirun("sweep nothing.yaml -o out");
  EXPECT_NE(missing.status, 0);
  EXPECT_NE(missing.err.find("nothing.yaml"), std::string::npos) << missing.err;
  ASSERT_EQ(place_.shell("mkdir taken && : > taken/file").status, 0);
  const Outcome taken = mpirun("sweep study.yaml -o taken");
  EXPECT_NE(taken.status, 0);
  EXPECT_NE(taken.err.find("taken"), std::string::npos) << taken.err;
}

}  // namespace
}  // namespace wafersim::testing
