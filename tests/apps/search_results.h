#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "tests/apps/program.h"

namespace wafersim::testing {

/// A model of four layers on 4x4 tiles: a plan is predicted and simulated in no time.
extern const char* const kSearchScenario;
/// Presets for advice: small-wafer, and the models small-gpt, which fits on it, and huge-gpt, which does not.
void write_advice_presets(const Workplace& place);

/// A row of search.csv by column.
struct SearchRow {
  std::map<std::string, std::string> cells;
  const std::string& at(const std::string& column) const { return cells.at(column); }
  std::uint64_t number(const std::string& column) const { return std::stoull(at(column)); }
};
/// The rows of a table whose cells may be quoted.
std::vector<SearchRow> search_rows(const std::string& csv);
const SearchRow& fastest_simulated(const std::vector<SearchRow>& rows);

}  // namespace wafersim::testing
