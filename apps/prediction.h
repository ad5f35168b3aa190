#pragma once

#include "analysis/link_calibration.h"
#include "analysis/step_schedule.h"
#include "apps/command_line.h"
#include "apps/prepared_run.h"
#include "base/error.h"

namespace wafersim::apps {

/// The iterations of a scenario as the analytic model sees them, on a machine whose links are better or worse by `factors`.
analysis::Prediction predict(const PreparedRun& run, models::CostModel model, const analysis::LinkFactors& factors = {});

/// `wafersim run` with network.fidelity: analytic. Throws Error for options that need a simulation.
ExitStatus run_prediction(const RunArguments& arguments, const PreparedRun& run, const std::string& directory);

}  // namespace wafersim::apps
