#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "report/picture_parts.h"
#include "report/search_report.h"
#include "report/svg.h"

namespace wafersim::report {
namespace {

using analysis::SearchedPlan;

constexpr double kPanelHeight = 188;  ///< with the legend
constexpr double kLeft = 40;
constexpr double kTop = 12;
constexpr double kGib = 1024.0 * 1024 * 1024;
/// Slower plans than so many times the fastest are left out: they would press all others together.
constexpr double kSlowest = 4;

/// Time over another measure, in the coordinates of the picture.
struct Panel {
  PlanMeasure across = PlanMeasure::memory;
  double most = 1;  ///< at the right edge: bytes or joules
  double time = 1;  ///< at the top, seconds
  double top = 0;
  double bottom = 0;
  double right = 0;
  double x(double value) const { return kLeft + value / most * (right - kLeft); }
  double y(double seconds) const { return bottom - seconds / time * (bottom - top); }
};

/// Ticks are whole numbers of a unit.
struct AxisUnit {
  double size = 1;
  std::string title;
};

AxisUnit unit_of(const Panel& panel) {
  if (panel.across == PlanMeasure::memory) {
    const bool small = panel.most < kGib;
    return {small ? kGib / 1024 : kGib, fmt::format("memory of the fullest tile ({})", small ? "MiB" : "GiB")};
  }
  const std::string text = human_unit(panel.most, "J");  // "12.3 kJ"
  const std::string unit = text.substr(text.find(' ') + 1);
  return {panel.most / std::stod(text), fmt::format("energy of a run ({})", unit)};
}

void draw_axes(Svg& svg, const Panel& panel) {
  const std::string grid = fmt::format("stroke=\"{}\" stroke-width=\"0.5\"", colours::kLine);
  const std::string muted = fmt::format("fill=\"{}\"", colours::kMuted);
  const AxisUnit unit = unit_of(panel);
  for (double at = 0; at <= panel.most / unit.size * 1.0001; at += nice_step(panel.most / unit.size)) {
    svg.line(panel.x(at * unit.size), panel.top, panel.x(at * unit.size), panel.bottom, grid);
    svg.text(panel.x(at * unit.size), panel.bottom + 9, "middle", fmt::format("{:g}", at), muted);
  }
  for (double at = 0; at <= panel.time * 1.0001; at += nice_step(panel.time)) {
    svg.line(kLeft, panel.y(at), panel.right, panel.y(at), grid);
    svg.text(kLeft - 3, panel.y(at) + 2.5, "end", at == 0 ? "0" : human_seconds(at), muted);
  }
  svg.text((kLeft + panel.right) / 2, panel.bottom + 19, "middle", unit.title);
  svg.text_upwards(7, (panel.top + panel.bottom) / 2, "time of an iteration");
}

void draw_dot(Svg& svg, double x, double y, double radius, const char* fill) {
  svg.raw(fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:g}\" fill=\"{}\"/>", x, y, radius, fill));
}

/// By simulation, where there is one and the measure comes of it.
double known(const SearchedPlan& plan, PlanMeasure measure) {
  return measure == PlanMeasure::energy && plan.simulated_joules ? *plan.simulated_joules : measure_of(plan, measure);
}

class Drawing {
 public:
  Drawing(const SearchReport& report, Svg& svg)
      : report_(report), plans_(report.searches.front().plans), svg_(svg), hertz_(report.clock.hertz.to_double()) {}

  void draw(Panel panel, const std::vector<std::size_t>& front) {
    const double fastest = seconds(plans_[front.front()].verdict.cycles);
    shown_until_ = kSlowest * fastest;
    panel.time = panel.most = 0;
    for (const SearchedPlan& plan : plans_) {
      if (!shown(plan)) continue;
      panel.time = std::max(panel.time, 1.05 * seconds(cycles_of(plan)));
      panel.most = std::max(panel.most, 1.05 * known(plan, panel.across));
    }
    draw_axes(svg_, panel);
    draw_predicted(panel);
    draw_front(panel, front);
    draw_baselines(panel);
    for (const SearchedPlan& plan : plans_) {
      if (!plan.simulated || !shown(plan)) continue;
      draw_dot(svg_, panel.x(known(plan, panel.across)), panel.y(seconds(*plan.simulated)), 1.6, colours::kVermilion);
    }
  }

 private:
  double seconds(Cycle cycles) const { return static_cast<double>(cycles) / hertz_; }
  bool shown(const SearchedPlan& plan) const { return plan.fits() && seconds(cycles_of(plan)) <= shown_until_; }
  std::pair<double, double> predicted(const Panel& panel, const SearchedPlan& plan) const {
    return {panel.x(measure_of(plan, panel.across)), panel.y(seconds(plan.verdict.cycles))};
  }

  void draw_predicted(const Panel& panel) {
    std::set<std::pair<int, int>> taken;  // dots of which none is seen beside another
    for (const SearchedPlan& plan : plans_) {
      if (!shown(plan)) continue;
      const auto [x, y] = predicted(panel, plan);
      if (taken.emplace(static_cast<int>(2 * x), static_cast<int>(2 * y)).second) draw_dot(svg_, x, y, 1, colours::kGrey);
    }
  }

  /// The line joins those that are on the front of the panel's two measures alone.
  void draw_front(const Panel& panel, const std::vector<std::size_t>& front) {
    const std::array measures{PlanMeasure::time, panel.across};
    std::string steps;
    for (const std::size_t number : pareto_front(report_, measures)) {
      if (!shown(plans_[number])) break;
      const auto [x, y] = predicted(panel, plans_[number]);
      steps += fmt::format("{}{:.2f},{:.2f}", steps.empty() ? "" : " ", x, y);
    }
    for (const std::size_t number : front) {
      if (!shown(plans_[number])) continue;
      const auto [x, y] = predicted(panel, plans_[number]);
      draw_dot(svg_, x, y, 1.6, colours::kBlue);
    }
    svg_.raw(fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"0.8\"/>", steps, colours::kBlue));
  }

  void draw_baselines(const Panel& panel) {
    for (std::size_t s = 1; s < report_.searches.size(); ++s) {
      const std::optional<FoundPlan> best = best_of(report_, s);
      if (!best || !shown(at(report_, *best)) || known(at(report_, *best), panel.across) > panel.most) continue;
      const SearchedPlan& plan = at(report_, *best);
      const double x = panel.x(known(plan, panel.across)), y = panel.y(seconds(cycles_of(plan)));
      svg_.text(x, y - 5, "middle", readable(to_string(report_.searches[s].family)), kTextRim);
      svg_.rect(x - 2, y - 2, 4, 4, colours::kPurple);
    }
  }

  const SearchReport& report_;
  const std::vector<SearchedPlan>& plans_;
  Svg& svg_;
  double hertz_;
  double shown_until_ = 0;  ///< seconds
};

}  // namespace

std::string search_picture(const SearchReport& report) {
  const std::vector<std::size_t> front = pareto_front(report);
  const bool energy = energy_modelled(report);
  const std::vector<LegendItem> legend{{colours::kGrey, "plan, predicted"},
                                       {colours::kBlue, energy ? "Pareto front of time, memory and energy" : "Pareto front"},
                                       {colours::kVermilion, "simulated"},
                                       {colours::kPurple, "best of a baseline"}};
  const double legend_height = draw_legend(nullptr, kLeft, 0, legend);
  const double panel_height = kPanelHeight - legend_height;
  const double height = kTop + (energy ? 2 : 1) * panel_height + legend_height;
  Svg svg(kPictureWidth, height, "pt", kPictureFont);
  svg.title(fmt::format("{}: time{} memory{} of plans", report.name, energy ? "," : " and", energy ? " and energy" : ""));
  if (front.empty()) return svg.take();
  Drawing drawing(report, svg);
  Panel panel;
  panel.right = kPictureWidth - kPictureRight;
  panel.top = kTop;
  panel.bottom = kTop + panel_height - 26;
  drawing.draw(panel, front);
  if (energy) {
    panel.across = PlanMeasure::energy;
    panel.top += panel_height;
    panel.bottom += panel_height;
    drawing.draw(panel, front);
  }
  draw_legend(&svg, kLeft, height - legend_height, legend);
  return svg.take();
}

}  // namespace wafersim::report
