#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

class CompareCommand : public ::testing::Test {
 protected:
  CompareCommand() {
    place_.write("small.yaml", kSmallScenario);
    EXPECT_EQ(place_.wafersim("run small.yaml -o runs/base --quiet").status, 0);
    EXPECT_EQ(place_.wafersim("run small.yaml -o runs/slow --quiet --set wafer.link.bandwidth=\"8 B/cycle\" --set plan.zero=1").status,
              0);
  }
  Workplace place_;
};

TEST_F(CompareCommand, PutsRunsSideBySide) {
  const Outcome outcome = place_.wafersim("compare runs/base runs/slow");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* expected : {"base", "slow", "iteration", "tokens per second", "exposed tp", "Keys that differ",
                               "wafer.link.bandwidth", "64 B/cycle", "8 B/cycle", "plan.zero"}) {
    EXPECT_NE(outcome.out.find(expected), std::string::npos) << expected << "\n" << outcome.out;
  }
  EXPECT_EQ(outcome.out.find("plan.tp "), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("exposed sp"), std::string::npos) << outcome.out;
}

TEST_F(CompareCommand, JsonHasTheValuesOfTheSummaries) {
  const Outcome outcome = place_.wafersim("compare runs/base runs/slow runs/base/ --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  const auto base = nlohmann::json::parse(place_.read("runs/base/summary.json"));
  const auto slow = nlohmann::json::parse(place_.read("runs/slow/summary.json"));
  EXPECT_EQ(json.at("measures").at("cycles"), (nlohmann::json{base.at("cycles"), slow.at("cycles"), base.at("cycles")}));
  EXPECT_EQ(json.at("measures").at("iteration_seconds").at(0), base.at("seconds"));
  EXPECT_EQ(json.at("measures").at("memory.peak_bytes").at(1), slow.at("memory").at("peak_bytes"));
  EXPECT_EQ(json.at("keys").at("wafer.link.bandwidth"), (nlohmann::json{"64 B/cycle", "8 B/cycle", "64 B/cycle"}));
  EXPECT_EQ(json.at("keys").at("plan.zero"), (nlohmann::json{"0", "1", "0"}));
  EXPECT_EQ(json.at("keys").size(), 2U);
}

TEST_F(CompareCommand, EqualNamesAreToldApartByTheirFolders) {
  ASSERT_EQ(place_.wafersim("run small.yaml -o other/base --quiet").status, 0);
  const Outcome outcome = place_.wafersim("compare runs/base other/base");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("runs/base"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("other/base"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("The scenarios are the same"), std::string::npos) << outcome.out;
}

TEST_F(CompareCommand, BadInputsAreNamed) {
  Outcome outcome = place_.wafersim("compare runs/base");
  EXPECT_EQ(outcome.status, 2);
  outcome = place_.wafersim("compare runs/base runs/none");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_NE(outcome.err.find("runs/none holds no results of a run: it has no summary.json"), std::string::npos) << outcome.err;
  ASSERT_EQ(place_.shell("mkdir broken && echo '{' > broken/summary.json").status, 0);
  outcome = place_.wafersim("compare runs/base broken");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_NE(outcome.err.find("cannot use broken/summary.json: it is not the summary of a run"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace wafersim::testing
