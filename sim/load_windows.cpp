#include "sim/load_windows.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace wafersim::sim {
namespace {

constexpr std::size_t kMostBytes = std::size_t{32} << 20;
constexpr std::size_t kMostWindows = 192;
constexpr std::size_t kFewestWindows = 4;
/// The shortest that windows are: no run is told in more detail.
constexpr unsigned kFirstShift = 6;

std::size_t windows_for(std::size_t tiles, std::size_t links) {
  const std::size_t row = tiles * sizeof(CyclesByKind) + links * sizeof(LinkLoad);
  return std::clamp(kMostBytes / std::max<std::size_t>(row, 1), kFewestWindows, kMostWindows) / 2 * 2;
}

void add(CyclesByKind& sum, const CyclesByKind& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}
void add(LinkLoad& sum, const LinkLoad& more) {
  sum.busy += more.busy;
  sum.queued += more.queued;
}

/// Rows of `capacity` cells: two neighbours become one.
template <class Cell>
void merge_pairs(std::vector<Cell>& cells, std::size_t capacity) {
  for (std::size_t row = 0; row < cells.size(); row += capacity) {
    for (std::size_t i = 0; i < capacity / 2; ++i) {
      Cell sum = cells[row + 2 * i];
      add(sum, cells[row + 2 * i + 1]);
      cells[row + i] = sum;
    }
    std::fill_n(cells.begin() + static_cast<std::ptrdiff_t>(row + capacity / 2), capacity / 2, Cell{});
  }
}

/// The first `count` cells of each row.
template <class Cell>
std::vector<Cell> first_of_rows(const std::vector<Cell>& cells, std::size_t capacity, std::size_t count) {
  std::vector<Cell> result;
  result.reserve(cells.size() / capacity * count);
  for (std::size_t row = 0; row < cells.size(); row += capacity) {
    const auto first = cells.begin() + static_cast<std::ptrdiff_t>(row);
    result.insert(result.end(), first, first + static_cast<std::ptrdiff_t>(count));
  }
  return result;
}

}  // namespace

LoadWindows::LoadWindows(std::size_t tiles, std::size_t links, Cycle cycles)
    : capacity_(windows_for(tiles, links)),
      shift_(std::max(kFirstShift, static_cast<unsigned>(std::bit_width(cycles / capacity_)))),
      next_sample_(Cycle{1} << shift_),
      tiles_(tiles * capacity_),
      links_(links * capacity_),
      last_(links) {}

void LoadWindows::charge(std::size_t tile, CycleKind kind, Cycle from, Cycle to) {
  if (from >= to) return;
  while (window_of(to - 1) >= capacity_) widen();
  const auto column = static_cast<std::size_t>(kind);
  while (from < to) {
    const std::size_t window = window_of(from);
    const Cycle until = std::min(to, Cycle{window + 1} << shift_);
    tiles_[tile * capacity_ + window][column] += until - from;
    from = until;
  }
}

void LoadWindows::add_link(std::size_t link, const LinkLoad& so_far) {
  LinkLoad& cell = links_[link * capacity_ + window_of(next_sample_ - 1)];
  cell.busy += so_far.busy - last_[link].busy;
  cell.queued += so_far.queued - last_[link].queued;
  last_[link] = so_far;
}

void LoadWindows::sampled() {
  sampled_until_ = next_sample_;
  next_sample_ = Cycle{window_of(sampled_until_) + 1} << shift_;
  if (window_of(next_sample_ - 1) >= capacity_) widen();
}

void LoadWindows::widen() {
  ++shift_;
  merge_pairs(tiles_, capacity_);
  merge_pairs(links_, capacity_);
  next_sample_ = Cycle{window_of(sampled_until_) + 1} << shift_;
}

WindowMeasurement LoadWindows::take(Cycle end) const {
  require_invariant(sampled_until_ >= end, "links were not sampled at the end of the run");
  WindowMeasurement result;
  result.length = Cycle{1} << shift_;
  result.count = end == 0 ? 0 : window_of(end - 1) + 1;
  result.tiles = first_of_rows(tiles_, capacity_, result.count);
  result.links = first_of_rows(links_, capacity_, result.count);
  return result;
}

}  // namespace wafersim::sim
