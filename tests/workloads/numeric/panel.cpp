#include "tests/workloads/numeric/panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace wafersim::workloads::numeric {

void Index::insert(std::uint64_t first, std::uint64_t count) {
  if (places_.size() < first + count) places_.resize(first + count, kNowhere);
  for (std::uint64_t number = first; number < first + count; ++number) {
    if (places_[number] != kNowhere) continue;
    places_[number] = numbers_.size();
    numbers_.push_back(number);
  }
}

void Index::missing(std::uint64_t number) {
  throw MeaningFault(fmt::format("row or column {} is not among those named", number));
}

Panel make_panel(const StepValues& step, const Views& views) {
  Panel panel;
  for (const View& view : views) {
    if (view.region.area() == 0) continue;
    panel.views.push_back(view);
    panel.depth = step.depth(view);
    panel.rows.insert(view.region.row, view.region.rows);
    panel.cols.insert(view.region.col, view.region.cols);
  }
  panel.values = Matrix(panel.rows.size(), panel.cols.size() * panel.depth);
  return panel;
}

Panel read_panel(const StepValues& step, const Views& views) {
  Panel panel = make_panel(step, views);
  std::uint64_t area = 0;
  for (const View& view : panel.views) {
    const Matrix part = step.read(view);
    area += part.data.size();
    if (std::any_of(part.data.begin(), part.data.end(), [](double value) { return std::isnan(value); })) {
      throw MeaningFault(fmt::format("reads values of '{}' that are not there", step.name(view)));
    }
    set_part(panel, view, part);
  }
  if (area != panel.values.data.size()) throw MeaningFault("views do not make up a matrix");
  return panel;
}

void set_part(Panel& panel, const View& view, const Matrix& part) {
  const std::size_t first = panel.cols.at(view.region.col) * panel.depth;
  for (std::size_t i = 0; i < part.rows; ++i) {
    const std::size_t row = panel.rows.at(view.region.row + i);
    for (std::size_t j = 0; j < part.cols; ++j) panel.values(row, first + j) = part(i, j);
  }
}

Matrix part_of(const Panel& panel, const View& view) {
  const std::size_t first = panel.cols.at(view.region.col) * panel.depth;
  Matrix part(view.region.rows, view.region.cols * panel.depth);
  for (std::size_t i = 0; i < part.rows; ++i) {
    const std::size_t row = panel.rows.at(view.region.row + i);
    for (std::size_t j = 0; j < part.cols; ++j) part(i, j) = panel.values(row, first + j);
  }
  return part;
}

}  // namespace wafersim::workloads::numeric
