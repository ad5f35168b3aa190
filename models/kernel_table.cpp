#include "models/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/error.h"

namespace wafersim::models {
namespace {

constexpr std::string_view kHeader = "batch,m,n,k,cycles";
constexpr std::array<const char*, 5> kColumns = {"batch", "m", "n", "k", "cycles"};
using Row = std::array<std::uint64_t, kColumns.size()>;

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  KernelTable read() {
    std::ifstream file(path_);
    if (!file) throw IoError(fmt::format("{}: cannot read the kernel table", path_));
    std::string line;
    bool header_seen = false;
    while (std::getline(file, line)) {
      ++line_;
      if (trimmed(line).empty()) continue;
      if (header_seen) {
        add_row(line);
      } else {
        check_header(line);
        header_seen = true;
      }
    }
    if (file.bad()) throw IoError(fmt::format("{}: reading the kernel table failed", path_));
    if (!header_seen)
      report(1, "", fmt::format("the table is empty; it starts with the header '{}'", kHeader));
    if (!problems_.empty()) throw ScenarioError(problems_);
    return std::move(table_);
  }

 private:
  void report(int column, const std::string& name, std::string message) {
    problems_.push_back({{path_, std::max(line_, 1), column}, name, std::move(message)});
  }

  void check_header(std::string_view line) {
    if (trimmed(line) == kHeader) return;
    report(1, "", fmt::format("the header is '{}'; it must be '{}'", trimmed(line), kHeader));
  }

  void add_row(std::string_view line) {
    const std::vector<CsvCell> fields = csv_cells(line);
    if (fields.size() != kColumns.size()) {
      report(1, "", fmt::format("{} fields; a row has {} ({})", fields.size(), kColumns.size(), kHeader));
      return;
    }
    Row row{};
    bool valid = true;
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      const std::optional<std::uint64_t> value = whole_number(fields[i].text);
      if (value && *value > 0) {
        row[i] = *value;
      } else {
        report(fields[i].column, kColumns[i],
               fmt::format("'{}' is not a whole number above 0", fields[i].text));
        valid = false;
      }
    }
    if (valid && !table_.emplace(GemmShape{row[0], row[1], row[2], row[3]}, row[4]).second) {
      report(1, "", "this shape is already in the table");
    }
  }

  std::string path_;
  int line_ = 0;
  KernelTable table_;
  std::vector<Problem> problems_;
};

}  // namespace

KernelTable read_kernel_table(const std::string& path) { return Reader(path).read(); }

}  // namespace wafersim::models
