#include "workloads/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "tests/workloads/schedule_player.h"

namespace wafersim::workloads {
namespace {

using enum PipelineSchedule;

std::string text(const PipelineShape& shape, int stage) {
  std::string result;
  for (const ScheduleSlot& slot : schedule_order(shape, stage)) {
    if (!result.empty()) result += ' ';
    result += to_string(slot.pass) + std::to_string(slot.microbatch);
    if (shape.chunks > 1) result += static_cast<char>('a' + slot.chunk);
  }
  return result;
}

std::int32_t peak(const PipelineShape& shape, int stage, Pass end) {
  std::int32_t now = 0, most = 0;
  for (const ScheduleSlot& slot : schedule_order(shape, stage)) {
    if (slot.pass == Pass::forward) most = std::max(most, ++now);
    if (slot.pass == end) --now;
  }
  return most;
}

TEST(Schedule, GpipeRunsAllForwardsFirst) {
  for (int stage = 0; stage < 3; ++stage) EXPECT_EQ(text({gpipe, 3, 3}, stage), "F0 F1 F2 B0 B1 B2");
}

TEST(Schedule, OneForwardOneBackwardFillsByDistanceFromTheEnd) {
  EXPECT_EQ(text({one_f_one_b, 3, 4}, 0), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text({one_f_one_b, 3, 4}, 1), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text({one_f_one_b, 3, 4}, 2), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(Schedule, FewerMicrobatchesThanStages) {
  EXPECT_EQ(text({one_f_one_b, 8, 2}, 0), "F0 F1 B0 B1");
  EXPECT_EQ(text({one_f_one_b, 8, 1}, 6), "F0 B0");
}

TEST(Schedule, InterleavedSendsGroupsThroughTheChunks) {
  EXPECT_EQ(text({interleaved, 2, 4, 2}, 0), "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a");
  EXPECT_EQ(text({interleaved, 2, 4, 2}, 1), "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a");
}

TEST(Schedule, InterleavedSpreadsTheRestOverTheGroups) {
  const auto forwards = [](const PipelineShape& shape) {
    std::string all = text(shape, 0), kept;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] == 'F') kept += all.substr(i, all.find(' ', i) - i);
    }
    return kept;
  };
  EXPECT_EQ(forwards({interleaved, 2, 5, 2}), "F0aF1aF2aF0bF1bF2bF3aF4aF3bF4b");  // 3 and 2
  EXPECT_EQ(forwards({interleaved, 4, 3, 2}), "F0aF1aF2aF0bF1bF2b");              // one group
}

TEST(Schedule, ZeroBubbleDelaysTheWeightPasses) {
  EXPECT_EQ(text({zb_h1, 3, 4}, 0), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(text({zb_h1, 3, 4}, 1), "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3");
  EXPECT_EQ(text({zb_h1, 3, 4}, 2), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
  EXPECT_EQ(text({zb_h2, 2, 4}, 0), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(text({zb_h2, 2, 4}, 1), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

/// For any p, m and v: every pass once, its own passes in order, nobody waits for ever.
TEST(Schedule, EveryPassOnceInOrderAndNoStageWaitsForEver) {
  for (const PipelineShape& shape : small_shapes(7, 24, 4)) {
    std::size_t passes = 0;
    for (int stage = 0; stage < shape.stages; ++stage) {
      std::set<std::tuple<Pass, std::int32_t, std::int32_t>> seen;
      for (const ScheduleSlot& slot : schedule_order(shape, stage)) {
        ASSERT_TRUE(seen.emplace(slot.pass, slot.microbatch, slot.chunk).second) << describe(shape);
        ASSERT_TRUE(slot.pass == Pass::forward || seen.contains({Pass::forward, slot.microbatch, slot.chunk}));
        ASSERT_TRUE(slot.pass != Pass::weight || seen.contains({Pass::backward, slot.microbatch, slot.chunk}));
        ASSERT_TRUE(slot.microbatch >= 0 && slot.microbatch < shape.microbatches);
        ASSERT_TRUE(slot.chunk >= 0 && slot.chunk < shape.chunks);
      }
      const int kinds = splits_backward(shape.schedule) ? 3 : 2;
      ASSERT_EQ(seen.size(), static_cast<std::size_t>(kinds * shape.microbatches * shape.chunks)) << describe(shape);
      passes += seen.size();
    }
    ASSERT_EQ(play(shape, {1, 1, 1}).passes, passes) << describe(shape);
  }
}

/// The microbatches of one chunk come in ascending order in each pass, so that the last one completes its gradients.
TEST(Schedule, MicrobatchesAscend) {
  for (const PipelineShape& shape : small_shapes(5, 13, 3)) {
    for (int stage = 0; stage < shape.stages; ++stage) {
      std::map<std::pair<Pass, std::int32_t>, std::int32_t> next;
      for (const ScheduleSlot& slot : schedule_order(shape, stage)) {
        ASSERT_EQ(slot.microbatch, (next[{slot.pass, slot.chunk}]++)) << describe(shape);
      }
    }
  }
}

TEST(Schedule, PassesInFlight) {
  for (const PipelineShape& shape : small_shapes(6, 20, 4)) {
    const int p = shape.stages, v = shape.chunks;
    const std::int32_t m = shape.microbatches;
    for (int i = 0; i < p; ++i) {
      std::int32_t in_flight = 0, held = 0;
      switch (shape.schedule) {
        case gpipe:
          in_flight = held = m;
          break;
        case one_f_one_b:
          in_flight = held = std::min(p - i, m);
          break;
        case interleaved:
          if (m % p != 0) continue;
          in_flight = held = std::min(2 * (p - i - 1) + (v - 1) * p + 1, m * v);
          break;
        case zb_h1:
          in_flight = std::min(p - i, m);
          held = std::min(p, m);
          break;
        case zb_h2:
          in_flight = std::min(2 * (p - i) - 1, m);
          held = std::min(2 * p - 1, m);
          break;
      }
      EXPECT_EQ(passes_in_flight(shape, i), in_flight) << describe(shape) << i;
      EXPECT_EQ(passes_held(shape, i), held) << describe(shape) << i;
      EXPECT_EQ(peak(shape, i, Pass::backward), in_flight);
      EXPECT_EQ(peak(shape, i, splits_backward(shape.schedule) ? Pass::weight : Pass::backward), held);
    }
  }
}

/// Chunks of 1/v of a stage's layers: the first stage holds 1 + (p - 1) / (p v) times what it does with 1f1b
/// (Korthikanti et al. 2022, section 4.2.3).
TEST(Schedule, InterleavingCostsTheFirstStageMegatronsFactor) {
  for (int p = 1; p <= 8; ++p) {
    for (int v = 2; v <= 4; ++v) {
      const int held = passes_in_flight({interleaved, p, 4 * p, v}, 0);
      EXPECT_EQ(held * p, p * p * v + p * (p - 1));  // p v (1 + (p - 1) / (p v)), times p
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

TEST(Schedule, LayersOfVirtualStages) {
  PlanSpec plan;
  plan.pp = 2;
  plan.virtual_stages = 2;
  EXPECT_EQ(virtual_stage_layers(plan, 7, 0).count, 2);
  EXPECT_EQ(virtual_stage_layers(plan, 7, 3).first, 6);
  EXPECT_EQ(virtual_stage_layers(plan, 7, 3).count, 1);
  plan.layers_per_stage = {1, 4, 1, 1};
  EXPECT_EQ(virtual_stage_layers(plan, 7, 1).first, 1);
  EXPECT_EQ(virtual_stage_layers(plan, 7, 1).last(), 4);
  EXPECT_EQ(virtual_stage_layers(plan, 7, 3).first, 6);
}

}  // namespace
}  // namespace wafersim::workloads
