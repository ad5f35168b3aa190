#pragma once

#include <map>
#include <string>
#include <string_view>

namespace wafersim::report {

/// Text as it stands in SVG and HTML.
std::string escaped(std::string_view text);

/// 1, 2, 5 or 10 times a power of ten: the smallest of which `span`, above 0, has at most `ticks`.
double nice_step(double span, int ticks = 6);

/// Style of text that crosses lines: a white rim keeps them away from the letters.
inline constexpr const char* kTextRim = "paint-order=\"stroke\" stroke=\"white\" stroke-width=\"4\"";

/// An SVG picture on white, written from the back to the front. Styles are attributes as SVG has them. Equal calls give
/// equal bytes. Private to this folder.
class Svg {
 public:
  /// `width` and `height` in `unit` ("px", "pt"), which is also that of every coordinate and of `font_size`.
  Svg(double width, double height, std::string_view unit, double font_size);

  /// What programs that read pictures aloud say.
  void title(std::string_view text);
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void rect(double x, double y, double width, double height, std::string_view fill, std::string_view style = "");
  /// `anchor`: the part of the text that is at x: "start", "middle" or "end". y is the base line.
  void text(double x, double y, std::string_view anchor, std::string_view text, std::string_view style = "");
  /// Text that reads upwards, its middle at (x, y).
  void text_upwards(double x, double y, std::string_view text);
  /// Any other element.
  void raw(std::string_view element);
  /// The finished picture.
  std::string take();

 private:
  std::string svg_;
};

/// Very many rectangles: one path for each colour keeps the picture small.
class SvgBoxes {
 public:
  void add(const std::string& colour, double x, double y, double width, double height);
  /// One subpath for each rectangle, colours in the order of their names; `of` becomes the class of the paths.
  void draw(Svg& svg, std::string_view of) const;

 private:
  std::map<std::string, std::string> paths_;  ///< by colour
};

}  // namespace wafersim::report
