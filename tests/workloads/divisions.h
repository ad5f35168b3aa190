#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "workloads/plan_words.h"

namespace wafersim::workloads {

/// Degrees that divide the tiles of a model group.
inline std::vector<OperatorDegrees> divisions(int tiles) {
  std::vector<OperatorDegrees> all;
  for (int tp = 1; tp <= tiles; ++tp) {
    if (tiles % tp == 0) all.push_back({tp, tiles / tp});
  }
  return all;
}

/// Those of a plan and of its operators, for messages of tests.
inline std::string text_of_cuts(const PlanSpec& plan) {
  std::string result;
  for (const Cut cut : {Cut::plan, Cut::attention, Cut::mlp}) {
    result += fmt::format("{} tp {} tatp {}, ", to_string(cut), plan.degrees(cut).tp, plan.degrees(cut).tatp);
  }
  return result + to_string(plan.sp);
}

}  // namespace wafersim::workloads
