#include "config/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "config/scenario.h"

namespace wafersim::config {
namespace {

const std::string kReference = WAFERSIM_SOURCE_DIR "/docs/scenario.md";

/// Lines of the reference that are rows of its key tables.
std::set<std::string> documented_rows() {
  std::set<std::string> rows;
  std::ifstream in(kReference);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| `")) rows.insert(line);
  }
  return rows;
}

TEST(KeyReference, EveryKeyIsDocumentedWithItsTypeDefaultAndMeaning) {
  std::set<std::string> rows = documented_rows();
  for (const KeyInfo& key : key_reference()) {
    EXPECT_EQ(rows.erase(reference_row(key)), 1U) << "docs/scenario.md lacks the row\n" << reference_row(key);
  }
  for (const std::string& row : rows) ADD_FAILURE() << "docs/scenario.md has a row of no key\n" << row;
}

TEST(KeyReference, ListsEachKeyOnceWithItsSectionBefore) {
  std::set<std::string> seen;
  for (const KeyInfo& key : key_reference()) {
    EXPECT_TRUE(seen.insert(key.path).second) << key.path;
    const std::size_t dot = key.path.rfind('.');
    if (dot != std::string::npos) {
      EXPECT_TRUE(seen.contains(key.path.substr(0, dot))) << key.path;
    }
    EXPECT_FALSE(key.doc.empty()) << key.path;
    EXPECT_FALSE(key.type.empty()) << key.path;
  }
}

TEST(KeyReference, KeysThatAreNotRequiredHaveADefault) {
  for (const KeyInfo& key : key_reference()) {
    if (!key.section) {
      EXPECT_FALSE(key.default_value.empty()) << key.path;
    }
  }
}

/// What a row promises as a default is what a scenario that writes it means.
TEST(KeyReference, DefaultsMayBeWrittenOut) {
  const std::string path = testing::TempDir() + "/wafersim_keys_defaults.yaml";
  const std::string base =
      "name: n\nwafer: {mesh: 4x4}\n"
      "model: {layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 1000, context: 128, sequence: 128}\n";
  std::ofstream(path) << base;
  const std::string resolved = to_yaml(load_scenario(path));
  const std::set<std::string> skip = {"name", "wafer.preset", "model.preset", "model.huggingface",
                                      "model.name"};
  for (const KeyInfo& key : key_reference()) {
    const bool described =
        key.default_value == "required" || key.default_value.find('`') != std::string::npos;
    const auto inside = [&key](const char* section) { return key.path.starts_with(section); };
    // A key of a section that is not there by default makes it be there.
    const std::vector<const char*> absent = {"wafer.dram.",  "wafer.reticle.", "wafer.express.", "router.pipeline_stages.",
                                             "traffic.",     "collective.",    "kernel.",        "plan.operators."};
    if (std::any_of(absent.begin(), absent.end(), inside)) continue;
    if (key.section || described || skip.contains(key.path)) continue;
    EXPECT_EQ(to_yaml(load_scenario(path, {{key.path + "=" + key.default_value}, ""})), resolved) << key.path;
  }
}

}  // namespace
}  // namespace wafersim::config
