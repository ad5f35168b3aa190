#include "base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace wafersim {
namespace {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// Three significant digits, without an exponent.
std::string three_digits(double value) {
  const int places = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}", value, places);
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    const bool nothing_in_common = distance >= std::max(word.size(), candidate.size());
    if (distance < best_distance && !nothing_in_common) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string join(const std::vector<std::string>& words, const std::string& separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::string quoted(const std::string& text, char quote) {
  std::string result(1, quote);
  for (const char c : text) result.append(c == quote ? 2 : 1, c);
  return result + quote;
}

std::string human_bytes(Bytes bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < units.size()) value /= 1024, ++unit;
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{} {}", three_digits(value), units[unit]);
}

std::string human_seconds(double seconds) {
  // A value that rounds up to 1 of the next prefix is written with that prefix: "1.00 s", not "1000 ms".
  if (seconds >= 0.9995) return three_digits(seconds) + " s";
  if (seconds >= 0.9995e-3) return three_digits(seconds * 1e3) + " ms";
  if (seconds >= 0.9995e-6) return three_digits(seconds * 1e6) + " us";
  return three_digits(seconds * 1e9) + " ns";
}

std::string human_unit(double value, const std::string& unit) {
  constexpr std::array prefixes = {"p", "n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  if (value == 0) return "0 " + unit;
  double scaled = value * 1e12;
  std::size_t prefix = 0;
  while (scaled >= 999.5 && prefix + 1 < prefixes.size()) scaled /= 1000, ++prefix;
  return three_digits(scaled) + " " + prefixes[prefix] + unit;
}

std::string human_count(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

}  // namespace wafersim
