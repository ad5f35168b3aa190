#pragma once

#include <string>
#include <vector>

#include "apps/prepared_run.h"

namespace wafersim::apps {

/// What a user should know before believing the results: buffers that no tile has, memory that may overflow.
std::vector<std::string> warnings_of(const PreparedRun& run);

}  // namespace wafersim::apps
