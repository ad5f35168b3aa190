#pragma once

#include <filesystem>
#include <string>

#include "analysis/summary.h"
#include "report/summary_json.h"

namespace wafersim::testing {

/// A hand-made run: two tiles of a 2x2 mesh at 1 GHz, tp 2, one iteration of 1000 cycles.
struct RunFixture {
  RunFixture();

  analysis::RunSummary summarize() const;
  report::RunContext context(const analysis::RunSummary& summary) const;

  models::TransformerSpec model;
  workloads::TrainingSpec training;
  workloads::PlanSpec plan;
  models::HardwareModel hardware;
  topology::Mesh mesh;
  workloads::Mapping mapping;
  workloads::MemoryBound memory;
  sim::Measurements measurements;
};

/// An empty directory of the test that runs, removed at the end.
class TestDirectory {
 public:
  TestDirectory();
  ~TestDirectory();
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, const std::string& text);

}  // namespace wafersim::testing
