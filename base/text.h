#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace wafersim {

/// The candidate closest to `word` by edit distance, or empty when none is near enough to be meant.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

/// "a, b, c"
std::string join(const std::vector<std::string>& words, const std::string& separator = ", ");

/// In quotes, those inside doubled.
std::string quoted(const std::string& text, char quote = '"');

/// "12.3 GiB", three significant digits, binary units.
std::string human_bytes(Bytes bytes);

/// "1.42 ms": seconds with three significant digits and a fitting prefix.
std::string human_seconds(double seconds);

/// "1.42 mJ": a value of at least 0 with three significant digits and a prefix from pico to exa.
std::string human_unit(double value, const std::string& unit);

/// "12,345,678"
std::string human_count(std::uint64_t count);

}  // namespace wafersim
