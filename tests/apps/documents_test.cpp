#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/apps/program.h"

/// What docs/results.md says of the files of a run, against a run that has all of them.
namespace wafersim::testing {
namespace {

namespace fs = std::filesystem;

/// A column as the document names it: axes and memory classes stand for each other.
std::string documented(const std::string& column) {
  static const std::regex axis("(^|_)(tp|tatp|sp|ep|dp|pp)(_|$)");
  static const std::regex memory_class(
      "(parameters|gradients|optimizer|activations|stream_buffers|communication_buffers)_bytes");
  const std::string of_class = std::regex_replace(column, memory_class, "<class>_bytes");
  return std::regex_replace(of_class, axis, "$1<axis>$3");
}

TEST(Documents, NameAllColumnsOfAllTables) {
  const Workplace place;
  place.write("small.yaml", kSmallScenario);
  ASSERT_EQ(place.wafersim("run small.yaml -o run --quiet --messages --memory --critical-path").status, 0);
  const Outcome recorded = place.wafersim("run small.yaml -o recorded --quiet --report");
  std::ifstream file(WAFERSIM_SOURCE_DIR "/docs/results.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  ASSERT_FALSE(document.empty());
  std::size_t tables = 0;
  for (const char* directory : {"run", "recorded"}) {
    if (!place.has(directory)) continue;  // a build without the page
    for (const fs::directory_entry& entry : fs::directory_iterator(place.path() / directory)) {
      const std::string name = entry.path().filename().string();
      EXPECT_NE(document.find('`' + name + '`'), std::string::npos) << name;
      if (entry.path().extension() != ".csv") continue;
      ++tables;
      std::string head;
      std::getline(std::ifstream(entry.path()) >> std::ws, head);
      std::istringstream columns(head);
      for (std::string column; std::getline(columns, column, ',');) {
        EXPECT_NE(document.find('`' + documented(column) + '`'), std::string::npos) << name << ": " << column;
      }
    }
  }
  EXPECT_GE(tables, 6U);
}

}  // namespace
}  // namespace wafersim::testing
