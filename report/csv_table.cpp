#include "report/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <vector>

#include "base/csv.h"
#include "base/error.h"

namespace wafersim::report {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code no_size;  // of what is no regular file
  const std::uintmax_t size = std::filesystem::file_size(path, no_size);
  std::string text(no_size ? 0 : size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  for (std::array<char, 4096> part; file.read(part.data(), part.size()) || file.gcount() > 0;) {
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) throw IoError(fmt::format("cannot read {}", path.string()));
  return text;
}

CsvTable::CsvTable(const std::filesystem::path& path)
    : path_(path), text_(std::make_unique<std::string>(read_file(path))) {
  std::string_view rest = *text_;
  for (std::size_t line = 0; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::vector<std::string_view>& to = line == 0 ? names_ : cells_;
    const std::size_t before = to.size();
    for_each_csv_cell(rest.substr(0, end), [&to](const CsvCell& cell) { to.push_back(cell.text); });
    if (line == 0) cells_.reserve(static_cast<std::size_t>(std::count(rest.begin(), rest.end(), '\n')) * names_.size());
    if (line > 0 && to.size() - before != names_.size()) {
      fail(line - 1, fmt::format("{} cells, the first line has {}", to.size() - before, names_.size()));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

std::optional<CsvTable> CsvTable::if_there(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  return CsvTable(path);
}

std::size_t CsvTable::column(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) {
    throw IoError(fmt::format(
        "cannot use {}: it has no column '{}'; another version of wafersim wrote it, or another program",
        path_.string(), name));
  }
  return static_cast<std::size_t>(found - names_.begin());
}

bool CsvTable::has(std::string_view name) const { return std::find(names_.begin(), names_.end(), name) != names_.end(); }

std::uint64_t CsvTable::whole(std::size_t row, std::size_t column) const {
  if (const auto value = whole_number(text(row, column))) return *value;
  fail(row, fmt::format("{}: '{}' is no whole number", names_[column], text(row, column)));
}

double CsvTable::number(std::size_t row, std::size_t column) const {
  const std::string_view cell = text(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error == std::errc{} && end == cell.data() + cell.size() && value >= 0) return value;
  fail(row, fmt::format("{}: '{}' is no number of at least 0", names_[column], cell));
}

std::int64_t CsvTable::index(std::size_t row, std::size_t column) const {
  return text(row, column).empty() ? -1 : static_cast<std::int64_t>(whole(row, column));
}

void CsvTable::fail(std::size_t row, const std::string& message) const {
  throw IoError(fmt::format("cannot use {}:{}: {}", path_.string(), row + 2, message));
}

}  // namespace wafersim::report
