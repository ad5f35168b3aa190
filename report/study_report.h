#pragma once

#include <string>
#include <vector>

#include "report/study_database.h"

namespace wafersim::report {

/// One row for each point: number, status, the value of each key that points set, each measure, message. Keys and measures in
/// alphabetical order; what a point does not have is empty.
std::string study_csv(const std::vector<PointRow>& rows);

/// How many points there are and what became of them, the best ten of a study of runs (most tokens per second first) or the points
/// of a study of traffic in order, and why others failed.
std::string study_text(const StudyHeader& header, const std::vector<PointRow>& rows);

}  // namespace wafersim::report
