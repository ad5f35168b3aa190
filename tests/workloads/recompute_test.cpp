#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/layer.h"
#include "workloads/schedule.h"
#include "workloads/verify.h"

/// Full recomputation of groups of layers that keep one input together.
namespace wafersim::workloads {
namespace {

using enum PipelineSchedule;

constexpr PipelineSchedule kAll[] = {gpipe, one_f_one_b, interleaved, zb_h1, zb_h2};

LoweringFixture recomputing(int every, int layers = 6) {
  LoweringFixture setup;
  setup.model.layers = layers;
  setup.training.recompute = models::Recompute::full;
  setup.training.recompute_every = every;
  return setup;
}

LoweringFixture scheduled(PipelineSchedule schedule, int every) {
  LoweringFixture setup = recomputing(every, 14);
  setup.plan.pp = 2;
  setup.plan.schedule = schedule;
  setup.plan.virtual_stages = schedule == interleaved ? 2 : 1;
  setup.training.clip_grad = schedule != zb_h2;
  return setup;
}

TEST(Recompute, GroupsCutAChunk) {
  const LayerRange chunk{3, 7};  // 3 4 | 5 6 | 7 8 | 9
  for (std::int32_t layer = 3; layer <= 9; ++layer) {
    const LayerRange group = group_of(chunk, 2, layer);
    EXPECT_TRUE(group.contains(layer));
    EXPECT_EQ(group.first % 2, 1);
    EXPECT_EQ(group.count, layer == 9 ? 1 : 2);
    EXPECT_EQ(group_of(chunk, 100, layer).first, 3);
    EXPECT_EQ(group_of(chunk, 100, layer).count, 7);
    EXPECT_EQ(group_of(chunk, 1, layer).first, layer);
  }
}

/// F 0..5, then group by group from the end: its other layers again, then backwards.
TEST(Recompute, AGroupIsMadeAgainBeforeItsBackwardSteps) {
  LoweringFixture setup = recomputing(4);
  setup.layers_alone();
  setup.training.global_batch = setup.training.microbatch;
  setup.training.optimizer = Optimizer::none;
  const Trace trace = setup.lower().trace;
  std::string order;
  for (const Step& step : trace.programs[0].steps) {
    if (step.kind == StepKind::layer) order += std::string(to_string(step.pass)) + std::to_string(step.layer) + " ";
  }
  EXPECT_EQ(order, "F0 F1 F2 F3 F4 F5 R4 B5 B4 R0 R1 R2 B3 B2 B1 B0 ");
}

/// Every layer is made again once, whatever the groups; only the gathers of zero 3 come more often.
TEST(Recompute, WorkAndTrafficDoNotDependOnTheGroups) {
  const auto lowered = [](int every, int zero) {
    LoweringFixture setup = recomputing(every);
    setup.set_degrees(2, 2, 2);
    setup.plan.sp = SequenceParallel::megatron;
    setup.plan.zero = zero;
    return setup.lower().trace;
  };
  for (const int zero : {0, 3}) {
    const Trace one = lowered(1, zero);
    for (const int every : {2, 3, 5}) {
      const Trace trace = lowered(every, zero);
      EXPECT_EQ(gemm_flops(trace), gemm_flops(one));
      auto sent = sent_bytes(trace), expected = sent_bytes(one);
      const auto dp = static_cast<std::size_t>(Axis::dp);
      EXPECT_EQ(sent[dp] > expected[dp], zero == 3);
      sent[dp] = expected[dp] = 0;
      EXPECT_EQ(sent, expected);
    }
  }
}

/// A forward step leaves the first layer's input; a recompute step all that a layer without recomputation saves.
TEST(Recompute, StepsKeepWhatTheyShould) {
  LoweringFixture setup = recomputing(3);
  setup.plan.tp = 2;
  setup.plan.sp = SequenceParallel::megatron;
  const Trace trace = setup.lower().trace;
  const Shard shard = make_shard(setup.model, setup.training, setup.plan, {});
  const auto input = static_cast<std::int64_t>(shard.local_stream_bytes());
  const auto all = static_cast<std::int64_t>(saved_bytes_per_layer(setup.model, shard, models::Recompute::none));
  for (const Step& step : trace.programs[0].steps) {
    if (step.kind != StepKind::layer || step.pass == Pass::backward) continue;
    const std::int64_t net = net_bytes(trace.templates[step.step_template]);
    // What it hands on is the next layer's input.
    EXPECT_EQ(net, step.pass == Pass::recompute ? all : step.layer % 3 == 0 ? input : 0) << step.layer;
  }
}

TEST(Recompute, IsProvenUnderEverySchedule) {
  for (const PipelineSchedule schedule : kAll) {
    for (const int every : {2, 3, 50}) {
      for (const bool llama : {false, true}) {
        LoweringFixture setup = scheduled(schedule, every);
        setup.plan.tp = 2;
        setup.plan.sp = llama ? SequenceParallel::megatron : SequenceParallel::none;
        if (llama) setup.make_llama();
        setup.training.iterations = 2;
        EXPECT_EQ(wafersim::join(verify_trace(setup.lower().trace, setup.mesh()), "\n"), "")
            << to_string(schedule) << " " << every << llama;
      }
    }
  }
}

TEST(Recompute, GathersTheParametersOfZero3) {
  for (const PipelineSchedule schedule : kAll) {
    for (const int far : {0, 1, 4}) {
      LoweringFixture setup = scheduled(schedule, 3);
      setup.plan.dp = 2;
      setup.plan.zero = 3;
      setup.plan.overlap_far = far;
      const Trace trace = setup.lower().trace;
      EXPECT_EQ(wafersim::join(verify_trace(trace, setup.mesh()), "\n"), "") << to_string(schedule) << " " << far;
      // A gather for each step that uses a layer's weights.
      std::map<std::tuple<Pass, std::int32_t, std::int32_t>, int> gathers, uses;
      for (const Step& step : trace.programs[0].steps) {
        const std::tuple key{step.pass, step.layer, step.microbatch};
        if (step.kind == StepKind::parameter_gather && step.layer >= 0) ++gathers[key];
        if (step.kind == StepKind::layer && step.pass != Pass::weight) ++uses[key];
      }
      EXPECT_EQ(gathers, uses);
    }
  }
}

TEST(Recompute, GroupsNeedFullRecomputation) {
  LoweringFixture setup = recomputing(2);
  setup.training.recompute = models::Recompute::selective;
  EXPECT_THROW(setup.lower(), PlanError);
  setup = recomputing(0);
  EXPECT_THROW(setup.lower(), PlanError);
}

}  // namespace
}  // namespace wafersim::workloads
