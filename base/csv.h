#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace wafersim {

/// Without blanks at either end; a carriage return counts as one.
std::string_view trimmed(std::string_view text);

/// A value between two commas, trimmed.
struct CsvCell {
  std::string_view text;
  int column = 1;  ///< of what follows the comma before it, from 1
};
/// The cells of a line without quotes. They refer to `line`.
std::vector<CsvCell> csv_cells(std::string_view line);

/// The number that `text` is all of; nothing when it is none, or above 64 bits.
std::optional<std::uint64_t> whole_number(std::string_view text);

}  // namespace wafersim
