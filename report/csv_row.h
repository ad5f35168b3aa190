#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "base/text.h"
#include "report/atomic_file.h"
#include "report/pieces.h"

namespace wafersim::report {

/// A text as a cell: in quotes where a comma, quote or line break is inside.
inline std::string csv_cell(const std::string& text) {
  return text.find_first_of(",\"\n") == std::string::npos ? text : quoted(text);
}

/// One line of a table under construction; cells are separated by commas. No cell holds a comma or a quote.
class Row {
 public:
  template <class Value>
  Row& cell(const Value& value) {
    separate();
    if constexpr (Piece<Value>) {
      append_pieces(text_, value);
    } else {
      fmt::format_to(std::back_inserter(text_), "{}", value);
    }
    return *this;
  }
  Row& fraction(std::uint64_t part, std::uint64_t whole) {
    separate();
    const double value = whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
    fmt::format_to(std::back_inserter(text_), "{:.6f}", value);
    return *this;
  }
  Row& mean(double value) {
    separate();
    fmt::format_to(std::back_inserter(text_), "{:.3f}", value);
    return *this;
  }
  /// An index that does not apply (negative) leaves its cell empty.
  Row& index(std::int64_t value) { return value < 0 ? cell("") : cell(value); }

  void end(AtomicFile& file) {
    text_.push_back('\n');
    file.write({text_.data(), text_.size()});
    text_.clear();
    first_ = true;
  }

 private:
  void separate() {
    if (!first_) text_.push_back(',');
    first_ = false;
  }

  fmt::memory_buffer text_;
  bool first_ = true;
};

}  // namespace wafersim::report
