#pragma once

#include <array>
#include <optional>

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
/// The core calls settle() at the start of each of its evaluations, before it changes what runs.
class CycleAccount {
 public:
  CycleAccount(std::int32_t stage, bool pipelined) : stage_(stage), pipelined_(pipelined) {}

  /// A message that the foreground waits for is there (update phase). Of several in one cycle the lowest (source, key) counts.
  void arrived(const Arrival& arrival);
  /// Charges the cycles up to `now` as far as their cause is known.
  void settle(Cycle now);
  void engine_started(Engine engine, Cycle now, Cycle compute_end);
  void engine_stopped(Engine engine);
  /// Charges what is left at the end of the run.
  void finish(Cycle end);

  const CycleBreakdown& cycles() const { return cycles_; }
  /// What the tile last waited for, for the messages it sends.
  const WaitHistory& last_wait() const { return last_wait_; }

 private:
  void charge_running(Cycle now);
  void charge_arrival(const Arrival& arrival, Cycle now);
  void charge_unposted(const Arrival& arrival, Cycle until);
  void charge_wait(Cycle until, WaitCause cause, workloads::Axis axis);
  void remember_wait(Cycle until, WaitCause cause, workloads::Axis axis);

  std::int32_t stage_;
  bool pipelined_;
  CycleBreakdown cycles_;
  Cycle charged_ = 0;  ///< cycles before this one are charged
  std::array<bool, kEngines> running_{};
  std::array<Cycle, kEngines> compute_end_{};
  bool started_ = false;
  std::optional<Arrival> arrival_;
  WaitHistory last_wait_{};
};

}  // namespace wafersim::sim
