#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace wafersim {

/// Without blanks at either end; a carriage return counts as one.
inline std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// A value between two commas, trimmed.
struct CsvCell {
  std::string_view text;
  int column = 1;  ///< of what follows the comma before it, from 1
};
/// Calls `visit` with each cell of a line without quotes, from left to right. They refer to `line`.
template <class Visit>
void for_each_csv_cell(std::string_view line, const Visit& visit) {
  for (std::size_t begin = 0, end = 0; begin <= line.size(); begin = end + 1) {
    for (end = begin; end < line.size() && line[end] != ','; ++end) {}
    visit(CsvCell{trimmed(line.substr(begin, end - begin)), static_cast<int>(begin) + 1});
  }
}
std::vector<CsvCell> csv_cells(std::string_view line);

/// The number that `text` is all of; nothing when it is none, or above 64 bits.
std::optional<std::uint64_t> whole_number(std::string_view text);

}  // namespace wafersim
