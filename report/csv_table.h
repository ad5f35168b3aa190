#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wafersim::report {

/// A table of a run, read back: a line of names, then rows of as many cells.
class CsvTable {
 public:
  /// Throws IoError when the file cannot be read or a row has not as many cells as there are names.
  explicit CsvTable(const std::filesystem::path& path);
  /// Nothing when there is no such file.
  static std::optional<CsvTable> if_there(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::size_t rows() const { return names_.empty() ? 0 : cells_.size() / names_.size(); }
  /// Throws IoError that names the file when no column has this name.
  std::size_t column(std::string_view name) const;
  bool has(std::string_view name) const;
  std::string_view text(std::size_t row, std::size_t column) const {
    return cells_[row * names_.size() + column];
  }
  /// Throws IoError with file and line when the cell is no whole number.
  std::uint64_t whole(std::size_t row, std::size_t column) const;
  /// Throws IoError with file and line when the cell is no number of at least 0.
  double number(std::size_t row, std::size_t column) const;
  /// The whole number, or -1 in an empty cell.
  std::int64_t index(std::size_t row, std::size_t column) const;

 private:
  [[noreturn]] void fail(std::size_t row, const std::string& message) const;

  std::filesystem::path path_;
  std::unique_ptr<std::string> text_;  ///< what the cells refer to
  std::vector<std::string_view> names_;
  std::vector<std::string_view> cells_;
};

/// The whole file. Throws IoError.
std::string read_file(const std::filesystem::path& path);

}  // namespace wafersim::report
