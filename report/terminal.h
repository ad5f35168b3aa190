#pragma once

#include <string>

#include "report/summary_json.h"

namespace wafersim::report {

/// How the summary is drawn.
struct TerminalStyle {
  bool colour = false;  ///< ANSI colours
  bool unicode = true;  ///< block characters; otherwise plain ASCII
  int width = 96;       ///< columns; taken as at least 72 and at most 100
};

/// What a person wants to know of a run at a glance, as text of several lines: iteration time and rates,
/// where the time went, exposed communication by axis, memory, the hottest links, a map of the mesh, and how
/// fast the simulator was.
std::string terminal_summary(const RunContext& run, const TerminalStyle& style);

}  // namespace wafersim::report
