#include "report/run_directory.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "report/activity_tables.h"
#include "report/atomic_file.h"
#include "report/checkpoint_file.h"
#include "report/csv_tables.h"
#include "report/path_file.h"

namespace wafersim::report {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const char* action, const fs::path& path, const std::string& reason) {
  throw IoError(fmt::format("cannot {} {}: {}", action, path.string(), reason));
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) fail("remove", path, error.message());
}

/// A file of ours that has `key` in any case.
bool holds(const fs::path& path, const char* key) {
  std::ifstream file(path);
  if (!file) return false;
  const auto content = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  return content.is_object() && content.contains(key);
}

bool holds_a_run(const fs::path& directory) {
  return fs::exists(directory / kCheckpointFile) || holds(directory / kSummaryFile, "wafersim_version") || holds(directory / kTrafficFile, "ideal_saturation");
}

bool holds_nothing(const fs::path& directory) {
  std::error_code error;
  const bool empty = fs::is_empty(directory, error);
  if (error) fail("read", directory, error.message());
  return empty;
}

void create(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) fail("create directory", directory, error.message());
}

void write_activity(const fs::path& directory, const RunContext& run) {
  if (!run.measurements.activity) {
    for (const char* file : {kTileWindowsFile, kLinkWindowsFile, kStepCyclesFile, kOperationsFile, kLatencyFile, kSpansFile,
                             kBubblesFile, kFlowsFile}) {
      remove_file(directory / file);
    }
    return;
  }
  const sim::ActivityMeasurement& activity = *run.measurements.activity;
  write_tile_windows(directory / kTileWindowsFile, run.measurements, run.mesh);
  write_link_windows(directory / kLinkWindowsFile, run.measurements, run.mesh);
  write_step_cycles(directory / kStepCyclesFile, activity.steps);
  write_operations(directory / kOperationsFile, activity.operations);
  write_latencies(directory / kLatencyFile, activity.messages);
  write_spans(directory / kSpansFile, activity.tiles, run.mesh);
  write_bubbles(directory / kBubblesFile, activity.bubbles);
  write_flows(directory / kFlowsFile, run.flows, run.mesh);
}

}  // namespace

void prepare_directory(const fs::path& directory, bool force) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (error && status.type() != fs::file_type::not_found) fail("use", directory, error.message());
  if (!fs::exists(status)) {
    create(directory);
  } else if (!fs::is_directory(status)) {
    fail("write results to", directory, "it is not a directory");
  } else if (!force && !holds_nothing(directory) && !holds_a_run(directory)) {
    fail("write results to", directory,
         "it holds files that are not the results of a run; choose another directory or pass --force");
  }
  const AtomicFile probe(directory /
                         kSummaryFile);  // fails here, before the simulation, when nothing can be written
}

void write_run(const fs::path& directory, const RunContext& run, const Streamed& streamed) {
  create(directory);
  remove_file(directory / kSummaryFile);
  remove_file(directory / kReportFile);  // of the run before, too
  if (!streamed.messages) remove_file(directory / kMessagesFile);
  if (!streamed.timeline) remove_file(directory / kTimelineFile);
  write_tiles(directory / kTilesFile, run.measurements, run.mesh, run.summary.energy);
  write_ranks(directory / kRanksFile, run.plan, run.mapping, run.mesh);
  write_links(directory / kLinksFile, run.measurements, run.mesh, run.summary.energy);
  write_steps(directory / kStepsFile, run.measurements);
  if (run.measurements.memory.empty()) {
    remove_file(directory / kMemoryFile);
  } else {
    write_memory(directory / kMemoryFile, run.measurements, run.mesh);
  }
  write_activity(directory, run);
  if (run.path && run.measurements.critical_path) {
    write_path(directory / kPathFile, *run.measurements.critical_path, *run.path, *run.trace, run.mesh);
  } else {
    remove_file(directory / kPathFile);
  }
  write_file(directory / kSummaryFile, summary_text(run));
}

void write_prediction(const fs::path& directory, const PredictionContext& prediction) {
  create(directory);
  for (const char* name : {kSummaryFile, kReportFile, kMessagesFile, kTimelineFile, kTilesFile, kRanksFile, kLinksFile,
                           kStepsFile, kMemoryFile, kTileWindowsFile, kLinkWindowsFile, kStepCyclesFile,
                           kOperationsFile, kLatencyFile, kSpansFile, kBubblesFile, kFlowsFile}) {
    remove_file(directory / name);
  }
  write_file(directory / kSummaryFile, prediction_text(prediction));
}

}  // namespace wafersim::report
