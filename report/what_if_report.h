#pragma once

#include <string>
#include <vector>

#include "analysis/critical_path.h"
#include "report/terminal.h"

namespace wafersim::report {

/// Changes of a machine, as predicted from a critical path and as simulated.
struct WhatIfReport {
  struct Change {
    analysis::WhatIf predicted;
    std::vector<std::string> overrides;  ///< the keys that say it
    Cycle simulated = 0;
  };
  Cycle base_cycles = 0;
  std::vector<Change> changes;
};

std::string what_if_text(const WhatIfReport& report, const TerminalStyle& style);
/// `base_cycles` and `changes`, each with `change`, `keys`, `at_least_cycles`, `with_waits_cycles` and
/// `simulated_cycles`.
std::string what_if_json(const WhatIfReport& report);

}  // namespace wafersim::report
