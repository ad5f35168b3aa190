#pragma once

#include <chrono>
#include <string>

#include "base/units.h"
#include "sim/simulation.h"

namespace wafersim::apps {

/// "[######------]  42 %  12,345,678 cycles  1.2 s, about 1.7 s left": at most 79 columns. `elapsed` in
/// seconds.
std::string progress_line(const sim::Progress& progress, double elapsed);

/// Shows how far a simulation is on standard error, in place, when that is a terminal; otherwise does
/// nothing. The line is gone when the bar is.
class ProgressBar {
 public:
  explicit ProgressBar(bool wanted);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  bool shown() const { return shown_; }
  void update(const sim::Progress& progress);

 private:
  bool shown_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace wafersim::apps
