#include "report/latency_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace wafersim::report {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 440;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 44;
constexpr double kBottom = 54;
constexpr int kTicks = 6;

/// 1, 2 or 5 times a power of ten, so that `span` has about kTicks of it.
double nice_step(double span) {
  const double rough = span / kTicks;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

struct Axes {
  double load = 1;     ///< at the right edge
  double latency = 1;  ///< at the top
  double x(double at) const { return kLeft + at / load * (kWidth - kLeft - kRight); }
  double y(double at) const { return kHeight - kBottom - at / latency * (kHeight - kTop - kBottom); }
};

std::string escaped(const std::string& text) {
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

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  // The white rim keeps lines away from letters.
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" paint-order=\"stroke\" stroke=\"white\" "
                     "stroke-width=\"4\">{}</text>\n",
                     x, y, anchor, escaped(text));
}

std::string draw_axes(const Axes& axes) {
  constexpr const char* kGrid = "stroke=\"#e0e0e0\"";
  std::string svg;
  const double right = kWidth - kRight;
  const double bottom = kHeight - kBottom;
  for (double at = 0; at <= axes.latency * 1.0001; at += nice_step(axes.latency)) {
    svg += line(kLeft, axes.y(at), right, axes.y(at), kGrid) + label(kLeft - 8, axes.y(at) + 4, "end", fmt::format("{:g}", at));
  }
  for (double at = 0; at <= axes.load * 1.0001; at += nice_step(axes.load)) {
    svg += line(axes.x(at), kTop, axes.x(at), bottom, kGrid) + label(axes.x(at), bottom + 18, "middle", fmt::format("{:g}", at));
  }
  svg += line(kLeft, bottom, right, bottom, "stroke=\"#333\"") + line(kLeft, kTop, kLeft, bottom, "stroke=\"#333\"");
  svg += label((kLeft + right) / 2, kHeight - 12, "middle", "offered load (flits per tile and cycle)");
  svg += fmt::format("<text transform=\"translate(18 {:.1f}) rotate(-90)\" text-anchor=\"middle\">mean packet latency "
                     "(cycles)</text>\n",
                     (kTop + bottom) / 2);
  return svg;
}

std::string draw_curve(const std::vector<const analysis::LoadPoint*>& points, const Axes& axes) {
  std::string path;
  std::string marks;
  for (const analysis::LoadPoint* point : points) {
    const double x = axes.x(point->load.to_double());
    const double y = axes.y(point->latency.mean);
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x, y);
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#1f5fa8\"/>\n", x, y);
    if (!point->latency.half_width) continue;
    const double low = axes.y(std::max(0.0, point->latency.mean - *point->latency.half_width));
    const double high = axes.y(std::min(axes.latency, point->latency.mean + *point->latency.half_width));
    marks += line(x, low, x, high, "stroke=\"#1f5fa8\"");
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"2\"/>\n", path) + marks;
}

std::string draw_bound(double load, const Axes& axes, const char* colour, const std::string& text, double row) {
  const std::string style = fmt::format("stroke=\"{}\" stroke-dasharray=\"6 4\" stroke-width=\"1.5\"", colour);
  return line(axes.x(load), kTop, axes.x(load), kHeight - kBottom, style.c_str()) +
         label(axes.x(load) - 6, kTop + row, "end", text);
}

}  // namespace

std::string latency_chart(const TrafficReport& report) {
  const analysis::LoadSweep& sweep = *report.sweep;
  std::vector<const analysis::LoadPoint*> stable;
  for (const analysis::LoadPoint& point : sweep.points) {
    if (point.stable) stable.push_back(&point);
  }
  Axes axes;
  axes.load = 1.05 * report.ideal->load.to_double();
  double zero_load = 1;
  if (!stable.empty()) zero_load = stable.front()->latency.mean;
  axes.latency = 4 * zero_load;
  for (const analysis::LoadPoint* point : stable) axes.latency = std::max(axes.latency, 1.1 * point->latency.mean);

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  svg += label(kWidth / 2, 24, "middle", fmt::format("{}: {} traffic on {}", report.name, report.pattern, report.mesh));
  svg += draw_axes(axes) + draw_curve(stable, axes);
  if (sweep.saturation) {
    const double load = sweep.saturation->to_double();
    svg += draw_bound(load, axes, "#1f5fa8", fmt::format("largest stable load {:.4g}", load), 30);
  }
  const double ideal = report.ideal->load.to_double();
  svg += draw_bound(ideal, axes, "#c0392b", fmt::format("ideal saturation {:.4g}", ideal), 14);
  return svg + "</svg>\n";
}

}  // namespace wafersim::report
