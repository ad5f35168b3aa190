#pragma once

#include <cstddef>
#include <memory>
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

  /// When links are to be sampled next.
  Cycle next_sample() const;
  /// What links did since the start of the run, up to next_sample().
  void sample(const std::vector<LinkLoad>& so_far);

  /// The last window ends with the run, where the last sample is due.
  void end_at(Cycle end) { window_end_ = sampled_until_ < end ? end : kNever; }
  WindowMeasurement take(Cycle end) const;

  // Periods that come again, see Recorders. Between begin_period() and one of the other two links are sampled more often.
  /// Behind cycle `start`: what is charged and sampled in the `length` cycles from here on will come `times` times more.
  /// `so_far` is what links did up to here.
  void begin_period(Cycle start, Cycle length, std::uint64_t times, std::vector<LinkLoad> so_far);
  /// Behind the last of these cycles: it has come so often, and the next cycle is the one behind that.
  void end_period(const std::vector<LinkLoad>& so_far);
  /// It does not come again.
  void drop_period() { period_.reset(); }

  /// Tiles and links of a part of the machine did what those of another did.
  void copy_tile(std::size_t from, std::size_t to);
  void copy_link(std::size_t from, std::size_t to);

 private:
  struct Period {
    Cycle start = 0;
    Cycle length = 0;
    std::uint64_t times = 0;
    std::vector<CyclesByKind> tiles;   ///< as tiles_: what all repetitions charge
    std::vector<LinkLoad> at_start;    ///< by link
    std::vector<Cycle> samples;        ///< cycles of the period in whose repetitions a window ends, ascending
    std::vector<std::vector<LinkLoad>> links;  ///< by sample, as far as they have been taken: by link
  };

  std::size_t window_of(Cycle cycle) const { return static_cast<std::size_t>(cycle >> shift_); }
  Cycle end_of_window(Cycle cycle) const { return Cycle{window_of(cycle) + 1} << shift_; }
  void widen();
  void charge_again(std::size_t tile, std::size_t kind, Cycle from, Cycle to);
  Cycle next_sample_of_period() const;
  void end_window(const std::vector<LinkLoad>& so_far);

  std::size_t capacity_;  ///< windows, even
  unsigned shift_;        ///< the length is 2^shift_
  Cycle sampled_until_ = 0;
  Cycle window_end_;  ///< of the first that is not sampled
  std::vector<CyclesByKind> tiles_;  ///< [tile * capacity_ + window]
  std::vector<LinkLoad> links_;      ///< [link * capacity_ + window]
  std::vector<LinkLoad> last_;       ///< by link, at sampled_until_
  std::unique_ptr<Period> period_;   ///< that will come again
};

}  // namespace wafersim::sim
