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
      window_end_(Cycle{1} << shift_),
      tiles_(tiles * capacity_),
      links_(links * capacity_),
      last_(links) {}

void LoadWindows::charge(std::size_t tile, CycleKind kind, Cycle from, Cycle to) {
  if (from >= to) return;
  while (window_of(to - 1) >= capacity_) widen();
  const auto column = static_cast<std::size_t>(kind);
  if (period_) charge_again(tile, column, from, to);
  while (from < to) {
    const Cycle until = std::min(to, end_of_window(from));
    tiles_[tile * capacity_ + window_of(from)][column] += until - from;
    from = until;
  }
}

/// In all repetitions, window by window: each gets what all of them charge before its end, less what they do before its start.
void LoadWindows::charge_again(std::size_t tile, std::size_t kind, Cycle from, Cycle to) {
  const Cycle first = from + period_->length;
  const Cycle last = to + period_->length * period_->times;
  CyclesByKind* const row = &period_->tiles[tile * capacity_];
  const Cycle length = Cycle{1} << shift_;
  const Cycle whole_periods = length / period_->length, rest = length % period_->length;
  Cycle before = 0;
  Cycle end = end_of_window(first);
  // From the start of a repetition to the window's end: so many before it, and so far into it.
  std::uint64_t repetitions = (end - first) / period_->length;
  Cycle into = (end - first) % period_->length;
  for (std::size_t window = window_of(first); end < last; ++window, end += length) {
    const Cycle charged = repetitions * (to - from) + std::min(into, to - from);
    row[window][kind] += charged - before;
    before = charged;
    repetitions += whole_periods;
    into += rest;
    if (into < period_->length) continue;
    into -= period_->length;
    ++repetitions;
  }
  row[window_of(last - 1)][kind] += period_->times * (to - from) - before;
}

Cycle LoadWindows::next_sample_of_period() const {
  return period_ && period_->links.size() < period_->samples.size() ? period_->samples[period_->links.size()] : kNever;
}

Cycle LoadWindows::next_sample() const { return std::min(window_end_, next_sample_of_period()); }

void LoadWindows::sample(const std::vector<LinkLoad>& so_far) {
  const Cycle at = next_sample();
  if (at == next_sample_of_period()) period_->links.push_back(so_far);
  if (at == window_end_) end_window(so_far);
}

void LoadWindows::end_window(const std::vector<LinkLoad>& so_far) {
  const std::size_t window = window_of(window_end_ - 1);
  for (std::size_t link = 0; link < so_far.size(); ++link) {
    LinkLoad& cell = links_[link * capacity_ + window];
    cell.busy += so_far[link].busy - last_[link].busy;
    cell.queued += so_far[link].queued - last_[link].queued;
  }
  last_ = so_far;
  sampled_until_ = window_end_;
  window_end_ = end_of_window(sampled_until_);
  if (window_of(window_end_ - 1) >= capacity_) widen();
}

void LoadWindows::widen() {
  ++shift_;
  merge_pairs(tiles_, capacity_);
  merge_pairs(links_, capacity_);
  window_end_ = end_of_window(sampled_until_);
}

void LoadWindows::begin_period(Cycle start, Cycle length, std::uint64_t times, std::vector<LinkLoad> so_far) {
  const Cycle end = start + length * (times + 1);
  // The run goes on at least so long. From here on windows stay as they are until the period ends.
  while (window_of(end) >= capacity_) widen();
  period_ = std::make_unique<Period>(Period{start, length, times, {}, std::move(so_far), {}, {}});
  period_->tiles.resize(tiles_.size());
  for (Cycle window_end = end_of_window(start + length); window_end <= end; window_end += Cycle{1} << shift_) {
    period_->samples.push_back(start + 1 + (window_end - start - 1) % length);
  }
  std::sort(period_->samples.begin(), period_->samples.end());
  period_->samples.erase(std::unique(period_->samples.begin(), period_->samples.end()), period_->samples.end());
}

void LoadWindows::end_period(const std::vector<LinkLoad>& so_far) {
  const std::unique_ptr<Period> period = std::move(period_);
  require_invariant(period->links.size() == period->samples.size(), "links were not sampled where windows end in later periods");
  for (std::size_t i = 0; i < tiles_.size(); ++i) add(tiles_[i], period->tiles[i]);
  const Cycle end = period->start + period->length * (period->times + 1);
  while (window_end_ <= end) {
    const std::uint64_t repetition = (window_end_ - period->start - 1) / period->length;
    const Cycle like = window_end_ - repetition * period->length;
    const auto sample = std::lower_bound(period->samples.begin(), period->samples.end(), like) - period->samples.begin();
    std::vector<LinkLoad> loads = period->links[static_cast<std::size_t>(sample)];
    for (std::size_t link = 0; link < loads.size(); ++link) {
      loads[link].busy += (so_far[link].busy - period->at_start[link].busy) * repetition;
      loads[link].queued += (so_far[link].queued - period->at_start[link].queued) * repetition;
    }
    end_window(loads);
  }
}

void LoadWindows::copy_tile(std::size_t from, std::size_t to) {
  std::copy_n(&tiles_[from * capacity_], capacity_, &tiles_[to * capacity_]);
}

void LoadWindows::copy_link(std::size_t from, std::size_t to) {
  std::copy_n(&links_[from * capacity_], capacity_, &links_[to * capacity_]);
  last_[to] = last_[from];
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
