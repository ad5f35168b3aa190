#include "report/what_if_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/terminal_canvas.h"
#include "report/terminal_path.h"

namespace wafersim::report {
std::string what_if_text(const WhatIfReport& report, const TerminalStyle& style) {
  Canvas canvas(style);
  canvas.line(fmt::format("{} cycles as it is", human_count(report.base_cycles)));
  canvas.line();
  canvas.line(canvas.paint(Ink::dim,
                           fmt::format("  {:<18}{:<28}{:<28}{:<18}{}", "change", "bound by the critical path",
                                       "with its waits kept", "simulated", "cycles")));
  bool below = false;
  for (const WhatIfReport::Change& change : report.changes) {
    below = below || change.simulated < change.predicted.at_least;
    canvas.line(fmt::format("  {:<18}{:<28}{:<28}{:<18}{}", change.predicted.change.name,
                            bound_text(change.predicted.at_least, report.base_cycles),
                            change_text(change.predicted.with_waits, report.base_cycles),
                            change_text(change.simulated, report.base_cycles),
                            human_count(change.simulated)));
  }
  if (below) {
    canvas.line(canvas.paint(Ink::warning,
                             "A run beyond its bound did other operations or did them in another order: what "
                             "is `auto` in the plan "
                             "may be chosen anew, and reductions start as their operands come."));
  }
  return canvas.take();
}

std::string what_if_json(const WhatIfReport& report) {
  nlohmann::ordered_json json;
  json["base_cycles"] = report.base_cycles;
  json["changes"] = nlohmann::ordered_json::array();
  for (const WhatIfReport::Change& change : report.changes) {
    json["changes"].push_back({{"change", change.predicted.change.name},
                               {"keys", change.overrides},
                               {"at_least_cycles", change.predicted.at_least},
                               {"with_waits_cycles", change.predicted.with_waits},
                               {"simulated_cycles", change.simulated}});
  }
  return json.dump(2) + "\n";
}

}  // namespace wafersim::report
