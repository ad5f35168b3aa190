#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/critical_path.h"
#include "apps/child_processes.h"
#include "apps/commands.h"
#include "apps/console.h"
#include "apps/directory_name.h"
#include "apps/interrupt.h"
#include "apps/machine_change.h"
#include "base/error.h"
#include "base/text.h"
#include "config/scenario.h"
#include "report/atomic_file.h"
#include "report/path_file.h"
#include "report/run_directory.h"
#include "report/run_tables.h"
#include "report/what_if_report.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBase = "base";

/// The run that is asked about: where its results are, and a scenario file that means the same.
struct Base {
  fs::path directory;
  std::string scenario;
};

/// Runs this program; throws what it said when it fails. False when it was interrupted.
bool run_child(const std::vector<std::string>& words, const fs::path& log) {
  ChildProcesses children;
  children.start(0, words, log);
  std::optional<ChildProcesses::Ended> ended;
  while (!ended && !InterruptGuard::interrupted()) ended = children.wait();
  if (!ended) {
    children.end_all();
    return false;
  }
  const std::string said = ended->status == 0 ? "" : error_of(log, ended->status);
  fs::remove(log);
  if (ended->status == 0) return true;
  if (ended->status == static_cast<int>(ExitStatus::interrupted)) return false;
  throw Error(static_cast<ExitStatus>(ended->status), "wafersim " + join(words, " ") + ": " + said);
}

std::vector<std::string> run_words(const std::string& scenario, const fs::path& directory,
                                   const std::vector<std::string>& overrides) {
  std::vector<std::string> words = {"run", scenario, "--quiet", "-o", directory.string()};
  for (const std::string& text : overrides) {
    words.emplace_back("--set");
    words.push_back(text);
  }
  return words;
}

fs::path directory_of(const WhatIfArguments& arguments) {
  if (!arguments.directory.empty()) return arguments.directory;
  if (fs::is_directory(arguments.scenario.path)) return fs::path(arguments.scenario.path) / "whatif";
  const config::Scenario scenario =
      config::load_scenario(arguments.scenario.path, {arguments.scenario.overrides, {}});
  return fs::path("runs") / (directory_name(scenario.name) + "-whatif");
}

/// A finished run brings its scenario in its summary; overrides would make it another run.
Base finished_run(const WhatIfArguments& arguments, const fs::path& directory) {
  if (!arguments.scenario.overrides.empty()) {
    throw Error(ExitStatus::scenario,
                "--set is for scenarios: " + arguments.scenario.path + " is a finished run");
  }
  const fs::path run = arguments.scenario.path;
  if (!fs::exists(run / report::kPathFile)) {
    throw IoError(
        fmt::format("{} has no {}; run its scenario with --critical-path", run.string(), report::kPathFile));
  }
  const fs::path scenario = directory / "scenario.yaml";
  report::write_file(scenario, report::read_summary(run).at("scenario").dump(2) + "\n");
  return {run, scenario.string()};
}

std::optional<Base> base_of(const WhatIfArguments& arguments, const fs::path& directory) {
  if (fs::is_directory(arguments.scenario.path)) return finished_run(arguments, directory);
  const fs::path run = directory / kBase;
  std::vector<std::string> words = run_words(arguments.scenario.path, run, arguments.scenario.overrides);
  words.emplace_back("--critical-path");
  if (!run_child(words, directory / "base.log")) return std::nullopt;
  return finished_run({{run.string(), {}}, {}, {}, false}, directory);
}

}  // namespace

ExitStatus whatif_command(const WhatIfArguments& arguments) {
  std::vector<analysis::MachineChange> changes;
  for (const std::string& text : arguments.changes) changes.push_back(analysis::parse_change(text));
  const InterruptGuard guard;
  const fs::path directory = directory_of(arguments);
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw IoError("cannot create directory " + directory.string() + ": " + error.message());
  const std::optional<Base> base = base_of(arguments, directory);
  if (!base) return ExitStatus::interrupted;
  const config::Scenario scenario = config::load_scenario(base->scenario);
  const std::vector<sim::PathSegment> segments = report::read_path(base->directory / report::kPathFile);
  report::WhatIfReport result;
  result.base_cycles = report::read_summary(base->directory).at("cycles").get<Cycle>();
  for (const analysis::MachineChange& change : changes) {
    const fs::path run = directory / directory_name(change.name);
    const std::vector<std::string> overrides = overrides_of(change, scenario, base->scenario);
    if (!run_child(run_words(base->scenario, run, overrides), directory / "change.log"))
      return ExitStatus::interrupted;
    result.changes.push_back({analysis::what_if(segments, change), overrides,
                              report::read_summary(run).at("cycles").get<Cycle>()});
  }
  print(arguments.json ? report::what_if_json(result) : report::what_if_text(result, terminal_style()));
  return ExitStatus::done;
}

}  // namespace wafersim::apps
