#include "report/picture_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace wafersim::report {
namespace {

constexpr double kSwatch = 6.5;
constexpr double kLegendLine = 10.5;

/// Wider than the letters of common sans-serif fonts are in the mean, so that what is reserved is enough.
double text_width(std::string_view text) { return 0.56 * kPictureFont * static_cast<double>(text.size()); }

int channel(std::string_view colour, std::size_t index) {
  return static_cast<int>(std::strtol(std::string(colour.substr(1 + 2 * index, 2)).c_str(), nullptr, 16));
}

struct TimeUnit {
  double seconds;
  const char* name;
};

TimeUnit time_unit(double seconds) {
  for (const TimeUnit unit : {TimeUnit{1, "s"}, TimeUnit{1e-3, "ms"}, TimeUnit{1e-6, "µs"}}) {
    if (seconds >= unit.seconds) return unit;
  }
  return {1e-9, "ns"};
}

}  // namespace

const std::vector<Cause>& causes() {
  static const std::vector<Cause> all = {{"compute", "compute", colours::kBlue},
                                         {"exposed_tp", "exposed tp", colours::kOrange},
                                         {"exposed_tatp", "exposed tatp", colours::kVermilion},
                                         {"exposed_sp", "exposed sp", colours::kPurple},
                                         {"exposed_ep", "exposed ep", colours::kBrown},
                                         {"exposed_dp", "exposed dp", colours::kGreen},
                                         {"exposed_pp", "exposed pp", colours::kSky},
                                         {"memory_stall", "memory stall", colours::kYellow},
                                         {"bubble", "bubble", colours::kGrey},
                                         {"idle", "idle", colours::kPale}};
  return all;
}

std::string readable(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::uint64_t run_cycles(const RunTables& run) {
  return std::max<std::uint64_t>(run.summary.at("cycles").get<std::uint64_t>(), 1);
}

double draw_legend(Svg* svg, double left, double top, const std::vector<LegendItem>& items) {
  double x = left;
  double y = top;
  for (const LegendItem& item : items) {
    const double width = kSwatch + 3 + text_width(item.text);
    if (x > left && x + width > kPictureWidth) {
      x = left;
      y += kLegendLine;
    }
    if (svg != nullptr) {
      svg->rect(x, y, kSwatch, kSwatch, item.colour, fmt::format("stroke=\"{}\" stroke-width=\"0.3\"", colours::kMuted));
      svg->text(x + kSwatch + 3, y + kSwatch, "start", item.text);
    }
    x += width + 7;
  }
  return items.empty() ? 0 : y + kLegendLine - top;
}

void draw_time_axis(Svg& svg, const RunTables& run, double left, double right, double top, double bottom) {
  const double seconds = static_cast<double>(run_cycles(run)) / run.summary.at("machine").at("clock_hz").get<double>();
  const TimeUnit unit = time_unit(seconds);
  const double end = seconds / unit.seconds;
  const double step = nice_step(end, 5);
  for (int tick = 0; tick * step <= end * 1.0001; ++tick) {
    const double x = left + tick * step / end * (right - left);
    svg.line(x, top, x, bottom + 2.5, fmt::format("stroke=\"{}\" stroke-width=\"0.5\"", colours::kLine));
    svg.text(x, bottom + 10.5, "middle", fmt::format("{:g}", tick * step));
  }
  svg.line(left, bottom, right, bottom, fmt::format("stroke=\"{}\" stroke-width=\"0.6\"", colours::kMuted));
  svg.text((left + right) / 2, bottom + 20.5, "middle", fmt::format("time ({})", unit.name));
}

std::string ramp_colour(std::span<const char* const> ramp, double place) {
  const double last = static_cast<double>(ramp.size() - 1);
  const double at = std::round(std::clamp(place, 0.0, 1.0) * 255) / 255 * last;
  const auto from = std::min(static_cast<std::size_t>(at), ramp.size() - 2);
  std::string colour = "#";
  for (std::size_t i = 0; i < 3; ++i) {
    const int low = channel(ramp[from], i);
    const int high = channel(ramp[from + 1], i);
    const double share = at - static_cast<double>(from);
    colour += fmt::format("{:02x}", static_cast<int>(std::lround(low + (high - low) * share)));
  }
  return colour;
}

}  // namespace wafersim::report
