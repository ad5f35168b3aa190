#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "report/picture_parts.h"
#include "report/run_directory.h"
#include "workloads/plan.h"

namespace wafersim::report {
namespace {

constexpr double kLeft = 38;
constexpr double kTop = 6;
constexpr double kPlotHeight = 120;
/// Narrower than what can be seen at the size of print.
constexpr double kSlot = 0.25;
/// A capacity further above the peak than this factor would leave nothing of the areas.
constexpr double kMostHeadroom = 4;

constexpr std::size_t kClasses = workloads::kMemoryClasses;
using Levels = std::array<double, kClasses>;
/// In the order of workloads::MemoryClass.
constexpr std::array<const char*, kClasses> kColours = {colours::kBlue, colours::kGreen,  colours::kOrange,
                                                        colours::kSky,  colours::kPurple, colours::kVermilion};

double total(const Levels& levels) {
  double sum = 0;
  for (const double level : levels) sum += level;
  return sum;
}

std::string class_name(std::size_t index) { return workloads::to_string(static_cast<workloads::MemoryClass>(index)); }

/// What the tile holds in each slot of time: where several rows lie in one, that with most. So peaks are never lost.
std::vector<Levels> slots_of(const RunTables& run, std::string_view tile, std::size_t count) {
  const CsvTable& memory = *run.memory;
  const std::size_t name = memory.column("tile");
  const std::size_t cycle = memory.column("cycle");
  std::array<std::size_t, kClasses> columns{};
  for (std::size_t i = 0; i < kClasses; ++i) columns[i] = memory.column(class_name(i) + "_bytes");
  std::vector<Levels> slots(count);
  Levels held{};
  std::size_t next = 0;  ///< first slot that no row has reached
  bool any = false;
  for (std::size_t row = 0; row < memory.rows(); ++row) {
    if (memory.text(row, name) != tile) continue;
    any = true;
    const double share = static_cast<double>(memory.whole(row, cycle)) / static_cast<double>(run_cycles(run));
    const std::size_t slot = std::min(static_cast<std::size_t>(share * static_cast<double>(count)), count - 1);
    for (; next <= slot; ++next) slots[next] = held;
    for (std::size_t i = 0; i < kClasses; ++i) held[i] = static_cast<double>(memory.whole(row, columns[i]));
    if (total(held) > total(slots[slot])) slots[slot] = held;
  }
  for (; next < count; ++next) slots[next] = held;
  if (!any) throw IoError(fmt::format("cannot use {}: it has no rows of the fullest tile, {}", memory.path().string(), tile));
  return slots;
}

struct Axis {
  double unit;
  const char* name;
  double top;  ///< bytes
  double bottom_y;
  double y(double bytes) const { return bottom_y - bytes / top * kPlotHeight; }
};

Axis axis_of(double top) {
  Axis axis{1, "B", top, kTop + kPlotHeight};
  for (const char* name : {"KiB", "MiB", "GiB", "TiB"}) {
    if (top / axis.unit < 1024) break;
    axis.unit *= 1024;
    axis.name = name;
  }
  return axis;
}

void draw_axis(Svg& svg, const Axis& axis, double right) {
  const double step = nice_step(axis.top / axis.unit, 5);
  for (int tick = 0; tick * step * axis.unit <= axis.top * 1.0001; ++tick) {
    const double y = axis.y(tick * step * axis.unit);
    svg.line(kLeft - 2.5, y, right, y, fmt::format("stroke=\"{}\" stroke-width=\"0.5\"", colours::kLine));
    svg.text(kLeft - 4, y + 2.6, "end", fmt::format("{:g}", tick * step));
  }
  svg.text_upwards(9, kTop + kPlotHeight / 2, fmt::format("held ({})", axis.name));
}

/// The stepped area of one class above those below it, which it raises.
void draw_area(Svg& svg, const std::vector<Levels>& slots, std::size_t index, std::vector<double>& below, const Axis& axis,
               double right) {
  const double width = (right - kLeft) / static_cast<double>(slots.size());
  const auto edge = [&](const std::vector<double>& heights, bool forward) {
    std::string path;
    for (std::size_t k = 0; k < heights.size(); ++k) {
      const std::size_t i = forward ? k : heights.size() - 1 - k;
      const double y = axis.y(heights[i]);
      const double start = kLeft + width * static_cast<double>(i);
      // Corners only where the level changes.
      const bool first = k == 0 || heights[forward ? i - 1 : i + 1] != heights[i];
      const bool last = k + 1 == heights.size() || heights[forward ? i + 1 : i - 1] != heights[i];
      if (first) path += fmt::format("L{:.2f} {:.3f}", forward ? start : start + width, y);
      if (last) path += fmt::format("L{:.2f} {:.3f}", forward ? start + width : start, y);
    }
    return path;
  };
  const std::string back = edge(below, false);
  for (std::size_t i = 0; i < slots.size(); ++i) below[i] += slots[i][index];
  std::string path = edge(below, true) + back + "Z";
  path[0] = 'M';
  svg.raw(fmt::format("<path class=\"{}\" fill=\"{}\" d=\"{}\"/>", class_name(index), kColours[index], path));
}

}  // namespace

std::string draw_memory_picture(const RunTables& run) {
  if (!run.memory) {
    throw IoError(fmt::format("the run has no {}: run the scenario again with --memory", kMemoryFile));
  }
  const auto& memory = run.summary.at("memory");
  const auto tile = memory.at("peak_tile").get<std::string>();
  const auto capacity = memory.at("capacity_bytes").get<double>();
  const double right = kPictureWidth - kPictureRight;
  const std::vector<Levels> slots = slots_of(run, tile, static_cast<std::size_t>((right - kLeft) / kSlot));
  double peak = 1;
  std::array<bool, kClasses> used{};
  for (const Levels& levels : slots) {
    peak = std::max(peak, total(levels));
    for (std::size_t i = 0; i < kClasses; ++i) used[i] = used[i] || levels[i] > 0;
  }
  const bool near = capacity <= kMostHeadroom * peak;
  const Axis axis = axis_of(near ? 1.12 * std::max(capacity, peak) : 1.2 * peak);
  std::vector<LegendItem> legend;
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (used[i]) legend.push_back({kColours[i], readable(class_name(i))});
  }
  const double legend_top = axis.bottom_y + kTimeAxisHeight + 3;
  Svg svg(kPictureWidth, legend_top + draw_legend(nullptr, kTop, legend_top, legend), "pt", kPictureFont);
  svg.title(fmt::format("{}: what {}, the fullest tile, holds over time", run.summary.at("name").get<std::string>(), tile));
  draw_axis(svg, axis, right);
  draw_time_axis(svg, run, kLeft, right, kTop, axis.bottom_y);
  std::vector<double> below(slots.size());
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (used[i]) draw_area(svg, slots, i, below, axis, right);
  }
  const std::string text = fmt::format("capacity {}", human_bytes(static_cast<Bytes>(std::llround(capacity))));
  if (near) {
    const double y = axis.y(capacity);
    svg.line(kLeft, y, right, y,
             fmt::format("class=\"capacity\" stroke=\"{}\" stroke-width=\"1\" stroke-dasharray=\"4 2\"", colours::kMark));
    svg.text(right, y - 2.5, "end", text);
  } else {
    svg.text(right, kTop + 6, "end", text + ", above this scale", kTextRim);
  }
  draw_legend(&svg, kTop, legend_top, legend);
  return svg.take();
}

}  // namespace wafersim::report
