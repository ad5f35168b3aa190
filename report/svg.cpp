#include "report/svg.h"

#include <fmt/format.h>

#include <cmath>

namespace wafersim::report {
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += c;
    }
  }
  return result;
}

double nice_step(double span, int ticks) {
  const double rough = span / ticks;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

Svg::Svg(double width, double height, std::string_view unit, double font_size)
    : svg_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.6g} {1:.6g}\" width=\"{0:.6g}{2}\" "
                       "height=\"{1:.6g}{2}\" font-family=\"sans-serif\" font-size=\"{3:g}\">\n"
                       "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                       width, height, unit, font_size)) {}

void Svg::title(std::string_view text) { svg_ += fmt::format("<title>{}</title>\n", escaped(text)); }

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
  svg_ += fmt::format("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" {}/>\n", x1, y1, x2, y2, style);
}

void Svg::rect(double x, double y, double width, double height, std::string_view fill, std::string_view style) {
  svg_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.3f}\" height=\"{:.3f}\" fill=\"{}\" {}/>\n", x, y, width,
                      height, fill, style);
}

void Svg::text(double x, double y, std::string_view anchor, std::string_view text, std::string_view style) {
  svg_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, style, escaped(text));
}

void Svg::text_upwards(double x, double y, std::string_view text) {
  svg_ += fmt::format("<text transform=\"translate({:.2f} {:.2f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", x, y,
                      escaped(text));
}

void Svg::raw(std::string_view element) { svg_.append(element).append("\n"); }

std::string Svg::take() {
  svg_ += "</svg>\n";
  return std::move(svg_);
}

void SvgBoxes::add(const std::string& colour, double x, double y, double width, double height) {
  paths_[colour] += fmt::format("M{:.2f} {:.2f}h{:.3f}v{:.3f}h-{:.3f}z", x, y, width, height, width);
}

void SvgBoxes::draw(Svg& svg, std::string_view of) const {
  for (const auto& [colour, path] : paths_) {
    svg.raw(fmt::format("<path class=\"{}\" fill=\"{}\" d=\"{}\"/>", of, colour, path));
  }
}

}  // namespace wafersim::report
