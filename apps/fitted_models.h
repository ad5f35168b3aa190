#pragma once

#include <optional>

#include "analysis/link_calibration.h"
#include "apps/prepared_run.h"
#include "config/study.h"
#include "report/trial_report.h"

namespace wafersim::apps {

/// What a model of ours says of a scenario, with factors for its links.
report::TrialAnswer own_answer(const PreparedRun& run, models::CostModel model, const analysis::LinkFactors& factors = {});

/// A model with factors for its parts, or for all its cycles where it does not tell them, fitted on every second of its
/// answers; it answers for the others only. Nothing where it has fewer than 20 answers.
std::optional<report::TrialModel> fitted(const report::Trial& trial, const report::TrialModel& model);

/// `model`, which is `own` of ours, with factors for the latency and the bandwidth of links (analysis::LinkFactors), fitted on
/// at most 64 of these answers, evenly chosen; it is asked again for the others. Nothing where there are fewer than 20 answers,
/// where `own` knows of no messages, and when it is interrupted. Throws as PreparedRun does.
std::optional<report::TrialModel> calibrated(const config::Study& study, const report::Trial& trial,
                                             const report::TrialModel& model, models::CostModel own);

}  // namespace wafersim::apps
