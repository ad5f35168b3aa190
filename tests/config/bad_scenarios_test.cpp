#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "config/scenario.h"

/// Every bad/NAME.yaml must fail with exactly the text of bad/NAME.expected. Lines "# --set KEY=VALUE" at the
/// top of a scenario are its overrides. In the expected text file names are relative to bad/, and {hardware}
/// and {models} stand for the presets that exist.
namespace wafersim::config {
namespace {

namespace fs = std::filesystem;

const std::string kScenarios = WAFERSIM_SOURCE_DIR "/scenarios";
const std::string kBad = WAFERSIM_SOURCE_DIR "/tests/config/bad";

std::string read_text(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::vector<std::string> stems(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> overrides_of(const std::string& scenario) {
  const std::string mark = "# --set ";
  std::vector<std::string> overrides;
  std::istringstream lines(scenario);
  for (std::string line; std::getline(lines, line) && line.starts_with(mark);) {
    overrides.push_back(line.substr(mark.size()));
  }
  return overrides;
}

class BadScenario : public testing::TestWithParam<std::string> {};

TEST_P(BadScenario, FailsWithExactlyTheExpectedText) {
  const std::string path = kBad + "/" + GetParam() + ".yaml";
  std::string expected = read_text(kBad + "/" + GetParam() + ".expected");
  replace_all(expected, "{hardware}", join(stems(kScenarios + "/hardware")));
  replace_all(expected, "{models}", join(stems(kScenarios + "/models")));
  ASSERT_FALSE(expected.empty()) << "no expected text for " << path;
  try {
    load_scenario(path, {overrides_of(read_text(path)), kScenarios});
    FAIL() << path << " was accepted";
  } catch (const ScenarioError& error) {
    std::string text = std::string(error.what()) + "\n";
    replace_all(text, kBad + "/", "");
    EXPECT_EQ(text, expected);
    EXPECT_EQ(error.status(), ExitStatus::scenario);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadScenario, testing::ValuesIn(stems(kBad)),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace wafersim::config
