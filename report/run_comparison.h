#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/terminal.h"

namespace wafersim::report {

/// A run as its directory tells it.
struct FinishedRun {
  std::string label;    ///< how it is called where it stands beside others
  nlohmann::ordered_json summary;
};

/// Reads the runs in these directories, in order. Labels are the shortest ends of their paths that differ. Throws
/// as read_summary() does.
std::vector<FinishedRun> load_runs(const std::vector<std::filesystem::path>& directories);

/// Two or more runs side by side: their measures, each with its difference to the first run's, and the keys of their scenarios
/// that are not the same in all.
std::string comparison_text(const std::vector<FinishedRun>& runs, const TerminalStyle& style);

/// The same for the page: `labels`; `measures` with `title` and `values`, each `text` and `difference`; `keys` with `key` and
/// `values`.
nlohmann::ordered_json comparison_part(const std::vector<FinishedRun>& runs);

/// The same as JSON: `runs` (labels), `measures` and `keys`, each an object of lists with one value a run; null where a run has
/// none.
std::string comparison_json(const std::vector<FinishedRun>& runs);

}  // namespace wafersim::report
