#pragma once

#include <filesystem>

#include "analysis/summary.h"
#include "report/prediction_report.h"
#include "report/summary_json.h"

namespace wafersim::report {

/// Names of the files of a run; docs/results.md describes their content.
inline constexpr const char* kSummaryFile = "summary.json";
inline constexpr const char* kTilesFile = "tiles.csv";
inline constexpr const char* kLinksFile = "links.csv";
inline constexpr const char* kStepsFile = "steps.csv";
inline constexpr const char* kMemoryFile = "memory.csv";
inline constexpr const char* kMessagesFile = "messages.csv";
inline constexpr const char* kRanksFile = "ranks.csv";
inline constexpr const char* kTileWindowsFile = "tile_windows.csv";
inline constexpr const char* kLinkWindowsFile = "link_windows.csv";
inline constexpr const char* kStepCyclesFile = "step_cycles.csv";
inline constexpr const char* kOperationsFile = "operations.csv";
inline constexpr const char* kLatencyFile = "latency.csv";
inline constexpr const char* kSpansFile = "spans.csv";
inline constexpr const char* kBubblesFile = "bubbles.csv";
inline constexpr const char* kFlowsFile = "flows.csv";
inline constexpr const char* kPathFile = "critical_path.json";
inline constexpr const char* kReportFile = "report.html";
inline constexpr const char* kTimelineFile = "timeline.json.gz";
/// Of synthetic traffic.
inline constexpr const char* kTrafficFile = "traffic.json";

/// Makes `directory` ready for the results of a run: creates it when it is not there and checks that files
/// can be made in it. Throws IoError when that fails, or when the directory holds files and no earlier run,
/// unless `force`.
void prepare_directory(const std::filesystem::path& directory, bool force);

struct Streamed {
  bool messages = false;  ///< messages.csv
  bool timeline = false;  ///< timeline.json.gz
};

/// Writes tiles.csv, ranks.csv, links.csv, steps.csv, memory.csv where memory was recorded, the tables of activity and critical_path.json where
/// those were, and, last of all, summary.json; a
/// summary of an earlier run is removed first, so that a summary never stands beside tables of another run.
/// `streamed` tells which files that are written while a run goes on belong to this one. Files of an older run that this one does not have are
/// removed. Throws IoError.
void write_run(const std::filesystem::path& directory, const RunContext& run, const Streamed& streamed);

/// Writes summary.json of a prediction; files of an earlier run, which a prediction does not have, are removed. Throws IoError.
void write_prediction(const std::filesystem::path& directory, const PredictionContext& prediction);

}  // namespace wafersim::report
