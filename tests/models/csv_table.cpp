#include "tests/models/csv_table.h"

#include <cmath>
#include <fstream>
#include <stdexcept>

namespace wafersim::test {
namespace {

std::vector<std::string> split_line(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

std::vector<CsvRow> read_reference(const std::string& name) {
  const std::string path = std::string(WAFERSIM_SOURCE_DIR) + "/tests/reference/" + name;
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) throw std::runtime_error("cannot read " + path);
  const std::vector<std::string> header = split_line(line);
  std::vector<CsvRow> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = split_line(line);
    if (fields.size() != header.size()) throw std::runtime_error(path + ": ragged row: " + line);
    CsvRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < header.size(); ++i) row[header[i]] = fields[i];
  }
  return rows;
}

const CsvRow& row_where(const std::vector<CsvRow>& rows, const std::string& column,
                        const std::string& value) {
  for (const CsvRow& row : rows) {
    if (row.at(column) == value) return row;
  }
  throw std::runtime_error("no row with " + column + " = " + value);
}

double half_last_digit(const std::string& text) {
  const std::size_t point = text.find('.');
  const std::size_t places = point == std::string::npos ? 0 : text.size() - point - 1;
  return 0.5 * std::pow(10.0, -static_cast<double>(places));
}

}  // namespace wafersim::test
