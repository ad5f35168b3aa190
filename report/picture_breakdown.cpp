#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "report/picture_parts.h"
#include "report/terminal_canvas.h"

namespace wafersim::report {
namespace {

constexpr double kLeft = 38;
constexpr double kTop = 4;
constexpr double kMostPitch = 12;
constexpr double kLeastPitch = 2;
constexpr double kBarsHeight = 290;  ///< of very many stages, while bars stay thick enough to see
constexpr double kAxisHeight = 24;

struct Bar {
  std::string name;
  std::uint64_t tiles = 0;
  std::vector<std::uint64_t> cycles = std::vector<std::uint64_t>(causes().size());
};

/// The whole, then the stages if there are several.
std::vector<Bar> bars_of(const RunTables& run) {
  std::vector<std::size_t> columns;
  for (const Cause& cause : causes()) columns.push_back(run.tiles.column(cause.column()));
  const std::size_t stage = run.tiles.column("stage");
  Bar whole{"all tiles"};
  std::map<std::uint64_t, Bar> stages;
  for (std::size_t row = 0; row < run.tiles.rows(); ++row) {
    Bar& its = stages[run.tiles.whole(row, stage)];
    for (Bar* bar : {&whole, &its}) {
      ++bar->tiles;
      for (std::size_t i = 0; i < columns.size(); ++i) bar->cycles[i] += run.tiles.whole(row, columns[i]);
    }
  }
  std::vector<Bar> bars{std::move(whole)};
  if (stages.size() < 2) return bars;
  for (auto& [number, bar] : stages) {
    bar.name = fmt::format("stage {}", number);
    bars.push_back(std::move(bar));
  }
  return bars;
}

double share(const Bar& bar, std::size_t cause, const RunTables& run) {
  const double all = static_cast<double>(run_cycles(run)) * static_cast<double>(std::max<std::uint64_t>(bar.tiles, 1));
  return static_cast<double>(bar.cycles[cause]) / all;
}

/// Causes that no tile knows are left out.
std::vector<LegendItem> legend_of(const Bar& whole, const RunTables& run) {
  std::vector<LegendItem> items;
  for (std::size_t i = 0; i < causes().size(); ++i) {
    if (whole.cycles[i] == 0) continue;
    items.push_back({causes()[i].colour, causes()[i].label + " " + percent(share(whole, i, run))});
  }
  return items;
}

void draw_axis(Svg& svg, double right, double bottom) {
  for (int tick = 0; tick <= 5; ++tick) {
    const double x = kLeft + tick / 5.0 * (right - kLeft);
    svg.line(x, kTop, x, bottom + 2.5, fmt::format("stroke=\"{}\" stroke-width=\"0.5\"", colours::kLine));
    svg.text(x, bottom + 10.5, "middle", fmt::format("{}", tick * 20));
  }
  svg.text((kLeft + right) / 2, bottom + 20.5, "middle", "share of cycles (%)");
}

}  // namespace

std::string draw_breakdown_picture(const RunTables& run) {
  const std::vector<Bar> bars = bars_of(run);
  const std::vector<LegendItem> legend = legend_of(bars.front(), run);
  const double right = kPictureWidth - kPictureRight;
  const double pitch = std::clamp(kBarsHeight / static_cast<double>(bars.size()), kLeastPitch, kMostPitch);
  const double bottom = kTop + pitch * static_cast<double>(bars.size());
  const double legend_top = bottom + kAxisHeight + 3;
  Svg svg(kPictureWidth, legend_top + draw_legend(nullptr, kTop, legend_top, legend), "pt", kPictureFont);
  svg.title(fmt::format("{}: where the cycles went", run.summary.at("name").get<std::string>()));
  draw_axis(svg, right, bottom);
  // With thin bars only some have a name, as many as there is room for; the whole always has.
  const auto every = static_cast<std::size_t>(std::max(1.0, nice_step(10 / pitch, 1)));
  for (std::size_t row = 0; row < bars.size(); ++row) {
    const double y = kTop + pitch * static_cast<double>(row);
    double x = kLeft;
    for (std::size_t i = 0; i < causes().size(); ++i) {
      const double width = share(bars[row], i, run) * (right - kLeft);
      if (bars[row].cycles[i] == 0) continue;
      svg.rect(x, y + 0.1 * pitch, width, 0.8 * pitch, causes()[i].colour, fmt::format("class=\"{}\"", causes()[i].name));
      x += width;
    }
    const bool named = row == 0 || (row > every / 2 && (row - 1) % every == 0) || pitch >= 10;
    if (named) svg.text(kLeft - 4, y + pitch / 2 + 2.6, "end", bars[row].name);
  }
  draw_legend(&svg, kTop, legend_top, legend);
  return svg.take();
}

}  // namespace wafersim::report
