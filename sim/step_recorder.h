#pragma once

#include <vector>

#include "sim/measurements.h"
#include "workloads/trace.h"

namespace wafersim::sim {

/// When a tile did a step.
struct StepTimes {
  Cycle opened = 0;
  Cycle first_compute = kNever;  ///< the start of its first operation; kNever without one
  Cycle done = 0;
};

/// Is told of the steps that are opened and done.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void step_opened(const workloads::TileBinding& binding, std::uint32_t index) = 0;
  virtual void step_done(const workloads::TileBinding& binding, std::uint32_t index, const StepTimes& times) = 0;
};

/// Collects when steps ran, over the tiles of a stage group. Tiles of a group have the same sequence of steps.
class StepRecorder {
 public:
  StepRecorder(const workloads::Trace& trace, bool keep_steps);

  void step_opened(const workloads::TileBinding& binding, std::uint32_t index) {
    if (observer_ != nullptr) observer_->step_opened(binding, index);
  }
  void step_done(const workloads::TileBinding& binding, std::uint32_t index, const workloads::Step& step,
                 const StepTimes& times) {
    record(binding, index, step, times);
    if (observer_ != nullptr) observer_->step_done(binding, index, times);
  }
  /// As step_done(), untold.
  void record(const workloads::TileBinding& binding, std::uint32_t index, const workloads::Step& step,
              const StepTimes& times);
  /// It must outlive this; null for none.
  void set_observer(StepObserver* observer) { observer_ = observer; }
  /// All replicas did what the first one did, which is all that was done. `stages` are those of a replica.
  void copy_first_replica(int replicas, int stages);

  /// When each completed iteration ended, in order.
  std::vector<Cycle> iteration_ends() const;
  /// When the last step so far ended.
  Cycle last_end() const;
  std::vector<StepMeasurement> take_steps();

  /// Its state, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive);

 private:
  struct Sum {
    StepMeasurement measurement;
    Cycle total = 0;
  };
  bool keep_steps_;
  StepObserver* observer_ = nullptr;
  std::vector<std::vector<Sum>> groups_;
  struct Iteration {
    std::uint64_t steps = 0;       ///< over all tiles
    std::uint64_t steps_left = 0;
    Cycle end = 0;
  };
  std::vector<Iteration> iterations_;
};

}  // namespace wafersim::sim
