#pragma once

#include <vector>

#include "sim/measurements.h"
#include "workloads/trace.h"

namespace wafersim::sim {

/// Collects when steps ran, over the tiles of a stage group. Tiles of a group have the same sequence of steps.
class StepRecorder {
 public:
  StepRecorder(const workloads::Trace& trace, bool keep_steps);

  /// `first_compute`: when the tile started the first operation of the step, kNever without one.
  void step_done(const workloads::TileBinding& binding, std::uint32_t index, const workloads::Step& step, Cycle opened,
                 Cycle first_compute, Cycle now);

  /// When each completed iteration ended, in order.
  std::vector<Cycle> iteration_ends() const;
  /// When the last step so far ended.
  Cycle last_end() const;
  std::vector<StepMeasurement> take_steps();

 private:
  struct Sum {
    StepMeasurement measurement;
    Cycle total = 0;
  };
  bool keep_steps_;
  std::vector<std::vector<Sum>> groups_;
  struct Iteration {
    std::uint64_t steps_left = 0;  ///< over all tiles
    Cycle end = 0;
  };
  std::vector<Iteration> iterations_;
};

}  // namespace wafersim::sim
