#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analysis/step_schedule.h"
#include "workloads/schedule.h"

namespace wafersim::analysis {

/// Predicts variants of a plan that differ in the number of microbatches and in the schedule, in microseconds each: what its
/// steps cost is found once, with all that depends on axes and mapping (StepCosts). A pass of a stage is then one slot, and an
/// iteration the schedule of these slots, to which everything outside of it (sums, optimizer, gathers) is added as the plan
/// itself has it.
class PlanEvaluator {
 public:
  /// A plan lowered with a microbatch for each of its stages at least, so that all passes follow each other in it as they do in
  /// longer iterations. All of `input` must outlive this. Throws PlanError for chunks (`virtual_stages` above 1) and for
  /// several iterations.
  explicit PlanEvaluator(const CostInput& input);

  /// The cycles of an iteration of so many microbatches. Schedules with weight passes of their own are variants of each other,
  /// and so are those without. Time: stages times microbatches. Throws PlanError for a schedule of the other kind, or no
  /// microbatches.
  Cycle cycles(std::int32_t microbatches, workloads::PipelineSchedule schedule);

 private:
  static constexpr std::size_t kPasses = 3;  ///< forward, backward, weight
  /// A pass of a microbatch through all layers of a stage.
  struct Slot {
    std::array<Cycle, kPasses + 1> after{};  ///< from the end of the slot before, by its pass; the last: at the start
    Cycle late = 0;                          ///< from the arrival of what the neighbour sends, all else being done
    std::int64_t sent = 0;                   ///< from the end until the neighbour has what it waits for
    bool waits = false;
  };
  using StageSlots = std::array<Slot, kPasses>;
  /// First and last step of a slot in the program of a stage.
  struct Span {
    std::uint32_t first = 0, last = 0;
    bool there = false;
  };

  StageSlots slots_of(int stage);
  Cycle first_after(int stage, const std::vector<std::pair<workloads::Pass, Span>>& spans, workloads::Pass before,
                    workloads::Pass pass);
  Cycle pipeline(std::int32_t microbatches, workloads::PipelineSchedule schedule);
  const std::vector<std::vector<workloads::ScheduleSlot>>& orders(std::int32_t microbatches,
                                                                  workloads::PipelineSchedule schedule);

  const workloads::Trace& trace_;
  workloads::PipelineSchedule schedule_;
  StepCosts costs_;
  std::vector<StageSlots> stages_;
  std::map<std::pair<std::int32_t, workloads::PipelineSchedule>, std::vector<std::vector<workloads::ScheduleSlot>>> orders_;
  std::vector<Cycle> forward_there_, backward_there_;  ///< by stage and microbatch: when it may use what its neighbour sends
  Cycle outside_ = 0;                                  ///< of the plan itself: its iteration less its schedule of slots
};

}  // namespace wafersim::analysis
