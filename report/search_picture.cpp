#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "report/picture_parts.h"
#include "report/search_report.h"
#include "report/svg.h"

namespace wafersim::report {
namespace {

using analysis::SearchedPlan;

constexpr double kHeight = 200;
constexpr double kLeft = 40;
constexpr double kTop = 12;
constexpr double kGib = 1024.0 * 1024 * 1024;
/// Slower plans than so many times the fastest are left out: they would press all others together.
constexpr double kSlowest = 4;

struct Axes {
  double memory = 1;  ///< at the right edge, bytes
  double time = 1;    ///< at the top, seconds
  double bottom = 0;
  double right = 0;
  double x(double bytes) const { return kLeft + bytes / memory * (right - kLeft); }
  double y(double seconds) const { return bottom - seconds / time * (bottom - kTop); }
};

void draw_axes(Svg& svg, const Axes& axes) {
  const std::string grid = fmt::format("stroke=\"{}\" stroke-width=\"0.5\"", colours::kLine);
  const std::string muted = fmt::format("fill=\"{}\"", colours::kMuted);
  const bool small = axes.memory < kGib;
  const double unit = small ? kGib / 1024 : kGib;
  for (double at = 0; at <= axes.memory / unit * 1.0001; at += nice_step(axes.memory / unit)) {
    svg.line(axes.x(at * unit), kTop, axes.x(at * unit), axes.bottom, grid);
    svg.text(axes.x(at * unit), axes.bottom + 9, "middle", fmt::format("{:g}", at), muted);
  }
  for (double at = 0; at <= axes.time * 1.0001; at += nice_step(axes.time)) {
    svg.line(kLeft, axes.y(at), axes.right, axes.y(at), grid);
    svg.text(kLeft - 3, axes.y(at) + 2.5, "end", at == 0 ? "0" : human_seconds(at), muted);
  }
  svg.text((kLeft + axes.right) / 2, axes.bottom + 19, "middle",
           fmt::format("memory of the fullest tile ({})", small ? "MiB" : "GiB"));
  svg.text_upwards(7, (kTop + axes.bottom) / 2, "time of an iteration");
}

void draw_dot(Svg& svg, double x, double y, double radius, const char* fill) {
  svg.raw(fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:g}\" fill=\"{}\"/>", x, y, radius, fill));
}

}  // namespace

std::string search_picture(const SearchReport& report) {
  const double hertz = report.clock.hertz.to_double();
  const std::vector<SearchedPlan>& plans = report.searches.front().plans;
  const std::vector<std::size_t> front = pareto_front(report);
  const std::vector<LegendItem> legend{{colours::kGrey, "plan, predicted"},
                                       {colours::kBlue, "Pareto front"},
                                       {colours::kVermilion, "simulated"},
                                       {colours::kPurple, "best of a baseline"}};
  const double legend_height = draw_legend(nullptr, kLeft, 0, legend);
  Svg svg(kPictureWidth, kHeight, "pt", kPictureFont);
  svg.title(report.name + ": time and memory of plans");
  if (front.empty()) return svg.take();

  Axes axes;
  axes.right = kPictureWidth - kPictureRight;
  axes.bottom = kHeight - 26 - legend_height;
  double slowest = 0, largest = 0;
  const double fastest = static_cast<double>(plans[front.front()].verdict.cycles) / hertz;
  const auto shown = [&](const SearchedPlan& plan) {
    return plan.fits() && static_cast<double>(cycles_of(plan)) / hertz <= kSlowest * fastest;
  };
  const auto memory = [](const SearchedPlan& plan) { return static_cast<double>(plan.verdict.memory.peak_bytes); };
  for (const SearchedPlan& plan : plans) {
    if (!shown(plan)) continue;
    slowest = std::max(slowest, static_cast<double>(cycles_of(plan)) / hertz);
    largest = std::max(largest, memory(plan));
  }
  axes.time = 1.05 * slowest;
  axes.memory = 1.05 * largest;
  draw_axes(svg, axes);

  const auto place = [&](const SearchedPlan& plan, Cycle cycles) {
    return std::pair{axes.x(memory(plan)), axes.y(static_cast<double>(cycles) / hertz)};
  };
  std::set<std::pair<int, int>> taken;  // dots of which none is seen beside another
  for (const SearchedPlan& plan : plans) {
    if (!shown(plan)) continue;
    const auto [x, y] = place(plan, plan.verdict.cycles);
    if (taken.emplace(static_cast<int>(2 * x), static_cast<int>(2 * y)).second) draw_dot(svg, x, y, 1, colours::kGrey);
  }
  std::string steps;
  for (const std::size_t number : front) {
    if (!shown(plans[number])) break;
    const auto [x, y] = place(plans[number], plans[number].verdict.cycles);
    steps += fmt::format("{}{:.2f},{:.2f}", steps.empty() ? "" : " ", x, y);
    draw_dot(svg, x, y, 1.6, colours::kBlue);
  }
  svg.raw(fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"0.8\"/>", steps, colours::kBlue));
  for (std::size_t s = 1; s < report.searches.size(); ++s) {
    const std::optional<FoundPlan> best = best_of(report, s);
    if (!best || !shown(at(report, *best)) || memory(at(report, *best)) > axes.memory) continue;
    const auto [x, y] = place(at(report, *best), cycles_of(at(report, *best)));
    svg.text(x, y - 5, "middle", readable(to_string(report.searches[s].family)), kTextRim);
    svg.rect(x - 2, y - 2, 4, 4, colours::kPurple);
  }
  for (const SearchedPlan& plan : plans) {
    if (!plan.simulated || !shown(plan)) continue;
    const auto [x, y] = place(plan, *plan.simulated);
    draw_dot(svg, x, y, 1.6, colours::kVermilion);
  }
  draw_legend(&svg, kLeft, kHeight - legend_height, legend);
  return svg.take();
}

}  // namespace wafersim::report
