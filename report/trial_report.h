#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/link_calibration.h"
#include "analysis/model_trial.h"
#include "report/study_database.h"

namespace wafersim::report {

/// Files of `wafersim validate`, beside those of a sweep.
inline constexpr const char* kTrialPoints = "predictions.csv";
inline constexpr const char* kTrialModels = "models.csv";
inline constexpr const char* kTrialFile = "validation.json";
inline constexpr const char* kTrialPage = "report.html";

/// A simulated point of a study.
struct TrialPoint {
  std::uint64_t number = 0;
  std::vector<StudySetting> settings;
  double cycles = 0;
  analysis::CycleParts parts{};         ///< its cycles by what they are spent on
  std::string bound;                    ///< the axis whose messages are exposed most, or "compute"
  double link_load = 0;                 ///< utilization of the most used link
  double queueing = 0;                  ///< cycles that packets wait for that link, for each cycle that it is busy
  std::optional<double> message_bytes;  ///< of a message on the average
  std::size_t group = 0;                ///< points with equal numbers differ in keys of the plan only
};

/// The point that a summary.json describes; number, settings, message size and group are the caller's. Throws IoError when it
/// has no cycles or breakdown.
TrialPoint trial_point(const std::string& summary);
/// cycles x breakdown of a summary.json or of a user's answer. Throws IoError when it lacks a part.
analysis::CycleParts cycle_parts(const std::string& json);

struct TrialAnswer {
  std::optional<double> cycles;
  std::optional<analysis::CycleParts> parts;
  std::string fault;      ///< why there are no cycles
  bool left_out = false;  ///< not asked on purpose: it was used to fit the model
};

struct TrialModel {
  std::string name;
  std::vector<TrialAnswer> answers;             ///< by point
  std::optional<analysis::CycleParts> factors;  ///< of a fitted model
  std::optional<analysis::LinkFactors> links;   ///< of a calibrated one
};

struct Trial {
  std::string name;  ///< of the study
  std::size_t failed_points = 0;
  std::vector<TrialPoint> points;
  std::vector<TrialModel> models;
};

/// The numbers of a model, of the points that it has an answer for.
struct TrialScores {
  analysis::ErrorStatistics errors;
  analysis::ChoiceStatistics choices;
  std::size_t faults = 0;
};
TrialScores scores(const Trial& trial, const TrialModel& model);

/// The errors of a model on the points that have something in common.
struct TrialClass {
  std::string by;  ///< "bound by", "link load", "plan.tp"
  std::string value;
  analysis::ErrorStatistics errors;
};
std::vector<TrialClass> classes(const Trial& trial, const TrialModel& model);

/// A point that a model is far off, and the part of its cycles that is furthest off where the model tells them.
struct TrialFailure {
  std::size_t point = 0;  ///< into Trial::points
  double error = 0;
  std::optional<analysis::CyclePart> part;
  double part_predicted = 0, part_simulated = 0;
};
std::vector<TrialFailure> worst_points(const Trial& trial, const TrialModel& model, std::size_t count = 10);

std::string trial_points_csv(const Trial& trial);
std::string trial_models_csv(const Trial& trial);
std::string trial_json(const Trial& trial);
/// For the terminal.
std::string trial_text(const Trial& trial);
/// One page that needs no other file: tables, scatter and residual plots.
std::string trial_page(const Trial& trial);

}  // namespace wafersim::report
