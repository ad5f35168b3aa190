#include "config/study.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace wafersim::config {
namespace {

namespace fs = std::filesystem;

/// A folder with a scenario, in which studies are written.
class StudyFile : public ::testing::Test {
 protected:
  StudyFile() : folder_(fs::path(::testing::TempDir()) / ("wafersim_study_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "base.yaml") << "name: base\n";
  }
  ~StudyFile() override { fs::remove_all(folder_); }

  Study load(const std::string& text) const {
    std::ofstream(folder_ / "study.yaml") << text;
    return load_study((folder_ / "study.yaml").string());
  }
  /// The messages that a study is refused with.
  std::string faults(const std::string& text) const {
    try {
      load(text);
    } catch (const ScenarioError& error) {
      return error.what();
    }
    return "none";
  }

  fs::path folder_;
};

TEST_F(StudyFile, AGridHasAllCombinationsTheLastKeyFastest) {
  const Study study = load("scenario: base.yaml\nset: {seed: 7}\nvary:\n  plan.tp: [1, 2]\n  wafer.mesh: [2x2, 4x4, 2x8]\n");
  EXPECT_EQ(study.name, "study");
  EXPECT_EQ(study.scenario, (folder_ / "base.yaml").string());
  EXPECT_EQ(study.command, StudyCommand::run);
  EXPECT_EQ(study.fixed, (StudyPoint{{"seed", "7"}}));
  EXPECT_EQ(study.keys, (std::vector<std::string>{"plan.tp", "wafer.mesh"}));
  ASSERT_EQ(study.points.size(), 6U);
  EXPECT_EQ(study.points[0], (StudyPoint{{"plan.tp", "1"}, {"wafer.mesh", "2x2"}}));
  EXPECT_EQ(study.points[1], (StudyPoint{{"plan.tp", "1"}, {"wafer.mesh", "4x4"}}));
  EXPECT_EQ(study.points[5], (StudyPoint{{"plan.tp", "2"}, {"wafer.mesh", "2x8"}}));
}

TEST_F(StudyFile, RangesGoBySteps) {
  const Study study = load(
      "scenario: base.yaml\nvary:\n  wafer.link.bandwidth: {from: 64 GB/s, to: 512 GB/s, factor: 2}\n"
      "  traffic.load: {from: 0.1, to: 0.35, step: 0.1}\n");
  ASSERT_EQ(study.points.size(), 4U * 3);
  EXPECT_EQ(study.points[0], (StudyPoint{{"wafer.link.bandwidth", "64 GB/s"}, {"traffic.load", "0.1"}}));
  EXPECT_EQ(study.points[11], (StudyPoint{{"wafer.link.bandwidth", "512 GB/s"}, {"traffic.load", "0.3"}}));
}

TEST_F(StudyFile, ValuesMayBeMapsAndLists) {
  const Study study = load(
      "scenario: base.yaml\nlist:\n  - {plan.tatp: {degree: 8, stream: auto}, plan.mapping.tp: block 2x4}\n"
      "  - {wafer.dead_tiles: [[0, 1], [1, 1]]}\n");
  ASSERT_EQ(study.points.size(), 2U);
  EXPECT_EQ(study.points[0][0].value, "{degree: 8, stream: auto}");
  EXPECT_EQ(study.points[0][1].to_string(), "plan.mapping.tp=block 2x4");
  EXPECT_EQ(study.points[1][0].value, "[[0, 1], [1, 1]]");
}

TEST_F(StudyFile, RandomPointsAreDistinctAndFollowTheSeed) {
  const std::string text = "scenario: base.yaml\nvary: {plan.tp: [1, 2, 4, 8], plan.pp: [1, 2, 4, 8]}\nsample: random\npoints: 10\n";
  const Study first = load(text);
  EXPECT_EQ(first.points.size(), 10U);
  for (std::size_t i = 0; i < first.points.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(first.points[i], first.points[j]);
  }
  EXPECT_EQ(load(text).points, first.points);
  EXPECT_NE(load(text + "seed: 2\n").points, first.points);
}

TEST_F(StudyFile, RandomPointsAreAllWhereThereAreFewer) {
  const Study study = load("scenario: base.yaml\nvary: {plan.tp: [1, 2]}\nsample: random\npoints: 10\n");
  EXPECT_EQ(study.points.size(), 2U);
}

TEST_F(StudyFile, EqualPointsAreOne) {
  const Study study = load("scenario: base.yaml\nvary: {plan.tp: [1, 2]}\nlist: [{plan.tp: 2}, {plan.tp: 4}]\n");
  EXPECT_EQ(study.points.size(), 3U);
}

TEST_F(StudyFile, FaultsNameFileLineAndKey) {
  const std::string faulty = faults(
      "scenario: none.yaml\nvary:\n  plan.tq: [1]\n  plan.tp: [1, 1]\n  wafer.mesh: 8x8\n"
      "  wafer.link.bandwidth: {from: 64 GB/s, to: 512 GB, factor: 2}\n  plan.pp: {from: 4, to: 1, step: 1}\nsampel: grid\n");
  EXPECT_NE(faulty.find("study.yaml:1:11: scenario: 'none.yaml' is no file"), std::string::npos) << faulty;
  EXPECT_NE(faulty.find("study.yaml:3:3: vary.plan.tq: no scenario has this key; did you mean 'plan.tp'?"), std::string::npos)
      << faulty;
  EXPECT_NE(faulty.find("study.yaml:4:12: vary.plan.tp: '1' is given twice"), std::string::npos) << faulty;
  EXPECT_NE(faulty.find("study.yaml:5:15: vary.wafer.mesh: must be a list"), std::string::npos) << faulty;
  EXPECT_NE(faulty.find("vary.wafer.link.bandwidth: from, to and step must have the same unit"), std::string::npos) << faulty;
  EXPECT_NE(faulty.find("vary.plan.pp: a range goes up"), std::string::npos) << faulty;
  EXPECT_NE(faulty.find("sampel: unknown key; did you mean 'sample'?"), std::string::npos) << faulty;
}

TEST_F(StudyFile, SizesAreBounded) {
  EXPECT_NE(faults("scenario: base.yaml\nvary: {plan.tp: {from: 1, to: 1000, step: 1}, plan.pp: {from: 1, to: 1000, step: 1}}\n")
                .find("more than 100000 points"),
            std::string::npos);
  EXPECT_NE(faults("scenario: base.yaml\nvary: {plan.tp: {from: 1, to: 1000000, step: 1}}\n").find("more than 100000 points"),
            std::string::npos);
  EXPECT_NE(faults("scenario: base.yaml\n").find("missing; a study has `vary`, `list` or both"), std::string::npos);
  EXPECT_NE(faults("vary: {plan.tp: [1]}\n").find("scenario: missing"), std::string::npos);
  EXPECT_NE(faults("scenario: base.yaml\nvary: {plan.tp: [1]}\nsample: random\n").find("points: missing"), std::string::npos);
  EXPECT_NE(faults("scenario: base.yaml\nvary: {plan.tp: [1]}\npoints: 3\n").find("a grid has all of them"), std::string::npos);
  EXPECT_NE(faults("- a\n").find("a study must be a map of keys"), std::string::npos);
}

/// Points in a row that share everything but their plans.
TEST_F(StudyFile, PlansOfARandomStudyCompete) {
  const Study study = load(
      "scenario: base.yaml\nsample: random\npoints: 12\nplans_each: 4\nvary:\n"
      "  wafer.mesh: [2x2, 4x4, 2x8, 8x8, 4x8, 16x16]\n  plan.tp: [1, 2, 4]\n  plan.pp: [1, 2, 4]\n");
  ASSERT_EQ(study.points.size(), 12U);
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    EXPECT_EQ(study.points[i][0], study.points[i - i % 4][0]) << i;
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(study.points[i], study.points[j]);
  }
  EXPECT_NE(faults("scenario: base.yaml\nplans_each: 4\nvary: {plan.tp: [1]}\n").find("plans_each"), std::string::npos);
}

TEST_F(StudyFile, ModelsAreOursUnlessGiven) {
  const Study all = load("scenario: base.yaml\nvary: {plan.tp: [1]}\n");
  ASSERT_EQ(all.models.size(), 3U);
  EXPECT_EQ(all.models[0].own, models::CostModel::alpha_beta_contention);
  const Study own = load(
      "scenario: base.yaml\nvary: {plan.tp: [1]}\nmodels:\n  - roofline\n"
      "  - {name: mine, command: [./model.py, fast], timeout: 2 s}\n");
  ASSERT_EQ(own.models.size(), 2U);
  EXPECT_EQ(own.models[0].own, models::CostModel::roofline);
  EXPECT_EQ(own.models[1].command, (std::vector<std::string>{(folder_ / "model.py").string(), "fast"}));
  EXPECT_DOUBLE_EQ(own.models[1].timeout_seconds, 2);
}

}  // namespace
}  // namespace wafersim::config
