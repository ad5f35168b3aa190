// What the page of a study shows.
#include "report/page_columns.h"

namespace wafersim::report {

Json study_part(const StudyHeader& header, const std::vector<PointRow>& rows) {
  Json numbers = Json::array(), status = Json::array(), messages = Json::array();
  Json settings = Json::object(), measures = Json::object();
  const auto put = [&rows](Json& columns, const std::string& name, std::size_t row, const Json& value) {
    Json& column = columns[name];
    if (column.is_null()) column = std::vector<Json>(rows.size());
    column[row] = value;
  };
  for (std::size_t row = 0; row < rows.size(); ++row) {
    numbers.push_back(rows[row].number);
    status.push_back(rows[row].status);
    messages.push_back(rows[row].message);
    for (const auto& [key, value] : rows[row].settings) put(settings, key, row, value);
    if (rows[row].result.empty()) continue;
    for (const auto& [name, value] : measures_of(rows[row].result)) put(measures, name, row, value);
  }
  Json fixed = Json::array();
  for (const auto& [key, value] : header.fixed) fixed.push_back({key, value});
  return {{"name", header.name},     {"command", header.command},
          {"fixed", fixed},          {"points", {{"number", numbers}, {"status", status}, {"message", messages}}},
          {"settings", settings},    {"measures", measures}};
}

}  // namespace wafersim::report
