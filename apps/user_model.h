#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "analysis/model_trial.h"
#include "config/study.h"

namespace wafersim::apps {

/// What a model says of one point.
struct ModelAnswer {
  std::optional<double> cycles;               ///< absent when it has failed
  std::optional<analysis::CycleParts> parts;  ///< cycles by what they are spent on, where it says so
  std::string fault;                          ///< why there are no cycles
};

/// Reads a user's table of predictions: a header with the columns `point` and `cycles` in any order, then a row for each point.
class PredictionTable {
 public:
  /// Throws IoError when the file cannot be read or lacks the columns. A row with something else than a number is kept as a
  /// fault of its point.
  explicit PredictionTable(const std::filesystem::path& path);
  ModelAnswer answer(std::uint64_t point) const;

 private:
  std::filesystem::path path_;
  std::map<std::uint64_t, ModelAnswer> answers_;
};

/// Runs a user's program for one point, in `directory`, with the resolved scenario as JSON on its standard input and the number
/// of the point in the environment variable WAFERSIM_POINT. It prints the cycles of an iteration, or a JSON object {"cycles":
/// N} that may have a "breakdown" as summary.json has. A crash, a hang (ended after the model's timeout) and other output are
/// faults.
ModelAnswer ask_program(const config::StudyModel& model, const std::filesystem::path& directory, std::uint64_t point,
                        const std::string& scenario);

/// What a program has printed; `text` may be anything.
ModelAnswer parse_answer(const std::string& text);

}  // namespace wafersim::apps
