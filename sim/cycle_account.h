#pragma once

#include <array>

#include "sim/activity.h"
#include "sim/compiled_trace.h"
#include "sim/interfaces.h"
#include "sim/measurements.h"

namespace wafersim::sim {

/// Charges every cycle of one tile to exactly one cause (docs/model.md, "Where the cycles go"):
///  1. an operation computes: compute; 2. one runs but waits for memory: memory stall;
///  3. nothing runs and a message of the step in the foreground arrives: from its posting on, exposed communication of its
///     axis; before, what the chain of unposted messages ended in: bubble when that was a pipeline message or work of
///     another stage, exposed communication when it was a message in flight, else idle;
///  4. before the first and after the last operation with several stages: bubble; 5. idle.
/// While something runs, cycles are charged when that changes; else by the core's next evaluation after a message.
class CycleAccount {
 public:
  CycleAccount(std::int32_t stage, bool pipelined) : pipelined_(pipelined), stage_(stage) {}

  /// A message that the foreground waits for is there (update phase). Of several in one cycle the lowest (source, key)
  /// counts; while something runs none does. Returns whether the choice was between messages of one source and different
  /// iterations, whose order is not that of the iterations.
  bool arrived(const Arrival& arrival);
  /// Charges the wait that ended with a message of this cycle, if there was one. At the start of an evaluation.
  void settle(Cycle now) {
    if (has_arrival_) charge_arrival(now);
  }
  void engine_started(Engine engine, Cycle now, Cycle compute_end);
  void engine_stopped(Engine engine, Cycle now);
  /// Charges what is left at the end of the run.
  void finish(Cycle end);

  /// Tells `activity` of every charge.
  void record(TileActivity* activity) { activity_ = activity; }
  /// Its state between two cycles, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive);
  /// Cycles before this one are charged.
  Cycle charged() const { return charged_; }

  const CycleBreakdown& cycles() const { return cycles_; }
  /// What the tile last waited for, for the messages it sends.
  const WaitHistory& last_wait() const { return last_wait_; }

 private:
  bool anything_runs() const { return running_[0] || running_[1]; }
  void tell(CycleKind kind, Cycle from, Cycle to) const {
    if (activity_ != nullptr) [[unlikely]] activity_->charge(kind, from, to);
  }
  void charge_running(Cycle now);
  void charge_arrival(Cycle now);
  void charge_unposted(const Arrival& arrival, Cycle until);
  void charge_wait(Cycle until, WaitCause cause, workloads::Axis axis);
  void remember_wait(Cycle until, WaitCause cause, workloads::Axis axis);

  // In order of use.
  std::array<bool, kEngines> running_{};
  bool has_arrival_ = false;
  bool started_ = false;
  bool pipelined_;
  std::int32_t stage_;
  Cycle charged_ = 0;  ///< cycles before this one are charged
  TileActivity* activity_ = nullptr;
  std::array<Cycle, kEngines> compute_end_{};
  WaitHistory last_wait_{};
  CycleBreakdown cycles_;
  Arrival arrival_;
};

}  // namespace wafersim::sim
