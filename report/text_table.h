#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace wafersim::report {

/// Rows of as many cells each.
using Table = std::vector<std::vector<std::string>>;

/// A line for each row, two blanks before each column. Columns from `right` on stand right, those before it left.
std::string aligned(const Table& table, std::size_t right);

}  // namespace wafersim::report
