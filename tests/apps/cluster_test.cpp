// Studies and searches that mpirun starts on several ranks.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "tests/apps/search_results.h"

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

/// When a rank ends otherwise than by MPI_Finalize, the mpirun of Open MPI 4.1 crashes or hangs now and then, after the end
/// of all ranks (in PMIx_server_finalize): an mpirun without a living rank is ended, with status 124. Ranks that hang are
/// another matter: then all are ended, with status 125.
const char* const kRanksScript = R"(export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
start=60 end=10 longest=120  # seconds: until there is a rank, after the last one, of all ranks
alive() { ps -o stat= "$@" | grep -q '^[^Z]'; }
mpirun --oversubscribe "$@" &
mpirun=$!
patience=$start
began=$(date +%s)
last=$began
while alive -p $mpirun; do
  now=$(date +%s)
  if alive --ppid $mpirun; then
    last=$now
    patience=$end
    if [ $((now - began)) -ge $longest ]; then
      kill -9 $mpirun $(ps -o pid= --ppid $mpirun)
      exit 125
    fi
  elif [ $((now - last)) -ge $patience ]; then
    kill -9 $mpirun
    exit 124
  fi
  sleep 0.1
done
wait $mpirun
)";
const std::string kRanks = "sh ./ranks.sh -n ";
constexpr int kMpirunHangs = 124, kRanksHang = 125;

class ClusterOfTwo : public ::testing::Test {
 protected:
  ClusterOfTwo() {
    place_.write("ranks.sh", kRanksScript);
    place_.write("small.yaml", kSmallScenario);
    place_.write("study.yaml", kStudy);
    place_.write("tiny.yaml", kSearchScenario);
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
    const Outcome lost = place_.shell("(" + kRanks + "2 \"$WAFERSIM\" sweep study.yaml -o lost >/dev/null 2>&1 & " +
                                      "sleep " + moment +
                                      "; pkill -9 -n -f \"^$WAFERSIM sweep study.yaml -o lost$\"; wait $!)");
    EXPECT_NE(lost.status, kRanksHang);
  }
  const Outcome outcome = mpirun("sweep study.yaml -o lost --quiet");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(place_.read("lost/results.csv"), place_.read("alone/results.csv"));
}

TEST_F(ClusterOfTwo, ValidatesModelsToo) {
  place_.write("trial.yaml", std::string(kStudy) + "models: [alpha_beta]\n");
  ASSERT_EQ(place_.wafersim("validate trial.yaml -o alone").status, 0);
  const Outcome outcome = mpirun("validate trial.yaml -o out");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(place_.read("out/results.csv"), place_.read("alone/results.csv"));
}

/// What a search of several ranks says of their shares.
struct Shares {
  int ranks = 0;
  std::array<int, 3> predictions{}, simulations{};  ///< of all; the least and the most of a rank
};

Shares shares_of(const std::string& text) {
  Shares found;
  const std::size_t begin = text.find("Shared by");
  if (begin == std::string::npos) return found;
  std::sscanf(text.c_str() + begin, "Shared by %d ranks: %d predictions, %d to %d each; %d simulations, %d to %d each",
              &found.ranks, &found.predictions[0], &found.predictions[1], &found.predictions[2], &found.simulations[0],
              &found.simulations[1], &found.simulations[2]);
  return found;
}

/// Some plans of the tight wafer do not fit, and the reason names a tile, a step and bytes by class.
TEST_F(ClusterOfTwo, SearchesAsOneProcessDoes) {
  for (const char* capacity : {"64 MiB", "600 KiB"}) {
    const std::string search = "search tiny.yaml --max-plans 150 --top 3 --baselines megatron,fsdp --force "
                               "--set wafer.sram.capacity=\"" + std::string(capacity) + "\" -o ";
    const Outcome alone = place_.wafersim(search + "alone");
    ASSERT_EQ(alone.status, 0) << alone.err;
    EXPECT_EQ(shares_of(alone.out).ranks, 0) << alone.out;
    for (const int ranks : {2, 3}) {
      const std::string directory = "of" + std::to_string(ranks);
      const Outcome outcome = mpirun(search + directory, ranks);
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      for (const char* file : {"/search.csv", "/search.svg", "/best.yaml", "/best-megatron.yaml", "/best-fsdp.yaml"}) {
        EXPECT_EQ(place_.read(directory + file), place_.read(std::string("alone") + file)) << file;
      }
      EXPECT_FALSE(place_.has(directory + "/.work"));
      const Shares shares = shares_of(outcome.out);
      EXPECT_EQ(shares.ranks, ranks) << outcome.out;
      EXPECT_GT(shares.predictions[1], 0) << outcome.out;
      EXPECT_LE(shares.predictions[2], shares.predictions[0] - (ranks - 1) * shares.predictions[1]) << outcome.out;
      std::size_t simulated = 0;
      for (const SearchRow& row : search_rows(place_.read(directory + "/search.csv"))) {
        simulated += row.at("simulated_cycles").empty() ? 0 : 1;
      }
      EXPECT_GT(shares.simulations[0], 0);
      EXPECT_LE(shares.simulations[0], static_cast<int>(simulated)) << "families share simulations";
    }
  }
}

TEST_F(ClusterOfTwo, AnInterruptedSearchKeepsWhatWasFound) {
  // To the second rank alone: rank 0 hears of it, writes and ends all.
  const Outcome outcome = place_.shell(
      "(" + kRanks + "2 sh -c 'if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then echo $$ > second; fi; " +
      "exec \"$0\" search tiny.yaml -o out --max-plans 100000 --quiet' \"$WAFERSIM\"; echo $? > status) & "
      "until [ -s second ] && [ -e out/.lock ]; do sleep 0.1; done; sleep 5; kill -TERM $(cat second); wait");
  const int status = std::atoi(place_.read("status").c_str());
  EXPECT_TRUE(status == 130 || status == 139 || status == kMpirunHangs) << status << outcome.err;  // see kRanksScript
  EXPECT_FALSE(search_rows(place_.read("out/search.csv")).empty());
  EXPECT_EQ(place_.wafersim("run out/best.yaml -o alone").status, 0);
}

TEST_F(ClusterOfTwo, ABudgetEndsASearchOfAllRanks) {
  const Outcome outcome = mpirun("search tiny.yaml -o out --max-plans 100000 --budget 4s");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(place_.has("out/best.yaml"));
}

TEST_F(ClusterOfTwo, AdvisesAsOneProcessDoes) {
  write_advice_presets(place_);
  const std::string advise = "advise --wafer small-wafer --models huge-gpt,small-gpt --sequences 32,64 --tokens 512 "
                             "--max-plans 40 --confirm --quiet -o ";
  ASSERT_EQ(place_.wafersim(advise + "alone").status, 0);
  const Outcome outcome = mpirun(advise + "out");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(place_.read("out/advice.json"), place_.read("alone/advice.json"));
  EXPECT_EQ(place_.read("out/small-gpt-64.yaml"), place_.read("alone/small-gpt-64.yaml"));
}

TEST_F(ClusterOfTwo, ErrorsEndAllRanks) {
  const Outcome missing = mpirun("sweep nothing.yaml -o out");
  EXPECT_NE(missing.status, 0);
  EXPECT_NE(missing.status, kRanksHang);
  EXPECT_NE(missing.err.find("nothing.yaml"), std::string::npos) << missing.err;
  ASSERT_EQ(place_.shell("mkdir taken && : > taken/file").status, 0);
  const Outcome taken = mpirun("sweep study.yaml -o taken");
  EXPECT_NE(taken.status, 0);
  EXPECT_NE(taken.status, kRanksHang);
  EXPECT_NE(taken.err.find("taken"), std::string::npos) << taken.err;
  const Outcome tight = mpirun("search tiny.yaml -o tight --set wafer.sram.capacity=\"256 KiB\"");
  EXPECT_NE(tight.status, 0);
  EXPECT_NE(tight.status, kRanksHang);
  EXPECT_NE(tight.err.find("plans that were looked at fits 256 KiB of a tile"), std::string::npos) << tight.err;
}

}  // namespace
}  // namespace wafersim::testing
