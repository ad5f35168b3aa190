#include "report/heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace wafersim::report {
namespace {

constexpr int kMostColumns = 64;
constexpr int kMostRows = 32;
constexpr int kLevels = 4;
/// Utilizations closer than this are drawn alike: shades are for differences that matter.
constexpr double kSmallestSpread = 0.01;

struct Level {
  Ink ink;
  const char* unicode;
  const char* ascii;
};
constexpr std::array<Level, kLevels> kScale = {
    {{Ink::heat1, "░", "-"}, {Ink::heat2, "▒", "+"}, {Ink::heat3, "▓", "*"}, {Ink::heat4, "█", "#"}}};

/// The mesh as it is drawn: cells of `step` x `step` tiles, so that distances keep their proportions.
struct Grid {
  int step = 1;
  int columns = 0;
  int rows = 0;
  std::vector<double> sum;  ///< of the utilizations of a cell's used tiles
  std::vector<int> used;    ///< how many they are
  double lowest = 1;
  double highest = 0;

  bool empty(std::size_t cell) const { return used[cell] == 0; }
  double mean(std::size_t cell) const { return sum[cell] / used[cell]; }
};

Grid make_grid(const sim::Measurements& measurements, const topology::Mesh& mesh) {
  Grid grid;
  grid.step = std::max(ceil_div(mesh.cols(), kMostColumns), ceil_div(mesh.rows(), kMostRows));
  grid.columns = ceil_div(mesh.cols(), grid.step);
  grid.rows = ceil_div(mesh.rows(), grid.step);
  const auto cells = static_cast<std::size_t>(grid.columns) * static_cast<std::size_t>(grid.rows);
  grid.sum.assign(cells, 0);
  grid.used.assign(cells, 0);
  for (const sim::TileMeasurement& tile : measurements.tiles) {
    const topology::Coord at = mesh.coord(tile.tile);
    const auto cell = static_cast<std::size_t>(at.y / grid.step * grid.columns + at.x / grid.step);
    const double length = static_cast<double>(std::max<Cycle>(measurements.cycles, 1));
    grid.sum[cell] += static_cast<double>(tile.cycles.compute) / length;
    ++grid.used[cell];
  }
  for (std::size_t cell = 0; cell < cells; ++cell) {
    if (grid.empty(cell)) continue;
    grid.lowest = std::min(grid.lowest, grid.mean(cell));
    grid.highest = std::max(grid.highest, grid.mean(cell));
  }
  return grid;
}

bool flat(const Grid& grid) { return grid.highest - grid.lowest < kSmallestSpread; }

const Level& level_of(const Grid& grid, double utilization) {
  if (flat(grid)) return kScale.back();
  const double position = (utilization - grid.lowest) / (grid.highest - grid.lowest);
  const int level = std::clamp(static_cast<int>(position * kLevels), 0, kLevels - 1);
  return kScale[static_cast<std::size_t>(level)];
}

void draw_legend(Canvas& canvas, const Grid& grid) {
  std::vector<std::pair<std::string, std::size_t>> words;
  const auto add = [&](Ink ink, const std::string& glyph, const std::string& caption) {
    words.emplace_back(canvas.paint(ink, glyph) + " " + caption, caption.size() + 2);
  };
  if (flat(grid)) {
    add(kScale.back().ink, canvas.glyph(kScale.back().unicode, kScale.back().ascii), percent(grid.highest));
  } else {
    for (int i = 0; i < kLevels; ++i) {
      const Level& level = kScale[static_cast<std::size_t>(i)];
      const double width = (grid.highest - grid.lowest) / kLevels;
      add(level.ink, canvas.glyph(level.unicode, level.ascii),
          fmt::format("{:.1f} to {}", 100 * (grid.lowest + i * width),
                      percent(grid.lowest + (i + 1) * width)));
    }
  }
  if (std::find(grid.used.begin(), grid.used.end(), 0) != grid.used.end()) {
    add(Ink::idle, canvas.glyph("·", "."), "unused");
  }
  canvas.wrapped(words);
}

}  // namespace

void draw_heatmap(Canvas& canvas, const sim::Measurements& measurements, const topology::Mesh& mesh) {
  const Grid grid = make_grid(measurements, mesh);
  const std::string scale =
      grid.step == 1 ? "" : fmt::format(" (a cell is the mean of {0}x{0} tiles)", grid.step);
  canvas.section(fmt::format("Compute utilization, {} mesh{}", topology::to_string(mesh.shape()), scale));
  // A character is about twice as high as it is wide: where there is room, two of them make a square cell.
  const std::size_t characters = 2 * grid.columns <= kMostColumns ? 2 : 1;
  for (int row = 0; row < grid.rows; ++row) {
    std::string text = "  ";
    for (int column = 0; column < grid.columns; ++column) {
      const auto cell = static_cast<std::size_t>(row * grid.columns + column);
      if (grid.empty(cell)) {
        text += canvas.paint(Ink::idle, repeated(canvas.glyph("·", "."), characters));
        continue;
      }
      const Level& level = level_of(grid, grid.mean(cell));
      text += canvas.paint(level.ink, repeated(canvas.glyph(level.unicode, level.ascii), characters));
    }
    canvas.line(text);
  }
  draw_legend(canvas, grid);
}

}  // namespace wafersim::report
