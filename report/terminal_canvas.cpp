#include "report/terminal_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace wafersim::report {
namespace {

constexpr int kIndent = 2;
constexpr int kNarrowest = 72;
constexpr int kWidest = 100;

/// Select-graphic-rendition parameters; the 256-colour ones are readable on light and on dark grounds.
const char* parameters(Ink ink) {
  switch (ink) {
    case Ink::plain:
      return "0";
    case Ink::title:
      return "1";
    case Ink::dim:
      return "2";
    case Ink::warning:
      return "1;38;5;166";
    case Ink::compute:
      return "38;5;35";
    case Ink::communication:
      return "38;5;166";
    case Ink::bubble:
      return "38;5;68";
    case Ink::memory:
      return "38;5;133";
    case Ink::idle:
      return "38;5;245";
    case Ink::heat1:
      return "38;5;25";
    case Ink::heat2:
      return "38;5;37";
    case Ink::heat3:
      return "38;5;178";
    case Ink::heat4:
      return "38;5;160";
  }
  return "0";
}

/// Cells of each segment, by largest remainder: they sum to `columns` when the fractions sum to one.
std::vector<int> share_cells(const std::vector<Segment>& segments, int columns) {
  std::vector<int> cells;
  std::vector<double> remainders;
  for (const Segment& segment : segments) {
    const double exact = segment.fraction * columns;
    cells.push_back(static_cast<int>(std::floor(exact)));
    remainders.push_back(exact - std::floor(exact));
  }
  const int missing = columns - std::accumulate(cells.begin(), cells.end(), 0);
  for (int i = 0; i < missing; ++i) {
    const auto largest = std::max_element(remainders.begin(), remainders.end());
    ++cells[static_cast<std::size_t>(largest - remainders.begin())];
    *largest = -1;
  }
  return cells;
}

}  // namespace

Canvas::Canvas(const TerminalStyle& style)
    : colour_(style.colour), unicode_(style.unicode), width_(std::clamp(style.width, kNarrowest, kWidest)) {}

std::string Canvas::paint(Ink ink, std::string_view text) const {
  if (!colour_ || ink == Ink::plain) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", parameters(ink), text);
}

void Canvas::line(std::string_view text) {
  text_ += text;
  text_ += '\n';
}

void Canvas::section(std::string_view title) {
  line();
  line(paint(Ink::title, title));
}

void Canvas::wrapped(const std::vector<std::pair<std::string, std::size_t>>& words) {
  constexpr std::size_t kGap = 3;
  std::string current(kIndent, ' ');
  std::size_t used = kIndent;
  for (const auto& [word, visible] : words) {
    const bool first = used == kIndent;
    if (!first && used + kGap + visible > static_cast<std::size_t>(width_)) {
      line(current);
      current.assign(kIndent, ' ');
      used = kIndent;
    } else if (!first) {
      current.append(kGap, ' ');
      used += kGap;
    }
    current += word;
    used += visible;
  }
  line(current);
}

void Canvas::stacked_bar(const std::vector<Segment>& segments) {
  const std::vector<int> cells = share_cells(segments, width_ - 2 * kIndent);
  std::string text(kIndent, ' ');
  std::vector<std::pair<std::string, std::size_t>> legend;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    text += paint(segment.ink, repeated(segment.glyph, static_cast<std::size_t>(std::max(cells[i], 0))));
    const std::string caption = fmt::format(" {} {}", segment.label, percent(segment.fraction));
    legend.emplace_back(paint(segment.ink, segment.glyph) + caption, caption.size() + 1);
  }
  line(text);
  wrapped(legend);
}

std::string Canvas::bar(Ink ink, double fraction, int columns) const {
  int filled = static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * columns));
  if (fraction > 0) filled = std::max(filled, 1);
  return paint(ink, repeated(glyph("█", "#"), static_cast<std::size_t>(filled)));
}

std::string repeated(std::string_view glyph, std::size_t count) {
  std::string text;
  text.reserve(glyph.size() * count);
  for (std::size_t i = 0; i < count; ++i) text += glyph;
  return text;
}

std::string percent(double fraction) {
  if (fraction > 0 && fraction < 0.0005) return "<0.1 %";
  return fmt::format("{:.1f} %", 100 * fraction);
}

std::string with_prefix(double value) {
  constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T"};
  std::size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, decimals, kPrefixes[prefix]);
}

}  // namespace wafersim::report
