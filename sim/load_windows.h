#pragma once

#include <cstddef>
#include <vector>

#include "sim/measurements.h"

namespace wafersim::sim {

/// What tiles and links did over time, in windows of equal length. Their number is bounded: when time
/// outgrows it, two windows become one of twice the length.
class LoadWindows {
 public:
  /// The cells of all windows together take at most about 32 MiB, or four windows if those are larger. The run is expected
  /// to take at least `cycles`, so that windows need not begin much shorter than they end.
  LoadWindows(std::size_t tiles, std::size_t links, Cycle cycles = 0);

  /// The cycles [from, to) of a tile went to `kind`. Tiles are charged in any order of time.
  void charge(std::size_t tile, CycleKind kind, Cycle from, Cycle to);

  /// When links are to be sampled next: the end of a window.
  Cycle next_sample() const { return next_sample_; }
  /// What a link did since the start of the run, up to next_sample().
  void add_link(std::size_t link, const LinkLoad& so_far);
  /// All links have been added.
  void sampled();

  /// The last window ends with the run, where the last sample is due.
  void end_at(Cycle end) { next_sample_ = sampled_until_ < end ? end : kNever; }
  WindowMeasurement take(Cycle end) const;

 private:
  std::size_t window_of(Cycle cycle) const { return static_cast<std::size_t>(cycle >> shift_); }
  void widen();

  std::size_t capacity_;  ///< windows, even
  unsigned shift_;        ///< the length is 2^shift_
  Cycle sampled_until_ = 0;
  Cycle next_sample_;
  std::vector<CyclesByKind> tiles_;  ///< [tile * capacity_ + window]
  std::vector<LinkLoad> links_;      ///< [link * capacity_ + window]
  std::vector<LinkLoad> last_;       ///< by link, at sampled_until_
};

}  // namespace wafersim::sim
