#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/plan_search.h"

namespace wafersim::report {

/// Names of the files of an advice; docs/results.md describes their content.
inline constexpr const char* kAdviceTable = "advice.csv";
inline constexpr const char* kAdviceFile = "advice.json";

/// The best plan for a model and a sequence length.
struct AdviceCell {
  std::string model;
  std::uint64_t sequence = 0;
  std::uint64_t parameters = 0;
  std::uint64_t batch = 0;  ///< sequences
  std::optional<analysis::SearchedPlan> best;
  double seconds = 0;  ///< of an iteration
  std::string fault;   ///< why there is no plan
};

struct Advice {
  std::string wafer;
  std::uint64_t tokens = 0;  ///< of an iteration
  bool confirmed = false;    ///< the best were simulated
  std::vector<AdviceCell> cells;
};

/// Model sizes below and from 70 B parameters on, sequences below and from 8192 tokens on, and the plan of each cell.
std::string advice_text(const Advice& advice);
std::string advice_csv(const Advice& advice);
/// One JSON object, indented, with a final newline.
std::string advice_json(const Advice& advice);

}  // namespace wafersim::report
