#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/layer.h"
#include "workloads/schedule.h"
#include "workloads/verify.h"

/// Schedules as they are lowered: interleaved chunks, split backward passes, uneven stages.
namespace wafersim::workloads {
namespace {

using enum PipelineSchedule;
using models::Recompute;

constexpr PipelineSchedule kAll[] = {gpipe, one_f_one_b, interleaved, zb_h1, zb_h2};

/// Two chunks a stage where there are chunks.
LoweringFixture pipeline(PipelineSchedule schedule, int stages, int layers = 4) {
  LoweringFixture setup;
  setup.plan.pp = stages;
  setup.plan.schedule = schedule;
  setup.plan.virtual_stages = schedule == interleaved ? 2 : 1;
  setup.model.layers = layers;
  setup.training.clip_grad = schedule != zb_h2;
  return setup;
}

std::string faults(const LoweringFixture& setup) {
  return wafersim::join(verify_trace(setup.lower().trace, setup.mesh()), "\n");
}

TEST(ScheduleLowering, EveryScheduleIsProven) {
  for (const PipelineSchedule schedule : kAll) {
    for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      for (const bool sp : {false, true}) {
        for (const int zero : {0, 1}) {
          for (const bool tied : {false, true}) {
            LoweringFixture setup = pipeline(schedule, 2);
            setup.plan.dp = setup.plan.tp = 2;
            setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
            setup.plan.zero = zero;
            setup.model.tied_embeddings = tied;
            setup.training.recompute = recompute;
            setup.training.iterations = 2;
            EXPECT_EQ(faults(setup), "") << to_string(schedule) << sp << zero << tied;
          }
        }
      }
    }
  }
}

TEST(ScheduleLowering, EveryKindOfLayerIsProven) {
  for (const PipelineSchedule schedule : {interleaved, zb_h1, zb_h2}) {
    for (int bits = 0; bits < 32; ++bits) {
      const auto bit = [bits](int i) { return (bits >> i & 1) != 0; };
      LoweringFixture setup = pipeline(schedule, 2, 5);
      if (bit(0)) setup.make_llama();
      setup.plan.tp = bit(0) ? 8 : 4;  // more ranks than kv heads
      setup.plan.sp = bit(1) ? SequenceParallel::megatron : SequenceParallel::none;
      setup.model.parallel_residual = bit(2);
      if (bit(3)) setup.model.attention_kernel = models::AttentionKernel::fused;
      if (bit(4)) setup.layers_alone();
      EXPECT_EQ(faults(setup), "") << to_string(schedule) << " " << bits;
    }
  }
}

TEST(ScheduleLowering, SplitBackwardsOfEveryAxisThatCutsALayerAreProven) {
  for (const auto sp : {SequenceParallel::none, SequenceParallel::megatron, SequenceParallel::ring,
                        SequenceParallel::ulysses}) {
    for (const int tatp : {1, 2, 3}) {
      for (const bool replicated : {false, true}) {
        LoweringFixture setup = pipeline(zb_h1, 2);
        setup.model.attention_kernel = models::AttentionKernel::fused;
        setup.plan.tp = 2;
        setup.plan.tatp = tatp;
        setup.plan.sp = sp;
        setup.plan.sp_degree = sp == SequenceParallel::ring || sp == SequenceParallel::ulysses ? 2 : 1;
        setup.plan.embedding = replicated ? EmbeddingTable::replicated : EmbeddingTable::sharded;
        setup.training.microbatch = 1;
        EXPECT_EQ(faults(setup), "") << static_cast<int>(sp) << tatp << replicated;
      }
    }
  }
}

TEST(ScheduleLowering, AnyNumberOfStagesMicrobatchesAndChunksIsProven) {
  for (const PipelineSchedule schedule : kAll) {
    for (const int stages : {1, 2, 3, 4}) {
      for (const int microbatches : {1, 2, 5, 8}) {
        for (const int chunks : {2, 3}) {
          if (schedule != interleaved && chunks > 2) continue;
          LoweringFixture setup = pipeline(schedule, stages, 13);
          if (schedule == interleaved) setup.plan.virtual_stages = chunks;
          setup.training.microbatch = 1;
          setup.training.global_batch = microbatches;
          EXPECT_EQ(faults(setup), "") << to_string(schedule) << stages << microbatches << chunks;
        }
      }
    }
  }
}

TEST(ScheduleLowering, UnevenStagesAreProven) {
  for (const PipelineSchedule schedule : kAll) {
    LoweringFixture setup = pipeline(schedule, 2, 9);
    setup.plan.layers_per_stage = schedule == interleaved ? std::vector{1, 5, 2, 1} : std::vector{2, 7};
    EXPECT_EQ(faults(setup), "") << to_string(schedule);
  }
}

/// What a weight step reads may not be given up by the backward step before it.
TEST(ScheduleLowering, OperandsThatAreFreedTooEarlyAreFound) {
  const LoweringFixture setup = pipeline(zb_h1, 2);
  const Trace sound = setup.lower().trace;
  const auto is_activation = [&](const View& view) {
    return sound.tensors[view.tensor].scope == TensorScope::activation;
  };
  int operands = 0;
  for (const StepTemplate& weights : sound.templates) {
    if (weights.name != "layer.weight") continue;
    for (const Op& product : weights.ops) {
      if (product.kind != OpKind::matrix) continue;
      for (const View& view : sound.meanings[product.operand.meaning].reads) {
        if (!is_activation(view)) continue;
        Trace trace = sound;
        for (StepTemplate& each : trace.templates) {
          if (each.name != "layer.backward") continue;
          Op& last = each.ops.back();  // a free, or the norm's gradient
          Meaning changed = trace.meanings[last.operand.meaning];
          if (changed.kernel == Kernel::none) changed.kernel = Kernel::memory;
          changed.discards.push_back(view);
          last.operand.meaning = static_cast<std::uint32_t>(trace.meanings.size());
          trace.meanings.push_back(changed);
        }
        ++operands;
        EXPECT_NE(wafersim::join(verify_trace(trace, setup.mesh()), "\n").find("values are there"), std::string::npos)
            << trace.tensors[view.tensor].name;
      }
    }
  }
  EXPECT_GE(operands, 8);  // input and gradient of four products
}

/// Of each stage: layers, in order of their first forward step.
std::vector<std::vector<std::int32_t>> layers_by_stage(const LoweringFixture& setup) {
  std::vector<std::vector<std::int32_t>> result(static_cast<std::size_t>(setup.plan.pp));
  const LoweredPlan lowered = setup.lower();
  for (const TileBinding& tile : lowered.trace.tiles) {
    auto& layers = result[static_cast<std::size_t>(tile.stage)];
    for (const Step& step : lowered.trace.programs[tile.program].steps) {
      if (step.kind != StepKind::layer || step.pass != Pass::forward || step.microbatch != 0) continue;
      layers.push_back(step.layer);
    }
  }
  return result;
}

TEST(ScheduleLowering, ChunksGoRoundTheStages) {
  EXPECT_EQ(layers_by_stage(pipeline(interleaved, 2, 6)),
            (std::vector<std::vector<std::int32_t>>{{0, 1, 4}, {2, 3, 5}}));
  LoweringFixture uneven = pipeline(interleaved, 2, 6);
  uneven.plan.layers_per_stage = {1, 1, 1, 3};
  EXPECT_EQ(layers_by_stage(uneven), (std::vector<std::vector<std::int32_t>>{{0, 2}, {1, 3, 4, 5}}));
}

TEST(ScheduleLowering, UnevenStagesHaveTheLayersThatThePlanGives) {
  LoweringFixture setup = pipeline(one_f_one_b, 3, 6);
  setup.plan.layers_per_stage = {1, 3, 2};
  EXPECT_EQ(layers_by_stage(setup), (std::vector<std::vector<std::int32_t>>{{0}, {1, 2, 3}, {4, 5}}));
}

/// The embedding runs before the first layer, the head behind the last, whatever lies between.
TEST(ScheduleLowering, EndsStayAtTheEndsOfTheModel) {
  const LoweredPlan lowered = pipeline(interleaved, 2, 6).lower();
  for (const TileBinding& tile : lowered.trace.tiles) {
    const auto& steps = lowered.trace.programs[tile.program].steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind == StepKind::embedding) {
        const Step& neighbour = steps[steps[i].pass == Pass::forward ? i + 1 : i - 1];
        EXPECT_EQ(neighbour.layer, 0);
        EXPECT_EQ(tile.stage, 0);
      }
      if (steps[i].kind == StepKind::head) {
        const Step& neighbour = steps[steps[i].pass == Pass::forward ? i - 1 : i + 1];
        EXPECT_EQ(neighbour.layer, 5);
        EXPECT_EQ(tile.stage, 1);
      }
    }
  }
}

TEST(ScheduleLowering, StepsFollowTheSchedule) {
  for (const PipelineSchedule schedule : kAll) {
    LoweringFixture setup = pipeline(schedule, 2);  // one layer for each chunk
    setup.model.layers = 2 * setup.plan.virtual_stages;
    const LoweredPlan lowered = setup.lower();
    for (const TileBinding& tile : lowered.trace.tiles) {
      std::vector<ScheduleSlot> seen;
      for (const Step& step : lowered.trace.programs[tile.program].steps) {
        if (step.kind == StepKind::layer) seen.push_back({step.pass, step.microbatch, step.layer / 2});
      }
      EXPECT_EQ(seen, schedule_order(pipeline_shape(setup.plan, setup.training), tile.stage));
    }
  }
}

TEST(ScheduleLowering, SchedulesComputeAndSendTheSame) {
  LoweringFixture setup = pipeline(one_f_one_b, 2);
  setup.plan.tp = 2;
  setup.training.clip_grad = false;
  const LoweredPlan plain = setup.lower();
  const auto pp = static_cast<std::size_t>(Axis::pp), tp = static_cast<std::size_t>(Axis::tp);
  for (const PipelineSchedule schedule : kAll) {
    setup.plan.schedule = schedule;
    setup.plan.virtual_stages = schedule == interleaved ? 2 : 1;
    const LoweredPlan other = setup.lower();
    EXPECT_EQ(gemm_flops(other.trace), gemm_flops(plain.trace));
    // Three boundaries between four virtual stages instead of one between two.
    EXPECT_EQ(sent_bytes(other.trace)[pp], sent_bytes(plain.trace)[pp] * (schedule == interleaved ? 3 : 1));
    if (schedule != interleaved) {
      EXPECT_EQ(sent_bytes(other.trace)[tp], sent_bytes(plain.trace)[tp]);
    }
  }
}

/// With sequence parallelism a weight step gathers the two gradients again that its backward step had gathered.
TEST(ScheduleLowering, WeightStepsGatherAgain) {
  LoweringFixture setup = pipeline(one_f_one_b, 2);
  setup.layers_alone();
  setup.plan.tp = 4;
  setup.plan.sp = SequenceParallel::megatron;
  setup.training.clip_grad = false;
  const auto tp = static_cast<std::size_t>(Axis::tp);
  const auto extra = [&] {
    setup.plan.schedule = one_f_one_b;
    const Bytes plain = sent_bytes(setup.lower().trace)[tp];
    setup.plan.schedule = zb_h1;
    return sent_bytes(setup.lower().trace)[tp] - plain;
  };
  const Bytes gather = 3 * setup.stream_bytes() * 8 * 4;  // t - 1 vectors, microbatches, layers
  EXPECT_EQ(extra(), 2 * gather);
  setup.model.parallel_residual = true;
  EXPECT_EQ(extra(), gather);
}

TEST(ScheduleLowering, SplitBackwardSendsBeforeTheWeightGradients) {
  const LoweredPlan lowered = pipeline(zb_h1, 2).lower();
  std::set<std::string> with_weight_gradients;
  int sends = 0;
  for (const StepTemplate& each : lowered.trace.templates) {
    for (const Op& op : each.ops) {
      if (lowered.trace.meanings[op.operand.meaning].kernel == Kernel::linear_weight)
        with_weight_gradients.insert(each.name);
      if (op.kind == OpKind::send && each.name == "layer.backward") ++sends;
    }
  }
  EXPECT_EQ(with_weight_gradients, std::set<std::string>{"layer.weight"});
  EXPECT_EQ(sends, 1);
}

/// A layer's gradients are summed over the replicas behind the weight step of the last microbatch.
TEST(ScheduleLowering, LastPassOfABucketStartsItsGradientSum) {
  for (const PipelineSchedule schedule : kAll) {
    LoweringFixture setup = pipeline(schedule, 2);
    setup.plan.dp = 2;
    const LoweredPlan lowered = setup.lower();
    const Pass last = splits_backward(schedule) ? Pass::weight : Pass::backward;
    for (const Program& program : lowered.trace.programs) {
      std::map<std::int32_t, int> sums;
      for (const Step& step : program.steps) {
        if (step.kind != StepKind::gradient_sync) continue;
        ++sums[step.layer];
        const Step& waited = program.steps[program.waits[step.first_wait]];
        EXPECT_EQ(waited.microbatch, 3);
        EXPECT_EQ(waited.pass, waited.kind == StepKind::layer ? last : Pass::backward);
        EXPECT_TRUE(waited.kind != StepKind::layer || waited.layer == step.layer);
      }
      EXPECT_EQ(sums.size(), 3U);
      for (const auto& [layer, count] : sums) EXPECT_EQ(count, 1);
    }
  }
}

/// What stays from B to W: 14 sbh of inputs and 18 sbh of gradients (Qi et al. 2023, table 1).
TEST(ScheduleLowering, WeightGradientsHoldWhatThePaperSays) {
  for (const int tp : {1, 4}) {
    for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      LoweringFixture setup = pipeline(zb_h1, 2);
      setup.layers_alone();
      setup.plan.tp = tp;
      setup.plan.sp = SequenceParallel::megatron;
      setup.training.recompute = recompute;
      const Shard shard = make_shard(setup.model, setup.training, setup.plan, {});
      const Bytes kept = weight_bytes_per_layer(setup.model, shard);
      EXPECT_EQ(kept, 16 * setup.stream_bytes() / static_cast<Bytes>(tp));
      for (const StepTemplate& each : setup.lower().trace.templates) {
        if (each.name != "layer.weight") continue;
        EXPECT_EQ(net_bytes(each), -static_cast<std::int64_t>(kept));
      }
    }
  }
}

TEST(ScheduleLowering, MemoryReturnsToItsBase) {
  for (const PipelineSchedule schedule : kAll) {
    for (int bits = 0; bits < 16; ++bits) {
      LoweringFixture setup = pipeline(schedule, 2, 5);
      setup.plan.tp = 4;
      if ((bits & 1) != 0) setup.plan.sp = SequenceParallel::megatron;
      if ((bits & 2) != 0) setup.model.parallel_residual = true;
      if ((bits & 4) != 0) setup.model.attention_kernel = models::AttentionKernel::fused;
      if ((bits & 8) != 0) setup.training.recompute = Recompute::full;
      ASSERT_TRUE(memory_returns(setup.lower().trace)) << to_string(schedule) << " " << bits;
    }
  }
}

}  // namespace
}  // namespace wafersim::workloads
