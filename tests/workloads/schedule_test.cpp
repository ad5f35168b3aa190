#include "workloads/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace wafersim::workloads {
namespace {

std::string text(const std::vector<ScheduleSlot>& slots) {
  std::string result;
  for (const ScheduleSlot& slot : slots) {
    if (!result.empty()) result += ' ';
    result += (slot.pass == Pass::forward ? "F" : "B") + std::to_string(slot.microbatch);
  }
  return result;
}

/// Microbatches between their forward and their backward, at most.
std::int32_t peak_in_flight(const std::vector<ScheduleSlot>& slots) {
  std::int32_t now = 0, peak = 0;
  for (const ScheduleSlot& slot : slots) {
    now += slot.pass == Pass::forward ? 1 : -1;
    peak = std::max(peak, now);
  }
  return peak;
}

TEST(Schedule, GpipeRunsAllForwardsFirst) {
  for (int stage = 0; stage < 3; ++stage) {
    EXPECT_EQ(text(schedule_order(PipelineSchedule::gpipe, stage, 3, 3)), "F0 F1 F2 B0 B1 B2");
  }
}

TEST(Schedule, OneForwardOneBackwardFillsByDistanceFromTheEnd) {
  EXPECT_EQ(text(schedule_order(PipelineSchedule::one_f_one_b, 0, 3, 4)), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text(schedule_order(PipelineSchedule::one_f_one_b, 1, 3, 4)), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text(schedule_order(PipelineSchedule::one_f_one_b, 2, 3, 4)), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(Schedule, FewerMicrobatchesThanStages) {
  EXPECT_EQ(text(schedule_order(PipelineSchedule::one_f_one_b, 0, 8, 2)), "F0 F1 B0 B1");
  EXPECT_EQ(text(schedule_order(PipelineSchedule::one_f_one_b, 6, 8, 1)), "F0 B0");
}

TEST(Schedule, EachMicrobatchOnceForwardThenBackward) {
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (int stage = 0; stage < stages; ++stage) {
        for (std::int32_t microbatches = 1; microbatches <= 9; ++microbatches) {
          const auto slots = schedule_order(schedule, stage, stages, microbatches);
          ASSERT_EQ(slots.size(), 2U * static_cast<std::size_t>(microbatches));
          for (std::int32_t i = 0; i < microbatches; ++i) {
            const auto forward = std::find(slots.begin(), slots.end(), ScheduleSlot{Pass::forward, i});
            const auto backward = std::find(slots.begin(), slots.end(), ScheduleSlot{Pass::backward, i});
            ASSERT_NE(backward, slots.end());
            ASSERT_LT(forward, backward);
          }
          const std::int32_t expected =
              schedule == PipelineSchedule::gpipe ? microbatches : std::min(stages - stage, microbatches);
          EXPECT_EQ(peak_in_flight(slots), expected);
          EXPECT_EQ(microbatches_in_flight(schedule, stage, stages, microbatches), expected);
        }
      }
    }
  }
}

TEST(Schedule, RaggedLayersGoToTheFirstStages) {
  EXPECT_EQ(stage_layers(10, 0, 4).first, 0);
  EXPECT_EQ(stage_layers(10, 0, 4).count, 3);
  EXPECT_EQ(stage_layers(10, 1, 4).last(), 5);
  EXPECT_EQ(stage_layers(10, 2, 4).first, 6);
  EXPECT_EQ(stage_layers(10, 2, 4).count, 2);
  EXPECT_EQ(stage_layers(10, 3, 4).last(), 9);
}

}  // namespace
}  // namespace wafersim::workloads
