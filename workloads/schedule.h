#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plan.h"
#include "workloads/trace.h"

namespace wafersim::workloads {

/// What the order of passes depends on. A stage holds `chunks` runs of consecutive layers; chunk c of stage i is
/// virtual stage c x stages + i, and microbatches pass through the virtual stages in order. Only interleaved
/// schedules have more than one chunk.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int stages = 1;
  std::int32_t microbatches = 1;
  int chunks = 1;
};
PipelineShape pipeline_shape(const PlanSpec& plan, const TrainingSpec& training);

/// One turn of a pipeline stage: a pass of one microbatch through all layers of one of its chunks.
struct ScheduleSlot {
  Pass pass = Pass::forward;
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;
  bool operator==(const ScheduleSlot&) const = default;
};

/// The weight gradients have a pass of their own, which the backward pass (then: of input gradients) does not wait
/// for.
bool splits_backward(PipelineSchedule schedule);

/// The turns of stage `stage` in one iteration, in order. p stages, m microbatches, v chunks:
/// gpipe: every forward, then every backward, microbatches ascending (Huang et al. 2019).
/// 1f1b: min(p - i - 1, m) forwards to fill the pipeline, then a forward and a backward in turns, then the
/// backwards that are left (PipeDream-Flush, Narayanan et al. 2021).
/// interleaved: microbatches in groups; a group goes through the first chunk, then through the second, and so on;
/// backwards in the same order with the chunks reversed. min(2 (p - i - 1) + (v - 1) g, m v) forwards fill the
/// pipeline, g the largest group, then as 1f1b (Narayanan et al. 2021, section 2.2). Groups have p microbatches
/// where p divides m. Otherwise there are max(1, m div p) groups of equal size, the first ones one more: a group
/// smaller than p between others would make the first stage wait for a result of the last that itself waits for
/// the first.
/// zb_h1: as 1f1b, with the weight pass of a microbatch i backwards behind its own backward; those that are left
/// come last (Qi et al. 2023, figure 3 above).
/// zb_h2: min(2 (p - i) - 2, m) forwards to fill, and weight passes 2 i backwards behind (figure 3 below).
std::vector<ScheduleSlot> schedule_order(const PipelineShape& shape, int stage);

/// The most passes through a chunk on a stage whose forward has started and whose backward has not ended: gpipe m,
/// 1f1b and zb_h1 min(p - i, m), zb_h2 min(2 (p - i) - 1, m); interleaved, with p dividing m,
/// min(2 (p - i - 1) + (v - 1) p + 1, m v): on the first stage 1 + (p - 1) / (p v) of the p v that 1f1b has in flight
/// when its layers are cut into as many chunks.
std::int32_t passes_in_flight(const PipelineShape& shape, int stage);
/// By stage.
std::vector<std::int32_t> passes_in_flight(const PipelineShape& shape);
/// The same until the weight pass has ended: zb_h1 min(p, m), zb_h2 min(2 p - 1, m).
std::int32_t passes_held(const PipelineShape& shape, int stage);

/// The layers [first, first + count) of a stage: layers / stages each, the first (layers mod stages) stages
/// one more.
struct LayerRange {
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int32_t last() const { return first + count - 1; }
  std::int32_t end() const { return first + count; }
  bool contains(std::int32_t layer) const { return layer >= first && layer <= last(); }
};
LayerRange stage_layers(int layers, int stage, int stages);
/// `range` cut into groups of `size` layers, the last one of what is left: the one with `layer`.
LayerRange group_of(const LayerRange& range, int size, std::int32_t layer);
/// The layers of a virtual stage under a plan: as PlanSpec::layers_per_stage says, or as above.
LayerRange virtual_stage_layers(const PlanSpec& plan, int layers, int virtual_stage);

}  // namespace wafersim::workloads
