#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "config/scenario.h"
#include "models/transformer.h"

namespace wafersim::config {
namespace {

namespace fs = std::filesystem;

const std::string kScenarios = WAFERSIM_SOURCE_DIR "/scenarios";
constexpr const char* kAnyWafer = "wafer: {preset: wafer-2048}\n";
constexpr const char* kAnyModel = "model: {preset: gpt3-6.7b, sequence: 2048}\n";

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kScenarios + "/" + directory)) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The next line of a CSV file, whatever its line ends.
bool next_line(std::istream& in, std::string& line) {
  if (!std::getline(in, line)) return false;
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

class Presets : public testing::Test {
 protected:
  Presets() : directory_(fs::temp_directory_path() / ("wafersim_presets_" + std::to_string(getpid()))) {
    fs::create_directories(directory_ / "studies");
  }
  ~Presets() override { fs::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = directory_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  Scenario load(const std::string& text, const LoadOptions& options = {}) const {
    return load_scenario(write("studies/scenario.yaml", text), options);
  }
  /// Reading back what was written gives the same scenario.
  void expect_round_trip(const Scenario& scenario) const {
    const std::string resolved = to_yaml(scenario);
    EXPECT_EQ(resolved.find(" preset:"), std::string::npos);
    EXPECT_EQ(to_yaml(load(resolved)), resolved);
    EXPECT_EQ(to_json(load(resolved)), to_json(scenario));
  }

  fs::path directory_;
};

TEST_F(Presets, EveryWaferResolvesAndSurvivesARoundTrip) {
  const std::vector<std::string> names = names_in("hardware");
  ASSERT_GE(names.size(), 4U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Scenario s = load("wafer: {preset: " + name + "}\n" + kAnyModel);
    EXPECT_NO_THROW(models::resolve_hardware(s.wafer, s.router, s.network));
    expect_round_trip(s);
  }
}

TEST_F(Presets, EveryModelResolvesAndSurvivesARoundTrip) {
  const std::vector<std::string> names = names_in("models");
  ASSERT_GE(names.size(), 10U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Scenario s = load(std::string(kAnyWafer) + "model: {preset: " + name + ", sequence: 2048}\n");
    EXPECT_EQ(s.model.name, name);
    expect_round_trip(s);
  }
}

TEST_F(Presets, ModelsAreThoseOfTheReferenceTable) {
  std::ifstream table(WAFERSIM_SOURCE_DIR "/tests/reference/transformers.csv");
  std::string line;
  next_line(table, line);
  ASSERT_EQ(line, "model,mlp,layers,hidden,heads,kv_heads,ffn,vocab,context,exact_parameters");
  int rows = 0;
  while (next_line(table, line)) {
    std::vector<std::string> cells;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
    cells.resize(10);
    SCOPED_TRACE(cells[0]);
    const models::TransformerSpec model =
        load(std::string(kAnyWafer) + "model: {preset: " + cells[0] + ", sequence: 2048}\n").model;
    EXPECT_EQ(model.mlp == models::Mlp::swiglu ? "swiglu" : "gelu", cells[1]);
    EXPECT_EQ(model.layers, std::stoi(cells[2]));
    EXPECT_EQ(model.hidden, std::stoll(cells[3]));
    EXPECT_EQ(model.heads, std::stoll(cells[4]));
    EXPECT_EQ(model.kv_heads, std::stoll(cells[5]));
    EXPECT_EQ(model.ffn, std::stoll(cells[6]));
    EXPECT_EQ(model.vocab, std::stoll(cells[7]));
    EXPECT_EQ(model.context, std::stoll(cells[8]));
    if (!cells[9].empty()) {
      EXPECT_EQ(models::count_parameters(model).total(model.layers), std::stoull(cells[9]));
    }
    ++rows;
  }
  EXPECT_EQ(rows, 10);
}

TEST_F(Presets, MixtralIsItsPublishedConfiguration) {
  const std::string file = WAFERSIM_SOURCE_DIR "/tests/reference/huggingface/mixtral-8x7b.json";
  models::TransformerSpec published =
      load(std::string(kAnyWafer) + "model: {huggingface: " + file + ", sequence: 2048}\n").model;
  published.name = "mixtral-8x7b";
  const models::TransformerSpec preset =
      load(std::string(kAnyWafer) + "model: {preset: mixtral-8x7b, sequence: 2048}\n").model;
  EXPECT_EQ(preset.layers, published.layers);
  EXPECT_EQ(preset.experts, published.experts);
  EXPECT_EQ(preset.top_k, published.top_k);
  EXPECT_EQ(preset.context, published.context);
  EXPECT_EQ(models::count_parameters(preset).total(preset.layers), 46'702'792'704U);
  EXPECT_EQ(models::count_parameters(published).total(published.layers), 46'702'792'704U);
}

TEST_F(Presets, Wafer2048HasItsPublishedNumbers) {
  const Scenario s = load(std::string(kAnyWafer) + kAnyModel);
  const models::HardwareModel hardware = models::resolve_hardware(s.wafer, s.router, s.network);
  EXPECT_EQ(s.wafer.mesh.shape, (topology::Shape{32, 64}));
  EXPECT_EQ(hardware.matrix_flops_per_cycle, Rational(32'768));
  EXPECT_EQ(hardware.sram_capacity, Bytes{64} << 20);
  EXPECT_EQ(hardware.dram_capacity, Bytes{8} << 30);
  EXPECT_EQ(hardware.link_bytes_per_cycle, Rational(256));
  EXPECT_EQ(hardware.link_cycles, 4U);
  EXPECT_EQ(hardware.router_cycles, 2U);
}

TEST_F(Presets, TempWaferCountsItsArraysFromThePeak) {
  const Scenario s = load("wafer: {preset: temp-wafer}\n" + std::string(kAnyModel));
  const models::HardwareModel hardware = models::resolve_hardware(s.wafer, s.router, s.network);
  EXPECT_EQ(hardware.matrix_flops_per_cycle, Rational(900'000));
  EXPECT_EQ(hardware.link_cycles, 400U);
  EXPECT_EQ(hardware.link_bytes_per_cycle, Rational(500));
}

TEST_F(Presets, KeysBesideAPresetWin) {
  const Scenario s = load(
      "wafer: {preset: wafer-2048, link: {bandwidth: 1 TB/s}, compute: {matrix: {peak: 10 TFLOP/s}}}\n"
      "model: {preset: llama3-8b, sequence: 4096, layers: 2}\n"
      "router: {pipeline: 5 cycles}\n");
  EXPECT_EQ(s.wafer.link.bandwidth, Bandwidth::per_second(Rational(1'000'000'000'000)));
  EXPECT_EQ(s.wafer.link.latency, Duration::of_cycles(4));
  EXPECT_EQ(s.wafer.core.matrix.peak->value, Rational(10'000'000'000'000));
  EXPECT_EQ(s.model.layers, 2);
  EXPECT_EQ(s.model.kv_heads, 8);
  EXPECT_EQ(s.router.pipeline, Duration::of_cycles(5));
  EXPECT_EQ(s.router.virtual_channels, 2);
}

TEST_F(Presets, AnOverrideChoosesThePreset) {
  const Scenario s =
      load(std::string(kAnyWafer) + kAnyModel, {{"wafer.preset=temp-wafer", "model.preset=llama2-7b"}, ""});
  EXPECT_EQ(s.wafer.mesh.shape, (topology::Shape{4, 8}));
  EXPECT_EQ(s.model.name, "llama2-7b");
}

TEST_F(Presets, AnOverrideByPresetReplacesAHuggingFaceFile) {
  const Scenario s = load(std::string(kAnyWafer) + "model: {huggingface: nowhere.json, sequence: 2048}\n",
                          {{"model.preset=llama2-7b"}, ""});
  EXPECT_EQ(s.model.name, "llama2-7b");
}

TEST_F(Presets, AreFoundNearTheScenarioBeforeThoseOfTheProject) {
  write("hardware/wafer-2048.yaml", "wafer: {mesh: 3x3}\n");
  EXPECT_EQ(load(std::string(kAnyWafer) + kAnyModel).wafer.mesh.shape, (topology::Shape{3, 3}));
  write("studies/scenarios/hardware/wafer-2048.yaml", "wafer: {mesh: 2x2}\n");
  EXPECT_EQ(load(std::string(kAnyWafer) + kAnyModel).wafer.mesh.shape, (topology::Shape{2, 2}));
  const std::string root = (directory_ / "root").string();
  write("root/hardware/wafer-2048.yaml", "wafer: {mesh: 5x5}\n");
  EXPECT_EQ(load(std::string(kAnyWafer) + kAnyModel, {{}, root}).wafer.mesh.shape, (topology::Shape{5, 5}));
}

TEST_F(Presets, PathsAreRelativeToTheFileThatNamesThem) {
  write("mine.yaml", "wafer: {mesh: 6x6}\nplacement: {activations: sram}\n");
  write("studies/local.yaml", "wafer: {mesh: 7x7}\n");
  const Scenario s = load("wafer: {preset: ../mine.yaml}\n" + std::string(kAnyModel));
  EXPECT_EQ(s.wafer.mesh.shape, (topology::Shape{6, 6}));
  EXPECT_EQ(s.placement.at(workloads::MemoryClass::activations), workloads::MemoryPlace::sram);
  EXPECT_EQ(load("wafer: {preset: local.yaml}\n" + std::string(kAnyModel)).wafer.mesh.shape,
            (topology::Shape{7, 7}));
}

}  // namespace
}  // namespace wafersim::config
