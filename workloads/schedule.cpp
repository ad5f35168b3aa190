#include "workloads/schedule.h"

#include <algorithm>

namespace wafersim::workloads {

namespace {

/// How a stage takes its turns: `fill` forwards first, and `delay` backwards between a microbatch's backward and
/// its weight pass.
struct Rhythm {
  std::int32_t fill = 0;
  std::int32_t delay = 0;
};

/// Of the largest of the groups that an interleaved schedule makes.
std::int32_t largest_group(const PipelineShape& shape) {
  const std::int32_t groups = std::max(1, shape.microbatches / shape.stages);
  return (shape.microbatches + groups - 1) / groups;
}

Rhythm rhythm(const PipelineShape& shape, int stage) {
  const int behind = shape.stages - stage - 1;
  switch (shape.schedule) {
    case PipelineSchedule::gpipe:
      return {shape.microbatches, 0};
    case PipelineSchedule::one_f_one_b:
      return {behind, 0};
    case PipelineSchedule::interleaved:
      return {2 * behind + (shape.chunks - 1) * largest_group(shape), 0};
    case PipelineSchedule::zb_h1:
      return {behind, stage};
    case PipelineSchedule::zb_h2:
      return {2 * behind, 2 * stage};
  }
  return {};
}

/// The forward passes of a stage, the same on all.
std::vector<ScheduleSlot> forward_order(const PipelineShape& shape) {
  std::vector<ScheduleSlot> slots;
  slots.reserve(static_cast<std::size_t>(shape.microbatches) * static_cast<std::size_t>(shape.chunks));
  const std::int32_t groups = std::max(1, shape.microbatches / shape.stages);
  for (std::int32_t group = 0; group < groups; ++group) {
    const LayerRange members = stage_layers(shape.microbatches, group, groups);
    for (std::int32_t chunk = 0; chunk < shape.chunks; ++chunk) {
      for (std::int32_t i = 0; i < members.count; ++i) slots.push_back({Pass::forward, members.first + i, chunk});
    }
  }
  return slots;
}

/// The most passes that have started their forward and not ended their `end`.
std::int32_t most_between(const PipelineShape& shape, int stage, Pass end) {
  std::int32_t now = 0, most = 0;
  for (const ScheduleSlot& slot : schedule_order(shape, stage)) {
    if (slot.pass == Pass::forward) most = std::max(most, ++now);
    if (slot.pass == end) --now;
  }
  return most;
}

}  // namespace

PipelineShape pipeline_shape(const PlanSpec& plan, const TrainingSpec& training) {
  return {plan.schedule, plan.pp, static_cast<std::int32_t>(training.microbatches(plan.dp)), plan.virtual_stages};
}

bool splits_backward(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zb_h1 || schedule == PipelineSchedule::zb_h2;
}

std::vector<ScheduleSlot> schedule_order(const PipelineShape& shape, int stage) {
  const std::vector<ScheduleSlot> forwards = forward_order(shape);
  const Rhythm turns = rhythm(shape, stage);
  const auto total = forwards.size();
  const std::size_t fill = std::min(static_cast<std::size_t>(turns.fill), total);
  const bool split = splits_backward(shape.schedule);
  std::vector<ScheduleSlot> slots(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(fill));
  slots.reserve((split ? 3 : 2) * total);
  const auto weight_pass = [&](std::size_t index) {
    slots.push_back({Pass::weight, forwards[index].microbatch, forwards[index].chunk});
  };
  std::size_t weights = 0;
  for (std::size_t i = 0; i < total; ++i) {
    if (fill + i < total) slots.push_back(forwards[fill + i]);
    slots.push_back({Pass::backward, forwards[i].microbatch, shape.chunks - 1 - forwards[i].chunk});
    if (split && i >= static_cast<std::size_t>(turns.delay)) weight_pass(weights++);
  }
  while (split && weights < total) weight_pass(weights++);
  return slots;
}

std::int32_t passes_in_flight(const PipelineShape& shape, int stage) {
  return most_between(shape, stage, Pass::backward);
}

std::vector<std::int32_t> passes_in_flight(const PipelineShape& shape) {
  std::vector<std::int32_t> result;
  for (int stage = 0; stage < shape.stages; ++stage) result.push_back(passes_in_flight(shape, stage));
  return result;
}

std::int32_t passes_held(const PipelineShape& shape, int stage) {
  return most_between(shape, stage, splits_backward(shape.schedule) ? Pass::weight : Pass::backward);
}

LayerRange stage_layers(int layers, int stage, int stages) {
  const int each = layers / stages;
  const int longer = layers % stages;
  return {stage * each + std::min(stage, longer), each + (stage < longer ? 1 : 0)};
}

LayerRange group_of(const LayerRange& range, int size, std::int32_t layer) {
  const std::int32_t first = layer - (layer - range.first) % size;
  return {first, std::min<std::int32_t>(size, range.end() - first)};
}

LayerRange virtual_stage_layers(const PlanSpec& plan, int layers, int virtual_stage) {
  if (plan.layers_per_stage.empty()) return stage_layers(layers, virtual_stage, plan.pp * plan.virtual_stages);
  LayerRange range;
  for (int i = 0; i < virtual_stage; ++i) range.first += plan.layers_per_stage[static_cast<std::size_t>(i)];
  range.count = plan.layers_per_stage[static_cast<std::size_t>(virtual_stage)];
  return range;
}

}  // namespace wafersim::workloads
