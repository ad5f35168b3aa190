#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "report/picture_parts.h"
#include "report/terminal_canvas.h"

namespace wafersim::report {
namespace {

constexpr double kLeft = 26;
constexpr double kTop = 4;
constexpr double kMostHeight = 290;  ///< of the mesh
constexpr double kMostCell = 36;
/// Between wafers that lie side by side, in cells.
constexpr double kWaferGap = 0.8;
constexpr double kBarHeight = 7;
constexpr double kBarBlock = 33;  ///< a colour bar with ticks and caption
/// Values that differ by less, as a share of the whole or of the largest, look alike: colours are for differences that matter.
constexpr double kSmallestSpread = 0.01;

/// A share of the cycles of the run, bytes, or joules.
enum class Quantity { share, bytes, joules };

struct Measure {
  const char* name;
  const char* label;
  std::vector<const char*> columns;  ///< of tiles.csv or links.csv, summed
  Quantity quantity = Quantity::share;
};

const std::vector<Measure>& measures() {
  static const std::vector<Measure> all = {
      {"compute", "compute", {"compute_cycles"}},
      {"exposed",
       "exposed communication",
       {"exposed_tp_cycles", "exposed_tatp_cycles", "exposed_sp_cycles", "exposed_ep_cycles", "exposed_dp_cycles",
        "exposed_pp_cycles"}},
      {"exposed_tp", "exposed communication, tp", {"exposed_tp_cycles"}},
      {"exposed_tatp", "exposed communication, tatp", {"exposed_tatp_cycles"}},
      {"exposed_sp", "exposed communication, sp", {"exposed_sp_cycles"}},
      {"exposed_ep", "exposed communication, ep", {"exposed_ep_cycles"}},
      {"exposed_dp", "exposed communication, dp", {"exposed_dp_cycles"}},
      {"exposed_pp", "exposed communication, pp", {"exposed_pp_cycles"}},
      {"bubble", "bubble", {"bubble_cycles"}},
      {"memory_stall", "memory stall", {"memory_stall_cycles"}},
      {"idle", "idle", {"idle_cycles"}},
      {"communicating", "messages in flight", {"communicating_cycles"}},
      {"matrix", "matrix engine busy", {"matrix_busy_cycles"}},
      {"vector", "vector engine busy", {"vector_busy_cycles"}},
      {"peak_memory", "peak memory", {"peak_bytes"}, Quantity::bytes},
      {"bytes_sent", "bytes sent", {"bytes_sent"}, Quantity::bytes},
      {"bytes_received", "bytes received", {"bytes_received"}, Quantity::bytes},
      {"energy", "energy", {"energy_joules"}, Quantity::joules}};
  return all;
}

const std::vector<Measure>& measures_of_links() {
  static const std::vector<Measure> all = {{"utilization", "link utilization", {"busy_cycles"}},
                                           {"bytes", "bytes of links", {"bytes"}, Quantity::bytes},
                                           {"energy", "energy of links", {"energy_joules"}, Quantity::joules}};
  return all;
}

std::vector<std::string> names_of(const std::vector<Measure>& all) {
  std::vector<std::string> names;
  for (const Measure& measure : all) names.emplace_back(measure.name);
  return names;
}

const Measure& find(const std::vector<Measure>& all, const std::string& name, const char* option) {
  for (const Measure& measure : all) {
    if (measure.name == name) return measure;
  }
  throw Error(ExitStatus::scenario, fmt::format("{} {}: there is no such measure; valid: {}", option, name, join(names_of(all))));
}

/// What the colours of a ramp mean.
struct Scale {
  std::string label;
  Quantity quantity = Quantity::share;
  std::span<const char* const> ramp;
  double low = 0;
  double high = 1;

  std::string colour(double value) const { return ramp_colour(ramp, (value - low) / (high - low)); }
  std::string text(double value) const {
    switch (quantity) {
      case Quantity::bytes:
        return human_bytes(static_cast<Bytes>(std::llround(value)));
      case Quantity::joules:
        return human_unit(value, "J");
      case Quantity::share:
        break;
    }
    return percent(value);
  }
};

/// From the smallest to the largest value, but never so narrow that noise gets colours.
Scale scale_of(std::string label, Quantity quantity, std::span<const char* const> ramp, const std::vector<double>& values) {
  Scale scale{std::move(label), quantity, ramp};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  scale.low = values.empty() ? 0 : *low;
  scale.high = values.empty() ? 0 : *high;
  const double smallest = quantity == Quantity::bytes ? 1.0 : 1e-15;
  const double least = quantity == Quantity::share ? kSmallestSpread : std::max(kSmallestSpread * scale.high, smallest);
  if (scale.high - scale.low < least) {
    const double middle = std::max((scale.low + scale.high) / 2, least / 2);
    scale.low = middle - least / 2;
    scale.high = middle + least / 2;
  }
  return scale;
}

struct Layout {
  double left = 0;  ///< of the mesh
  double cell = 0;  ///< from one tile to the next
  double tile = 0;  ///< side of the square
  double right = 0;
  double bottom = 0;

  topology::Shape wafer;    ///< tiles of one
  topology::Shape grid;     ///< of wafers

  /// Of places within tiles, which are no whole numbers, or of the edges of the mesh.
  double x(double column) const { return left + cell * begin(column, wafer.cols, grid.cols); }
  double y(double row) const { return kTop + cell * begin(row, wafer.rows, grid.rows); }
  static double begin(double place, int each, int count) {
    return place + kWaferGap * std::min(std::floor(place / each), count - 1.0);
  }
};

Layout layout_of(const RunTables& run, bool links) {
  const topology::Shape& mesh = run.mesh;
  Layout layout;
  layout.wafer = run.wafer;
  layout.grid = {mesh.rows / run.wafer.rows, mesh.cols / run.wafer.cols};
  const double across = Layout::begin(mesh.cols, run.wafer.cols, layout.grid.cols);
  const double down = Layout::begin(mesh.rows, run.wafer.rows, layout.grid.rows);
  const double room = kPictureWidth - kPictureRight - kLeft;
  layout.cell = std::min({room / across, kMostHeight / down, kMostCell});
  layout.tile = layout.cell * (links ? 0.56 : layout.cell >= 4 ? 0.92 : 1);
  layout.left = kLeft + (room - layout.cell * across) / 2;
  layout.right = layout.x(mesh.cols);
  layout.bottom = layout.y(mesh.rows);
  return layout;
}

void draw_tiles(Svg& svg, const RunTables& run, const Layout& layout, const std::vector<double>& values, const Scale& scale,
                const std::set<std::uint64_t>& dead) {
  const auto cols = static_cast<std::uint64_t>(run.mesh.cols);
  const double edge = (layout.cell - layout.tile) / 2;
  const auto box = [&](SvgBoxes& boxes, const std::string& colour, std::uint64_t place) {
    boxes.add(colour, layout.x(static_cast<double>(place % cols)) + edge, layout.y(static_cast<double>(place / cols)) + edge,
              layout.tile, layout.tile);
  };
  SvgBoxes used;
  std::set<std::uint64_t> places;
  for (std::size_t row = 0; row < values.size(); ++row) {
    const std::uint64_t place = run.place(run.tiles, row);
    places.insert(place);
    box(used, scale.colour(values[row]), place);
  }
  SvgBoxes unused;
  SvgBoxes broken;
  const std::uint64_t all = cols * static_cast<std::uint64_t>(run.mesh.rows);
  for (std::uint64_t place = 0; place < all; ++place) {
    if (places.contains(place)) continue;
    dead.contains(place) ? box(broken, colours::kDead, place) : box(unused, colours::kUnused, place);
  }
  used.draw(svg, "tile");
  unused.draw(svg, "unused");
  broken.draw(svg, "dead");
}

/// A link is a stripe in the gap beside the last tile before its target, so both directions have one of their own. An express
/// link is a thin one over the tiles between.
void draw_links(Svg& svg, const RunTables& run, const Layout& layout, const std::vector<double>& values, const Scale& scale) {
  const std::size_t direction = run.links.column("direction");
  const double gap = layout.cell - layout.tile;
  const double wide = 0.3 * layout.tile;
  SvgBoxes boxes;
  for (std::size_t row = 0; row < values.size(); ++row) {
    const auto cols = static_cast<std::uint64_t>(run.mesh.cols);
    const auto at = [&](std::uint64_t place) {
      return std::pair(layout.x(static_cast<double>(place % cols)) + layout.cell / 2,
                       layout.y(static_cast<double>(place / cols)) + layout.cell / 2);
    };
    const std::string_view towards = run.links.text(row, direction);
    const auto [from_x, from_y] = at(run.place(run.links, row));
    const auto [to_x, to_y] = at(run.target_place(row));
    const double half = layout.tile / 2;
    const double lane = 0.08 * layout.tile;
    const std::string colour = scale.colour(values[row]);
    constexpr double kThin = 0.3;
    if (towards.starts_with("express")) {
      const double left = std::min(from_x, to_x), top = std::min(from_y, to_y);
      const double side = (from_x < to_x || from_y > to_y ? -1 : 1) * 3 * lane;
      if (from_y == to_y) boxes.add(colour, left, from_y + side, std::abs(to_x - from_x), kThin * wide);
      if (from_x == to_x) boxes.add(colour, from_x + side, top, kThin * wide, std::abs(to_y - from_y));
      continue;
    }
    // Links that lead back round the edge begin at their source.
    const double right = towards == "east" ? 1 : towards == "west" ? -1 : 0;
    const double down = towards == "south" ? 1 : towards == "north" ? -1 : 0;
    const bool ahead = (to_x - from_x) * right + (to_y - from_y) * down > 0;
    const double x = ahead ? to_x - right * layout.cell : from_x, y = ahead ? to_y - down * layout.cell : from_y;
    if (towards == "east") boxes.add(colour, x + half, y - lane - wide, gap, wide);
    if (towards == "west") boxes.add(colour, x - half - gap, y + lane, gap, wide);
    if (towards == "south") boxes.add(colour, x + lane, y + half, wide, gap);
    if (towards == "north") boxes.add(colour, x - lane - wide, y - half - gap, wide, gap);
  }
  boxes.draw(svg, "link");
}

/// Columns and rows, as many as there is room for.
void draw_axes(Svg& svg, topology::Shape mesh, const Layout& layout) {
  const auto every = [&](double room) { return std::max(1, static_cast<int>(nice_step(room / layout.cell, 1))); };
  for (int column = 0; column < mesh.cols; column += every(16)) {
    svg.text(layout.x(column + 0.5), layout.bottom + 9, "middle", fmt::format("{}", column));
  }
  for (int row = 0; row < mesh.rows; row += every(9)) {
    svg.text(layout.left - 3, layout.y(row + 0.5) + 2.6, "end", fmt::format("{}", row));
  }
  svg.text((layout.left + layout.right) / 2, layout.bottom + 18, "middle", "column");
  svg.text_upwards(layout.left - 18, (kTop + layout.bottom) / 2, "row");
}

void draw_bar(Svg& svg, const Scale& scale, double top, std::string_view id) {
  const double left = kLeft;
  const double right = kPictureWidth - kPictureRight - 14;
  std::string stops;
  for (std::size_t i = 0; i < scale.ramp.size(); ++i) {
    stops += fmt::format("<stop offset=\"{:.4f}\" stop-color=\"{}\"/>",
                         static_cast<double>(i) / static_cast<double>(scale.ramp.size() - 1), scale.ramp[i]);
  }
  svg.raw(fmt::format("<defs><linearGradient id=\"{}\">{}</linearGradient></defs>", id, stops));
  svg.rect(left, top, right - left, kBarHeight, fmt::format("url(#{})", id));
  constexpr int kParts = 3;
  for (int i = 0; i <= kParts; ++i) {
    const double share = static_cast<double>(i) / kParts;
    const double x = left + share * (right - left);
    svg.line(x, top + kBarHeight, x, top + kBarHeight + 2, fmt::format("stroke=\"{}\" stroke-width=\"0.5\"", colours::kMuted));
    svg.text(x, top + kBarHeight + 9.5, "middle", scale.text(scale.low + share * (scale.high - scale.low)));
  }
  svg.text((left + right) / 2, top + kBarHeight + 19, "middle", scale.label);
}

std::vector<double> values_of(const RunTables& run, const CsvTable& table, const Measure& measure) {
  std::vector<double> values(table.rows());
  const double unit = measure.quantity == Quantity::share ? static_cast<double>(run_cycles(run)) : 1;
  for (const char* name : measure.columns) {
    const std::size_t column = table.column(name);
    if (measure.quantity == Quantity::joules && !values.empty() && table.text(0, column).empty()) {
      throw Error(ExitStatus::scenario,
                  fmt::format("{}: {} of this run is not modelled; figures of wafer.energy say what work costs",
                              table.path().string(), measure.label));
    }
    for (std::size_t row = 0; row < values.size(); ++row) {
      values[row] += measure.quantity == Quantity::joules ? table.number(row, column)
                                                          : static_cast<double>(table.whole(row, column)) / unit;
    }
  }
  return values;
}

std::set<std::uint64_t> dead_tiles(const RunTables& run) {
  std::set<std::uint64_t> places;
  const auto& wafer = run.summary.at("scenario").at("wafer");
  if (!wafer.contains("dead_tiles")) return places;
  for (const auto& tile : wafer.at("dead_tiles")) {
    const auto name = tile.get<std::string>();
    int x = 0;
    int y = 0;
    if (std::sscanf(name.c_str(), "tile_%d_%d", &x, &y) != 2) {
      throw IoError(fmt::format("cannot use summary.json: scenario.wafer.dead_tiles: '{}' is no tile", name));
    }
    places.insert(static_cast<std::uint64_t>(y) * static_cast<std::uint64_t>(run.mesh.cols) + static_cast<std::uint64_t>(x));
  }
  return places;
}

}  // namespace

std::vector<std::string> heatmap_measures() { return names_of(measures()); }
std::vector<std::string> link_measures() { return names_of(measures_of_links()); }

std::string draw_heatmap_picture(const RunTables& run, const std::string& name, const std::string& links) {
  const Measure& measure = find(measures(), name, "--measure");
  const std::vector<double> values = values_of(run, run.tiles, measure);
  const bool share = measure.quantity == Quantity::share;
  const Scale scale = scale_of(share ? fmt::format("{} (share of cycles)", measure.label) : measure.label, measure.quantity,
                               colours::kTileRamp, values);
  const std::set<std::uint64_t> dead = dead_tiles(run);
  std::vector<LegendItem> legend;
  const std::uint64_t all = static_cast<std::uint64_t>(run.mesh.cols) * static_cast<std::uint64_t>(run.mesh.rows);
  if (values.size() + dead.size() < all) legend.push_back({colours::kUnused, "unused tile"});
  if (!dead.empty()) legend.push_back({colours::kDead, "dead tile"});
  const Layout layout = layout_of(run, !links.empty());
  const double bar_top = layout.bottom + 25;
  const double legend_top = bar_top + (links.empty() ? 1 : 2) * kBarBlock;
  Svg svg(kPictureWidth, legend_top + draw_legend(nullptr, kLeft, legend_top, legend), "pt", kPictureFont);
  svg.title(fmt::format("{}: {} of the tiles of a {}x{} mesh", run.summary.at("name").get<std::string>(), measure.label,
                        run.mesh.rows, run.mesh.cols));
  if (!links.empty()) {
    const Measure& load = find(measures_of_links(), links, "--links");
    const std::vector<double> loads = values_of(run, run.links, load);
    const Scale link_scale = scale_of(load.label, load.quantity, colours::kLinkRamp, loads);
    draw_links(svg, run, layout, loads, link_scale);
    draw_bar(svg, link_scale, bar_top + kBarBlock, "links");
  }
  draw_tiles(svg, run, layout, values, scale, dead);
  draw_axes(svg, run.mesh, layout);
  draw_bar(svg, scale, bar_top, "tiles");
  draw_legend(&svg, kLeft, legend_top, legend);
  return svg.take();
}

}  // namespace wafersim::report
