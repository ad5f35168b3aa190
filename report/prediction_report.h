#pragma once

#include <string>

#include "report/summary_json.h"
#include "topology/link_loads.h"

namespace wafersim::report {

/// A prediction instead of a run. `run.measurements` says no more than what it cost to make; `loads` are the bytes of an
/// iteration by link.
struct PredictionContext {
  const RunContext& run;
  const topology::ExpectedLoads& loads;
};

/// summary.json with the keys of a run; `null` where a prediction has no value (docs/model-analytic.md).
std::string prediction_text(const PredictionContext& prediction);
/// What the terminal shows.
std::string prediction_summary(const PredictionContext& prediction);

}  // namespace wafersim::report
