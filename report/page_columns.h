#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "report/run_tables.h"
#include "report/study_database.h"

namespace wafersim::report {

/// Parts of the data of pages. Private to this folder.
using Json = nlohmann::ordered_json;

/// The causes of cycles, as columns of tables are named: "compute", "exposed_tp", ..., "idle".
const std::vector<std::string>& cycle_kinds();

/// A column as an array of integers.
Json whole_column(const CsvTable& table, std::string_view name);
/// Whether a column of whole numbers is anything but 0.
bool is_used(const CsvTable& table, std::string_view name);
/// Of joules, as an array of numbers; null where energy is not modelled.
Json energy_column(const CsvTable& table);
/// Of the columns `<prefix><name><suffix>` those that are not 0 everywhere, by name.
Json used_columns(const CsvTable& table, const std::vector<std::string>& names, const std::string& prefix,
                  const std::string& suffix);

/// What every run has: summary, mesh, tiles and links.
Json run_part(const RunTables& run);

/// Parts that tell of time: null where they were not recorded.
Json steps_part(const RunTables& run);
Json memory_part(const RunTables& run);
Json windows_part(const RunTables& run);
Json spans_part(const RunTables& run);
Json bubbles_part(const RunTables& run);
Json path_part(const RunTables& run);

/// The points of a study, by column: settings and measures are null where a point has none.
Json study_part(const StudyHeader& header, const std::vector<PointRow>& rows);

}  // namespace wafersim::report
