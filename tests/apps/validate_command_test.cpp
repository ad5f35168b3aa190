#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

const char* const kStudy = R"(name: trial
scenario: small.yaml
vary:
  wafer.link.bandwidth: [16 B/cycle, 64 B/cycle]
  plan.schedule: [1f1b, gpipe]
list:
  - {plan.tp: 64}
)";

class ValidateCommand : public ::testing::Test {
 protected:
  ValidateCommand() { place_.write("small.yaml", kSmallScenario); }

  Outcome validate(const std::string& models, const std::string& options = "") const {
    place_.write("study.yaml", kStudy + models);
    return place_.wafersim("validate study.yaml -o out --jobs 2 " + options);
  }
  nlohmann::json results() const { return nlohmann::json::parse(place_.read("out/validation.json")); }
  /// The results of a model.
  static nlohmann::json model(const nlohmann::json& all, const std::string& name) {
    for (const auto& each : all["models"]) {
      if (each["name"] == name) return each;
    }
    return {};
  }

  Workplace place_;
};

TEST_F(ValidateCommand, PutsOurModelsOnTrial) {
  const Outcome outcome = validate("");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("trial: 4 points simulated, 1 failed"), std::string::npos) << outcome.out;
  const nlohmann::json all = results();
  EXPECT_EQ(all["points"], 4);
  const nlohmann::json contention = model(all, "alpha_beta_contention"), roofline = model(all, "roofline");
  EXPECT_EQ(contention["errors"]["points"], 4);
  EXPECT_LT(contention["errors"]["mape"].get<double>(), 0.1);
  EXPECT_GT(roofline["errors"]["mape"].get<double>(), contention["errors"]["mape"].get<double>());
  EXPECT_EQ(contention["choices"]["groups"], 2);  // by bandwidth: schedules compete
  EXPECT_EQ(contention["worst"].size(), 4U);
  EXPECT_TRUE(contention["worst"][0]["part"].is_string());
  for (const char* file : {"study.sqlite", "results.csv", "predictions.csv", "models.csv", "report.html"}) {
    EXPECT_TRUE(place_.has(std::string("out/") + file)) << file;
  }
  const std::string page = place_.read("out/report.html");
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  // Simulations are not repeated, and the same answers come out.
  const std::string before = place_.read("out/validation.json");
  ASSERT_EQ(place_.wafersim("validate study.yaml -o out --quiet").status, 0);
  EXPECT_EQ(place_.read("out/validation.json"), before);
}

/// What `run` predicts is what `validate` has of the same scenario.
TEST_F(ValidateCommand, PredictsWhatARunPredicts) {
  ASSERT_EQ(validate("models: [alpha_beta]\n").status, 0);
  ASSERT_EQ(place_
                .wafersim("run small.yaml -o alone --quiet --set network.fidelity=analytic --set network.cost_model=alpha_beta "
                          "--set wafer.link.bandwidth='16 B/cycle' --set plan.schedule=1f1b")
                .status,
            0);
  const auto alone = nlohmann::json::parse(place_.read("alone/summary.json"));
  std::istringstream rows(place_.read("out/predictions.csv"));
  std::string header, first;
  std::getline(rows, header);
  std::getline(rows, first);
  EXPECT_NE(first.find("," + std::to_string(alone["cycles"].get<std::uint64_t>()) + ","), std::string::npos) << first;
}

TEST_F(ValidateCommand, UserModelsThatFailAreReportedPointByPoint) {
  place_.write("good.sh", "#!/bin/sh\ncat > /dev/null\necho 100000\n");
  place_.write("picky.sh", "#!/bin/sh\ncat > /dev/null\nif [ $WAFERSIM_POINT = 2 ]; then echo no >&2; exit 3; fi\necho 5e5\n");
  place_.write("table.csv", "point,cycles\n1,1000\n2,rubbish\n4,3000\n");
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = validate(R"(models:
  - {name: good, command: [sh, good.sh]}
  - {name: picky, command: [sh, picky.sh]}
  - {name: crash, command: [sh, -c, "kill -SEGV $$"]}
  - {name: hang, command: [sh, -c, "sleep 600 & sleep 600"], timeout: 0.2 s}
  - {name: rubbish, command: [echo, "about a million"]}
  - {name: negative, command: [echo, "-5"]}
  - {name: object, command: [echo, '{"cycles": 7}']}
  - {name: flood, command: ["yes"], timeout: 10 s}
  - {name: missing, command: [./no-such-program]}
  - {name: table, csv: table.csv}
)");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  const nlohmann::json all = results();
  const auto faults = [&](const char* name) { return model(all, name)["faults"].get<int>(); };
  EXPECT_EQ(faults("good"), 0);
  EXPECT_EQ(faults("picky"), 1);
  EXPECT_EQ(faults("object"), 0);
  for (const char* name : {"crash", "hang", "rubbish", "negative", "flood", "missing"}) EXPECT_EQ(faults(name), 4) << name;
  EXPECT_EQ(faults("table"), 2);
  EXPECT_EQ(model(all, "table")["errors"]["points"], 2);
  for (const char* text :
       {"picky: point 2: exit status 3: no", "crash: point 1 and 3 more: ended by signal 11",
        "hang: point 1 and 3 more: no answer within 0.2 s", "rubbish: point 1 and 3 more: printed 'about a million'",
        "flood: point 1 and 3 more: printed more than 1 MiB", "table: point 3: table.csv has no point 3",
        "table: point 2: table.csv: 'rubbish' is no number of cycles above 0",
        "missing: point 1 and 3 more: exit status 127: No such file or directory"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
  }
}

TEST_F(ValidateCommand, AModelReadsTheResolvedScenario) {
  place_.write("bandwidth.py", R"(import json, sys
scenario = json.load(sys.stdin)
assert scenario["model"]["kv_heads"] == 4 and scenario["plan"]["tp"] == 2
print(1000 * int(scenario["wafer"]["link"]["bandwidth"].split()[0]))
)");
  ASSERT_EQ(validate("models: [{name: mine, command: [python3, bandwidth.py]}]\n").status, 0);
  std::istringstream rows(place_.read("out/predictions.csv"));
  std::string line;
  std::getline(rows, line);
  for (const char* cycles : {",16000,", ",16000,", ",64000,", ",64000,"}) {
    ASSERT_TRUE(std::getline(rows, line));
    EXPECT_NE(line.find(cycles), std::string::npos) << line;
  }
}

TEST_F(ValidateCommand, FaultsOfTheStudyAreNamed) {
  const Outcome outcome =
      validate("models: [magic, {name: a, csv: none.csv}, {name: b}, {name: b, command: [x], timeout: 3}]\n");
  EXPECT_EQ(outcome.status, 2);
  for (const char* text : {"'magic' is not known; valid: alpha_beta_contention, alpha_beta, roofline", "'none.csv' is no file",
                           "has either csv or command", "two models have the name 'b'", "models.timeout"}) {
    EXPECT_NE(outcome.err.find(text), std::string::npos) << text << "\n" << outcome.err;
  }
}

/// A part of the study of docs/analytic-validation.md: fewer points, on more machines.
TEST_F(ValidateCommand, TheAnalyticModelOrdersRandomScenarios) {
  const std::string folder = WAFERSIM_SOURCE_DIR "/scenarios/studies/";
  std::ifstream file(folder + "analytic-validation.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  std::string study = text.str();
  const auto replace = [&study](const std::string& from, const std::string& to) {
    ASSERT_NE(study.find(from), std::string::npos) << from;
    study.replace(study.find(from), from.size(), to);
  };
  replace("scenario: validation-gpt.yaml", "scenario: " + folder + "validation-gpt.yaml");
  replace("points: 1200", "points: 96");
  replace("plans_each: 24", "plans_each: 4");
  place_.write("study.yaml", study);
  const Outcome outcome = place_.wafersim("validate study.yaml -o out --quiet");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const nlohmann::json all = results();
  const nlohmann::json errors = model(all, "alpha_beta_contention")["errors"];
  const int points = errors["points"].get<int>();
  EXPECT_GE(points, 50);
  EXPECT_GE(errors["kendall_tau"].get<double>(), 0.95);
  EXPECT_LE(errors["mape"].get<double>(), 0.05);
  // Fitted on one half, judged on the other.
  for (const char* name : {"alpha_beta, fitted", "alpha_beta, calibrated"}) {
    EXPECT_EQ(model(all, name)["errors"]["points"], points / 2) << name;
  }
  EXPECT_TRUE(model(all, "alpha_beta, fitted")["factors"].is_object());
  // To a model that leaves contention out links look slower than they are.
  const nlohmann::json calibrated = model(all, "alpha_beta, calibrated");
  EXPECT_LT(calibrated["link_factors"]["bandwidth"].get<double>(), 1);
  EXPECT_LT(calibrated["errors"]["mape"].get<double>(), model(all, "alpha_beta")["errors"]["mape"].get<double>());
  EXPECT_TRUE(model(all, "roofline, calibrated").is_null());
}

}  // namespace
}  // namespace wafersim::testing
