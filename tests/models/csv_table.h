#pragma once

#include <map>
#include <string>
#include <vector>

namespace wafersim::test {

/// One row of a CSV file, by the names of its header.
using CsvRow = std::map<std::string, std::string>;

/// Reads tests/reference/`name`; fields may be quoted. Throws std::runtime_error when the file is missing or
/// a row has another number of fields than the header.
std::vector<CsvRow> read_reference(const std::string& name);

/// The row whose `column` is `value`. Throws std::runtime_error when there is none.
const CsvRow& row_where(const std::vector<CsvRow>& rows, const std::string& column, const std::string& value);

/// Half of the last digit that `text` prints: "66.77" is within 0.005.
double half_last_digit(const std::string& text);

}  // namespace wafersim::test
