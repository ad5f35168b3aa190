#include "base/csv.h"

#include <charconv>

namespace wafersim {

std::vector<CsvCell> csv_cells(std::string_view line) {
  std::vector<CsvCell> cells;
  for_each_csv_cell(line, [&cells](const CsvCell& cell) { cells.push_back(cell); });
  return cells;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace wafersim
