#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/plan_search_options.h"
#include "base/units.h"
#include "report/picture.h"

namespace wafersim::apps {

struct ScenarioArguments {
  std::string path;
  std::vector<std::string> overrides;  ///< "key=value"
};

/// --vcd and --vcd-routers.
struct WaveArguments {
  std::string path;                  ///< empty = no waveform
  std::vector<std::string> routers;  ///< patterns of report::tiles_named()
};

/// --timeline, --timeline-tiles and --timeline-bytes.
struct TimelineArguments {
  bool wanted = false;
  std::vector<std::string> tiles;  ///< patterns of report::tiles_named(); none: one of each of the first stages
  std::optional<Bytes> most_bytes;
};

struct RunArguments {
  ScenarioArguments scenario;
  WaveArguments wave;
  TimelineArguments timeline;
  std::string directory;  ///< empty = runs/<name of the scenario>
  bool json = false;
  bool quiet = false;
  bool messages = false;
  bool memory = false;
  std::vector<std::string> memory_tiles;  ///< by name
  bool critical_path = false;
  bool report = false;
  std::vector<std::string> report_tiles;  ///< by name
  bool force = false;
  bool fold = true;
  bool fold_stages = false;
  bool trains = true;
  bool resume = false;
  double checkpoint_seconds = 0;  ///< 0 = no checkpoints
  Cycle max_cycles = kNever;
  double max_wall_seconds = 0;  ///< 0 = no limit
};

struct ReportArguments {
  std::string directory;  ///< of a run
};

struct PlotArguments {
  std::string directory;  ///< of a run
  std::string output;
  report::PictureRequest picture;
};

struct CheckArguments {
  ScenarioArguments scenario;
  bool json = false;
  bool verify = false;
};

struct TopologyArguments {
  ScenarioArguments scenario;
  bool json = false;
};

struct TrafficArguments {
  ScenarioArguments scenario;
  WaveArguments wave;
  std::string directory;  ///< empty = write no files
  bool force = false;
  bool json = false;
  bool sweep = false;
};

/// Part `index` (from 1) of `count`.
struct Shard {
  std::uint64_t index = 1;
  std::uint64_t count = 1;
};

/// What all commands that run a study have in common.
struct StudyArguments {
  std::string study;
  std::string directory;  ///< empty = runs/<name of the study>
  std::size_t jobs = 0;   ///< 0 = one for each processor
  bool retry_failed = false;
  bool force = false;
  bool quiet = false;
};

struct SweepArguments : StudyArguments {
  Shard shard;
  std::vector<std::string> merge;  ///< directories of sweeps whose results are taken over instead of running anything
  bool keep_runs = false;
};

struct ValidateArguments : StudyArguments {
  bool json = false;
};

struct SearchArguments {
  ScenarioArguments scenario;
  PlanSearchOptions options;
  std::string directory;  ///< empty = runs/<name of the scenario>-search
  bool force = false;
  bool quiet = false;
};

struct AdviseArguments {
  std::string wafer = "temp-wafer";  ///< preset
  std::vector<std::string> models = {"gpt3-6.7b", "gpt3-13b", "llama2-70b", "gpt3-76b", "gpt3-175b"};  ///< presets
  std::vector<std::uint64_t> sequences = {2048, 16384};
  std::uint64_t tokens = 262'144;  ///< of an iteration
  std::vector<std::string> overrides;  ///< of all scenarios, "key=value"
  PlanSearchOptions options;
  std::string directory;  ///< empty = runs/advice-<wafer>
  bool confirm = false;
  bool json = false;
  bool force = false;
  bool quiet = false;
};

struct CompareArguments {
  std::vector<std::string> runs;  ///< directories, at least two
  std::string html;               ///< of the page; empty = no page
  bool json = false;
};

struct WhatIfArguments {
  ScenarioArguments scenario;        ///< or the directory of a run
  std::vector<std::string> changes;  ///< as analysis::parse_change() reads them
  std::string directory;             ///< empty = RUN_DIR/whatif or runs/NAME-whatif
  bool json = false;
};

struct CollectiveArguments {
  ScenarioArguments scenario;
  bool json = false;
};

struct KernelArguments {
  ScenarioArguments scenario;
  bool json = false;
};

struct PresetsArguments {};

/// The command line was answered in parsing it: help, version, or an error of use that has been printed.
struct Answered {
  int status = 0;
};

using Command = std::variant<RunArguments, ReportArguments, PlotArguments, CheckArguments, TopologyArguments, TrafficArguments,
                             SweepArguments, ValidateArguments, SearchArguments, AdviseArguments, CompareArguments,
                             WhatIfArguments, CollectiveArguments, KernelArguments, PresetsArguments, Answered>;

Command parse_command_line(int argc, char** argv);

}  // namespace wafersim::apps
