#include "workloads/schedule.h"

#include <algorithm>

namespace wafersim::workloads {

namespace {

std::int32_t warm_up_forwards(PipelineSchedule schedule, int stage, int stages, std::int32_t microbatches) {
  if (schedule == PipelineSchedule::gpipe) return microbatches;
  return std::min<std::int32_t>(stages - stage - 1, microbatches);
}

}  // namespace

std::vector<ScheduleSlot> schedule_order(PipelineSchedule schedule, int stage, int stages,
                                         std::int32_t microbatches) {
  const std::int32_t warm_up = warm_up_forwards(schedule, stage, stages, microbatches);
  std::vector<ScheduleSlot> slots;
  slots.reserve(2 * static_cast<std::size_t>(microbatches));
  for (std::int32_t i = 0; i < warm_up; ++i) slots.push_back({Pass::forward, i});
  for (std::int32_t i = 0; i < microbatches; ++i) {
    if (warm_up + i < microbatches) slots.push_back({Pass::forward, warm_up + i});
    slots.push_back({Pass::backward, i});
  }
  return slots;
}

std::int32_t microbatches_in_flight(PipelineSchedule schedule, int stage, int stages,
                                    std::int32_t microbatches) {
  return std::min(warm_up_forwards(schedule, stage, stages, microbatches) + 1, microbatches);
}

LayerRange stage_layers(int layers, int stage, int stages) {
  const int each = layers / stages;
  const int longer = layers % stages;
  return {stage * each + std::min(stage, longer), each + (stage < longer ? 1 : 0)};
}

}  // namespace wafersim::workloads
