#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/svg.h"
#include "report/trial_report.h"

namespace wafersim::report {
namespace {

constexpr double kWidth = 460, kHeight = 360, kLeft = 70, kRight = 14, kTop = 14, kBottom = 46;
constexpr const char* kAxis = "stroke=\"#999\" stroke-width=\"1\"";
constexpr const char* kGrid = "stroke=\"#e4e4e4\" stroke-width=\"1\"";
constexpr const char* kPoint = "#3366cc";

std::string percent(double value) { return fmt::format("{:.2f} %", 100 * value); }

/// A span of decimal logarithms with its ticks at powers of ten.
struct LogScale {
  double low = 0, high = 1;
  LogScale(double least, double most) : low(std::floor(std::log10(least) * 2) / 2), high(std::ceil(std::log10(most) * 2) / 2) {
    if (high <= low) high = low + 1;
  }
  double at(double value, double from, double to) const {
    return from + (std::log10(value) - low) / (high - low) * (to - from);
  }
};

struct Dot {
  double x = 0, y = 0;
  std::uint64_t number = 0;
};

void draw_dot(Svg& svg, double x, double y, const std::string& title) {
  svg.raw(
      fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"2.6\" fill=\"{}\" fill-opacity=\"0.55\"><title>{}</title></circle>",
                  x, y, kPoint, escaped(title)));
}

void draw_frame(Svg& svg, const LogScale& x, const char* x_title, const char* y_title) {
  svg.line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, kAxis);
  svg.line(kLeft, kTop, kLeft, kHeight - kBottom, kAxis);
  for (double power = std::ceil(x.low); power <= x.high; ++power) {
    const double at = x.at(std::pow(10, power), kLeft, kWidth - kRight);
    svg.line(at, kTop, at, kHeight - kBottom, kGrid);
    svg.text(at, kHeight - kBottom + 16, "middle", fmt::format("1e{:.0f}", power));
  }
  svg.text((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", x_title);
  svg.text_upwards(14, (kTop + kHeight - kBottom) / 2, y_title);
}

/// Predicted over simulated cycles, both logarithmic, with the line on which they are equal.
std::string scatter(const std::vector<Dot>& dots) {
  double least = dots.front().x, most = least;
  for (const Dot& dot : dots) {
    least = std::min({least, dot.x, dot.y});
    most = std::max({most, dot.x, dot.y});
  }
  const LogScale scale(least, most);
  Svg svg(kWidth, kHeight, "px", 12);
  svg.title("Predicted over simulated cycles");
  draw_frame(svg, scale, "simulated cycles", "predicted cycles");
  for (double power = std::ceil(scale.low); power <= scale.high; ++power) {
    const double at = scale.at(std::pow(10, power), kHeight - kBottom, kTop);
    svg.line(kLeft, at, kWidth - kRight, at, kGrid);
    svg.text(kLeft - 6, at + 4, "end", fmt::format("1e{:.0f}", power));
  }
  svg.line(kLeft, kHeight - kBottom, kWidth - kRight, kTop, "stroke=\"#cc3333\" stroke-dasharray=\"4 3\"");
  for (const Dot& dot : dots) {
    draw_dot(svg, scale.at(dot.x, kLeft, kWidth - kRight), scale.at(dot.y, kHeight - kBottom, kTop),
             fmt::format("point {}: simulated {:.6g}, predicted {:.6g}", dot.number, dot.x, dot.y));
  }
  return svg.take();
}

/// Errors over simulated cycles.
std::string residuals(const std::vector<Dot>& dots) {
  double least = dots.front().x, most = least, largest = 0.01;
  for (const Dot& dot : dots) {
    least = std::min(least, dot.x);
    most = std::max(most, dot.x);
    largest = std::max(largest, std::abs(dot.y / dot.x - 1));
  }
  const LogScale scale(least, most);
  const double step = nice_step(2 * largest), limit = std::ceil(largest / step) * step;
  const auto up = [&](double error) { return kTop + (limit - error) / (2 * limit) * (kHeight - kBottom - kTop); };
  Svg svg(kWidth, kHeight, "px", 12);
  svg.title("Errors over simulated cycles");
  draw_frame(svg, scale, "simulated cycles", "error");
  for (double error = -limit; error <= limit + step / 2; error += step) {
    svg.line(kLeft, up(error), kWidth - kRight, up(error), kGrid);
    svg.text(kLeft - 6, up(error) + 4, "end", fmt::format("{:.3g} %", 100 * (std::abs(error) < step / 2 ? 0 : error)));
  }
  svg.line(kLeft, up(0), kWidth - kRight, up(0), "stroke=\"#cc3333\" stroke-dasharray=\"4 3\"");
  for (const Dot& dot : dots) {
    const double error = dot.y / dot.x - 1;
    draw_dot(svg, scale.at(dot.x, kLeft, kWidth - kRight), up(error), fmt::format("point {}: {}", dot.number, percent(error)));
  }
  return svg.take();
}

std::string row(const std::vector<std::string>& cells, const char* kind = "td") {
  std::string line = "<tr>";
  for (const std::string& each : cells) line += fmt::format("<{0}>{1}</{0}>", kind, escaped(each));
  return line + "</tr>\n";
}

std::string model_table(const Trial& trial) {
  std::string html = "<table>\n" + row({"model", "points", "no answer", "MAPE", "median", "p95", "max", "bias", "R²",
                                        "Kendall τ", "groups", "picks the best", "regret", "worst regret", "top-3 regret"},
                                       "th");
  for (const TrialModel& model : trial.models) {
    const TrialScores of = scores(trial, model);
    const auto& [points, mape, median, p95, worst, bias, r2, tau] = of.errors;
    const bool choose = of.choices.groups > 0;
    const auto choice = [&](double value) { return choose ? percent(value) : std::string("-"); };
    html += row({model.name, std::to_string(points), std::to_string(of.faults), percent(mape), percent(median), percent(p95),
                 percent(worst), percent(bias), fmt::format("{:.4f}", r2), fmt::format("{:.4f}", tau),
                 std::to_string(of.choices.groups), choice(of.choices.best_picked), choice(of.choices.regret),
                 choice(of.choices.worst_regret), choice(of.choices.top3_regret)});
  }
  return html + "</table>\n";
}

std::string class_table(const Trial& trial, const TrialModel& model) {
  std::string html = "<details><summary>Where it is wrong</summary><table>\n" +
                     row({"by", "value", "points", "MAPE", "p95", "max", "bias", "Kendall τ"}, "th");
  for (const TrialClass& each : classes(trial, model)) {
    const analysis::ErrorStatistics& errors = each.errors;
    html += row({each.by, each.value, std::to_string(errors.points), percent(errors.mape), percent(errors.p95),
                 percent(errors.worst), percent(errors.bias), fmt::format("{:.3f}", errors.tau)});
  }
  return html + "</table></details>\n";
}

std::string worst_table(const Trial& trial, const TrialModel& model) {
  std::string html = "<details open><summary>Worst ten points</summary><table>\n" +
                     row({"point", "error", "part that is wrong most", "predicted", "simulated", "settings"}, "th");
  for (const TrialFailure& failure : worst_points(trial, model)) {
    const TrialPoint& point = trial.points[failure.point];
    std::vector<std::string> settings;
    for (const auto& [key, value] : point.settings) settings.push_back(key + "=" + value);
    const auto cycles = [&](double value) {
      return failure.part ? human_count(static_cast<std::uint64_t>(std::llround(value))) : std::string("-");
    };
    html += row({std::to_string(point.number), percent(failure.error),
                 failure.part ? analysis::to_string(*failure.part) : "not told", cycles(failure.part_predicted),
                 cycles(failure.part_simulated), join(settings, "  ")});
  }
  return html + "</table></details>\n";
}

std::string fault_table(const Trial& trial, const TrialModel& model) {
  constexpr std::size_t kShown = 50;
  std::string html;
  std::size_t count = 0;
  for (std::size_t i = 0; i < model.answers.size(); ++i) {
    const TrialAnswer& answer = model.answers[i];
    if (answer.cycles || answer.left_out || ++count > kShown) continue;
    html += row({std::to_string(trial.points[i].number), answer.fault});
  }
  if (count == 0) return {};
  return fmt::format("<details open><summary>{} points without an answer</summary><table>\n", count) +
         row({"point", "why"}, "th") + html + "</table></details>\n";
}

std::string factor_text(const TrialModel& model) {
  if (model.links) {
    return fmt::format("<p>Latencies of links times {:.3f} and bandwidths times {:.3f}, fitted on the other half of the "
                       "points.</p>\n",
                       model.links->latency, model.links->bandwidth);
  }
  if (!model.factors) return {};
  std::string text = "<p>Factors fitted on the other half of the points:";
  for (std::size_t k = 0; k < analysis::kCycleParts; ++k) {
    text += fmt::format(" {} {:.4f}", analysis::to_string(static_cast<analysis::CyclePart>(k)), (*model.factors)[k]);
  }
  return text + "</p>\n";
}

std::string section(const Trial& trial, const TrialModel& model) {
  std::string html = fmt::format("<h2>{}</h2>\n", escaped(model.name)) + factor_text(model);
  std::vector<Dot> dots;
  for (std::size_t i = 0; i < trial.points.size(); ++i) {
    if (model.answers[i].cycles) dots.push_back({trial.points[i].cycles, *model.answers[i].cycles, trial.points[i].number});
  }
  if (!dots.empty()) html += "<div class=\"plots\">\n" + scatter(dots) + residuals(dots) + "</div>\n";
  return html + worst_table(trial, model) + class_table(trial, model) + fault_table(trial, model);
}

}  // namespace

std::string trial_page(const Trial& trial) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}: cost models on trial</title>\n<style>\n"
      "body {{ font: 14px/1.45 sans-serif; margin: 2em auto; max-width: 1100px; color: #222 }}\n"
      "table {{ border-collapse: collapse; margin: 0.5em 0 }} td, th {{ border-bottom: 1px solid #ddd; padding: 2px 9px; "
      "text-align: right; vertical-align: top }} td:first-child, th:first-child, td:last-child {{ text-align: left }}\n"
      ".plots svg {{ margin-right: 1em }} summary {{ cursor: pointer; font-weight: bold }} details {{ overflow-x: auto }}\n"
      "</style></head><body>\n<h1>{0}: cost models on trial</h1>\n"
      "<p>{1} points simulated, {2} failed. An error is predicted / simulated - 1. Points that differ in keys of the plan only "
      "compete "
      "with each other: regret is what is lost by taking the plan that the model likes best, instead of the fastest.</p>\n",
      escaped(trial.name), trial.points.size(), trial.failed_points);
  html += model_table(trial);
  for (const TrialModel& model : trial.models) html += section(trial, model);
  return html + "</body></html>\n";
}

}  // namespace wafersim::report
