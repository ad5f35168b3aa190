#pragma once

#include <string>

#include "report/run_tables.h"

namespace wafersim::report {

/// What the page of a run shows, as one JSON text. Columns are arrays; loads over time are base64 of 255ths.
/// Keys: the top of report/web/data.js.
std::string page_data(const RunTables& run);

}  // namespace wafersim::report
