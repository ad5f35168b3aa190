#include "report/latency_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "report/svg.h"

namespace wafersim::report {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 440;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 44;
constexpr double kBottom = 54;

struct Axes {
  double load = 1;     ///< at the right edge
  double latency = 1;  ///< at the top
  double x(double at) const { return kLeft + at / load * (kWidth - kLeft - kRight); }
  double y(double at) const { return kHeight - kBottom - at / latency * (kHeight - kTop - kBottom); }
};

void draw_axes(Svg& svg, const Axes& axes) {
  constexpr const char* kGrid = "stroke=\"#e0e0e0\"";
  constexpr const char* kAxis = "stroke=\"#333\"";
  const double right = kWidth - kRight;
  const double bottom = kHeight - kBottom;
  for (double at = 0; at <= axes.latency * 1.0001; at += nice_step(axes.latency)) {
    svg.line(kLeft, axes.y(at), right, axes.y(at), kGrid);
    svg.text(kLeft - 8, axes.y(at) + 4, "end", fmt::format("{:g}", at), kTextRim);
  }
  for (double at = 0; at <= axes.load * 1.0001; at += nice_step(axes.load)) {
    svg.line(axes.x(at), kTop, axes.x(at), bottom, kGrid);
    svg.text(axes.x(at), bottom + 18, "middle", fmt::format("{:g}", at), kTextRim);
  }
  svg.line(kLeft, bottom, right, bottom, kAxis);
  svg.line(kLeft, kTop, kLeft, bottom, kAxis);
  svg.text((kLeft + right) / 2, kHeight - 12, "middle", "offered load (flits per tile and cycle)", kTextRim);
  svg.text_upwards(18, (kTop + bottom) / 2, "mean packet latency (cycles)");
}

void draw_curve(Svg& svg, const std::vector<const analysis::LoadPoint*>& points, const Axes& axes) {
  std::string path;
  for (const analysis::LoadPoint* point : points) {
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", axes.x(point->load.to_double()), axes.y(point->latency.mean));
  }
  svg.raw(fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"2\"/>", path));
  for (const analysis::LoadPoint* point : points) {
    const double x = axes.x(point->load.to_double());
    svg.raw(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#1f5fa8\"/>", x, axes.y(point->latency.mean)));
    if (!point->latency.half_width) continue;
    const double low = axes.y(std::max(0.0, point->latency.mean - *point->latency.half_width));
    const double high = axes.y(std::min(axes.latency, point->latency.mean + *point->latency.half_width));
    svg.line(x, low, x, high, "stroke=\"#1f5fa8\"");
  }
}

void draw_bound(Svg& svg, double load, const Axes& axes, const char* colour, const std::string& text, double row) {
  svg.line(axes.x(load), kTop, axes.x(load), kHeight - kBottom,
           fmt::format("stroke=\"{}\" stroke-dasharray=\"6 4\" stroke-width=\"1.5\"", colour));
  svg.text(axes.x(load) - 6, kTop + row, "end", text, kTextRim);
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

  Svg svg(kWidth, kHeight, "", 12);
  svg.text(kWidth / 2, 24, "middle", fmt::format("{}: {} traffic on {}", report.name, report.pattern, report.mesh), kTextRim);
  draw_axes(svg, axes);
  draw_curve(svg, stable, axes);
  if (sweep.saturation) {
    const double load = sweep.saturation->to_double();
    draw_bound(svg, load, axes, "#1f5fa8", fmt::format("largest stable load {:.4g}", load), 30);
  }
  const double ideal = report.ideal->load.to_double();
  draw_bound(svg, ideal, axes, "#c0392b", fmt::format("ideal saturation {:.4g}", ideal), 14);
  return svg.take();
}

}  // namespace wafersim::report
