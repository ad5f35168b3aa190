#include <gtest/gtest.h>

#include <algorithm>

#include "tests/workloads/schedule_player.h"

/// The bubbles of pipelines of p equal stages, m microbatches and F, B, W cycles for a stage's forward pass, input
/// gradients and weight gradients of one microbatch (Qi et al. 2023, table 2; Narayanan et al. 2021, section 2.2).
/// The largest idle time of a stage between its own first start and last end is that of the first stage.
namespace wafersim::workloads {
namespace {

using enum PipelineSchedule;

/// W <= min(F, B), all divisible by 1 .. 4.
const std::vector<PassCycles> kCycles = {{12, 12, 12}, {12, 12, 0},  {24, 36, 24}, {36, 24, 24}, {12, 48, 12},
                                         {60, 48, 12}, {60, 108, 48}, {108, 60, 60}, {120, 144, 108}, {24, 24, 12}};

Cycle largest_idle(const PipelineShape& shape, const PassCycles& cycles) {
  const Played played = play(shape, cycles);
  const Cycle largest = *std::max_element(played.idle.begin(), played.idle.end());
  EXPECT_EQ(played.idle.front(), largest) << describe(shape);
  const Cycle all = static_cast<Cycle>(shape.microbatches) * (cycles.forward + cycles.backward + cycles.weight);
  // The first stage ends last, unless weight passes fill the time in which the others wait for it to start.
  EXPECT_GE(played.makespan, all + largest) << describe(shape);
  EXPECT_LE(played.makespan, all + largest +
                                 (shape.schedule == zb_h2 ? static_cast<Cycle>(shape.stages - 1) * cycles.forward : 0))
      << describe(shape);
  return largest;
}

Cycle formula(const PipelineShape& shape, const PassCycles& c) {
  const auto others = static_cast<Cycle>(shape.stages - 1);
  switch (shape.schedule) {
    case gpipe:
    case one_f_one_b:
      return others * (c.forward + c.backward + c.weight);
    case interleaved:
      return others * (c.forward + c.backward + c.weight) / static_cast<Cycle>(shape.chunks);
    case zb_h1:
      return others * (c.forward + c.backward - c.weight);
    case zb_h2:
      return others * (c.forward + c.backward - 2 * c.weight);
  }
  return 0;
}

/// From how many microbatches on the formula holds.
bool holds(const PipelineShape& shape) {
  if (shape.schedule == interleaved) return shape.microbatches % shape.stages == 0;
  if (shape.schedule == zb_h1) return shape.microbatches >= shape.stages;
  return shape.schedule != zb_h2 || shape.microbatches >= 2 * shape.stages - 1;
}

TEST(ScheduleTime, BubblesEqualTheirFormulas) {
  std::size_t cases = 0;
  for (const PipelineShape& shape : small_shapes(6, 19, 4)) {
    if (!holds(shape)) continue;
    for (const PassCycles& cycles : kCycles) {
      ASSERT_EQ(largest_idle(shape, cycles), formula(shape, cycles))
          << describe(shape) << cycles.forward << " " << cycles.backward << " " << cycles.weight;
      ++cases;
    }
  }
  EXPECT_GT(cases, 4000U);
}

TEST(ScheduleTime, ASplitBackwardIsNeverSlowerThanOneForwardOneBackward) {
  for (const PipelineShape& shape : small_shapes(6, 19, 4)) {
    if (holds(shape) || shape.schedule == interleaved) continue;
    for (const PassCycles& cycles : kCycles) {
      const PipelineShape plain{one_f_one_b, shape.stages, shape.microbatches};
      EXPECT_LE(play(shape, cycles).makespan, play(plain, cycles).makespan) << describe(shape);
    }
  }
}

/// The last stage of 1f1b never waits between its first start and its last end, the first waits for all others.
TEST(ScheduleTime, OneForwardOneBackwardIdlesByDistanceFromTheEnd) {
  const Played played = play({one_f_one_b, 4, 9}, {2, 3, 1});
  EXPECT_EQ(played.idle, (std::vector<Cycle>{18, 12, 6, 0}));
}

}  // namespace
}  // namespace wafersim::workloads
