#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/terminal.h"

namespace wafersim::report {

/// Colours by meaning. Private to this folder, like the rest of this file.
enum class Ink {
  plain,
  title,
  dim,
  warning,
  compute,
  communication,
  bubble,
  memory,
  idle,
  heat1,
  heat2,
  heat3,
  heat4
};

/// One part of a stacked bar.
struct Segment {
  Ink ink;
  std::string glyph;
  std::string label;
  double fraction;
};

/// Text of several lines under construction, with the glyphs and colours of a style.
class Canvas {
 public:
  explicit Canvas(const TerminalStyle& style);

  int width() const { return width_; }
  /// Picks the glyph of the style.
  std::string glyph(const char* unicode, const char* ascii) const { return unicode_ ? unicode : ascii; }
  std::string paint(Ink ink, std::string_view text) const;

  void line(std::string_view text = {});
  /// A blank line and a section's title.
  void section(std::string_view title);
  /// Words side by side, in as many lines as the width asks for. `visible` columns of each are given because
  /// colours take none.
  void wrapped(const std::vector<std::pair<std::string, std::size_t>>& words);
  /// A bar of the whole width and its legend.
  void stacked_bar(const std::vector<Segment>& segments);
  /// `fraction` of `columns` filled, 0..1; something greater than zero shows at least one cell.
  std::string bar(Ink ink, double fraction, int columns) const;

  std::string take() { return std::move(text_); }

 private:
  bool colour_;
  bool unicode_;
  int width_;
  std::string text_;
};

std::string repeated(std::string_view glyph, std::size_t count);
/// "43.2 %"; "<0.1 %" for what would round to nothing.
std::string percent(double fraction);
/// "4.52 M": three significant digits with a decimal prefix.
std::string with_prefix(double value);

}  // namespace wafersim::report
