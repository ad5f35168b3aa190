#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plan.h"
#include "workloads/trace.h"

namespace wafersim::workloads {

/// One turn of a pipeline stage: the forward or backward pass of one microbatch through all of the stage's
/// layers.
struct ScheduleSlot {
  Pass pass = Pass::forward;
  std::int32_t microbatch = 0;
  bool operator==(const ScheduleSlot&) const = default;
};

/// The turns of stage `stage` of `stages` in one iteration of `microbatches`, in order.
/// gpipe: every forward, then every backward, microbatches ascending (Huang et al. 2019).
/// 1f1b: min(stages - stage - 1, microbatches) forwards to fill the pipeline, then a forward and a backward
/// in turns, then the backwards that are left (PipeDream-Flush, Narayanan et al. 2021).
std::vector<ScheduleSlot> schedule_order(PipelineSchedule schedule, int stage, int stages,
                                         std::int32_t microbatches);

/// The most microbatches whose forward has started and whose backward has not ended on a stage: gpipe all of
/// them, 1f1b min(stages - stage, microbatches).
std::int32_t microbatches_in_flight(PipelineSchedule schedule, int stage, int stages,
                                    std::int32_t microbatches);

/// The layers [first, first + count) of a stage: layers / stages each, the first (layers mod stages) stages
/// one more.
struct LayerRange {
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int32_t last() const { return first + count - 1; }
};
LayerRange stage_layers(int layers, int stage, int stages);

}  // namespace wafersim::workloads
