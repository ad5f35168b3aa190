#include "workloads/lowering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/schedule.h"

namespace wafersim::workloads {
namespace {

using models::AttentionKernel;
using models::AttentionMask;
using models::Recompute;

struct Degrees {
  int dp, tp, pp;
};
const std::vector<Degrees> kDegrees = {{1, 1, 1}, {1, 4, 1}, {1, 1, 4}, {2, 1, 1},
                                       {2, 2, 2}, {4, 8, 2}, {2, 4, 4}};

std::size_t axis(Axis which) { return static_cast<std::size_t>(which); }

std::uint64_t microbatches(const LoweringFixture& setup) {
  return static_cast<std::uint64_t>(setup.training.microbatches(setup.plan.dp));
}

TEST(Lowering, GemmFlopsAreTheModelFlops) {
  for (const bool llama : {false, true}) {
    for (const Degrees& degrees : kDegrees) {
      for (const bool sp : {false, true}) {
        LoweringFixture setup;
        if (llama) setup.make_llama();
        if (llama && degrees.tp > 4) continue;  // kv heads are replicated there
        setup.set_degrees(degrees.dp, degrees.tp, degrees.pp);
        setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
        EXPECT_EQ(gemm_flops(setup.lower().trace), models::model_flops(setup.model, 16))
            << llama << " dp " << degrees.dp << " tp " << degrees.tp << " pp " << degrees.pp << " sp " << sp;
      }
    }
  }
}

TEST(Lowering, RaggedHeadsAndWidthsLoseNoFlops) {
  LoweringFixture setup;
  setup.plan.tp = 3;
  setup.plan.pp = 3;
  setup.model.vocab = 129;
  EXPECT_EQ(gemm_flops(setup.lower().trace), models::model_flops(setup.model, 16));
}

TEST(Lowering, VocabularyIsPaddedToTheGroup) {
  LoweringFixture setup;
  setup.plan.tp = 8;
  const std::uint64_t even = gemm_flops(setup.lower().trace);
  setup.model.vocab = 121;
  EXPECT_EQ(gemm_flops(setup.lower().trace), even);
}

TEST(Lowering, FusedAttentionRecomputesTheScores) {
  LoweringFixture setup;
  setup.set_degrees(2, 2, 2);
  const std::uint64_t scores = 2ULL * 16 * 32 * 32 * 64 * 4;  // 2 x sequences x s^2 x h x layers
  setup.model.attention_kernel = AttentionKernel::fused;
  EXPECT_EQ(gemm_flops(setup.lower().trace), models::model_flops(setup.model, 16) + scores);
  setup.training.recompute = Recompute::selective;
  EXPECT_EQ(gemm_flops(setup.lower().trace), models::model_flops(setup.model, 16) + scores);
}

TEST(Lowering, RecomputeRepeatsTheForward) {
  LoweringFixture setup;
  setup.set_degrees(1, 2, 2);
  const std::uint64_t model = models::model_flops(setup.model, 16);
  setup.training.recompute = Recompute::selective;
  EXPECT_EQ(gemm_flops(setup.lower().trace), model + 4ULL * 16 * 32 * 32 * 64 * 4);
  setup.training.recompute = Recompute::full;
  setup.model.head = false;
  const std::uint64_t layers = models::model_flops(setup.model, 16);
  EXPECT_EQ(gemm_flops(setup.lower().trace), layers / 3 * 4);
}

TEST(Lowering, CausalMaskHalvesTheScores) {
  LoweringFixture setup;
  const std::uint64_t full = gemm_flops(setup.lower().trace);
  setup.model.attention = AttentionMask::causal;
  const std::uint64_t pairs = 3 * 2 * 2ULL * 16 * 64 * 4;  // passes x products x 2 x sequences x h x layers
  EXPECT_EQ(full - gemm_flops(setup.lower().trace), pairs * 32 * (32 - 17));
}

TEST(Lowering, ReplicatedKeyValueHeads) {
  LoweringFixture setup;
  setup.make_llama();
  setup.model.kv_heads = 2;
  setup.plan.tp = 8;
  // Each of 8 ranks computes one of the 2 heads of k and v: four times the products of h x (2 x 2 x 8).
  const std::uint64_t kv = 3 * 2ULL * 16 * 32 * 64 * (2 * 2 * 8) * 4;
  EXPECT_EQ(gemm_flops(setup.lower().trace), models::model_flops(setup.model, 16) + 3 * kv);
}

TEST(Lowering, TensorParallelBytes) {
  for (const int tp : {2, 4, 8}) {
    for (const bool sp : {false, true}) {
      LoweringFixture setup;
      setup.layers_alone();
      setup.plan.tp = tp;
      setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
      setup.training.clip_grad = false;
      // A gather or a reduce-scatter moves (t - 1) vectors over the group. With SP 2 + 2 forward, 4 + 2
      // backward (two of the gathers for the weight gradients); without, 2 all-reduces each way, twice that
      // each.
      const Bytes ways = static_cast<Bytes>(tp - 1) * setup.stream_bytes() * microbatches(setup) * 4;
      // With SP the gradients of two layernorms and two output biases a layer are all-reduced once.
      const Bytes norms = sp ? 2 * static_cast<Bytes>(tp - 1) * 4 * ((2 * 2 + 2) * 64) * 2 : 0;
      const auto tp_bytes = [&] { return sent_bytes(setup.lower().trace)[axis(Axis::tp)]; };
      EXPECT_EQ(tp_bytes(), (sp ? 10 : 8) * ways + norms) << tp << " " << sp;

      // One reduction forward and two backward; with SP a gather for each norm, of its output twice, and one of the
      // gradient.
      setup.model.parallel_residual = true;
      EXPECT_EQ(tp_bytes(), (sp ? 8 : 6) * ways + norms) << tp << " " << sp;

      setup.training.recompute = Recompute::full;
      EXPECT_EQ(tp_bytes(), (sp ? 8 + 3 : 6 + 2) * ways + norms) << tp << " " << sp;
    }
  }
}

TEST(Lowering, EmbeddingAndHeadBytes) {
  LoweringFixture setup;
  setup.plan.tp = 4;
  setup.training.clip_grad = false;
  const auto ends = [&setup](Bytes layer_vectors) {
    const Bytes all = sent_bytes(setup.lower().trace)[axis(Axis::tp)];
    return all - layer_vectors * 3 * setup.stream_bytes() * microbatches(setup) * 4;
  };
  // Two all-reduces of a 4-byte value per token; all vectors cross the group (t - 1) = 3 times per gather.
  const Bytes scalars = 2 * 2 * 3 * 4 * 64 * microbatches(setup);
  const Bytes stream = 3 * setup.stream_bytes() * microbatches(setup);
  EXPECT_EQ(ends(8),
            2 * 2 * stream + scalars);  // all-reduce of the embedding and of the head's input gradient
  setup.plan.sp = SequenceParallel::megatron;
  // Embedding: reduce-scatter, gather; head: gather, reduce-scatter, gather for the weight gradient.
  // The gradients of two layernorms and two biases in each of four layers, of the final norm and of 32 positions are
  // all-reduced once.
  const Bytes norms = 2 * 3 * (4 * (2 * 2 + 2) + 2 + 32) * 64 * 2;
  EXPECT_EQ(ends(10), 5 * stream + scalars + norms);
}

/// A table on every rank takes its memory, and no sum of the looked-up tokens.
TEST(Lowering, ReplicatedEmbeddingBytes) {
  LoweringFixture setup;
  setup.model.head = false;
  setup.plan.tp = 4;
  setup.training.clip_grad = false;
  const auto tp_bytes = [&] { return sent_bytes(setup.lower().trace)[axis(Axis::tp)]; };
  const auto parameters = [&] {
    const Trace trace = setup.lower().trace;
    return trace.statics[trace.tiles[0].statics].bytes[static_cast<std::size_t>(MemoryClass::parameters)];
  };
  const Bytes sharded = tp_bytes(), held = parameters();
  const Bytes stream = 3 * setup.stream_bytes() * microbatches(setup);
  setup.plan.embedding = EmbeddingTable::replicated;
  EXPECT_EQ(sharded - tp_bytes(), 2 * stream);  // an all-reduce
  EXPECT_EQ(parameters() - held, 2U * 64 * (128 - 128 / 4));
  setup.plan.sp = SequenceParallel::megatron;
  const Bytes replicated = tp_bytes();
  setup.plan.embedding = EmbeddingTable::sharded;
  // A reduce-scatter and a gather for each microbatch, against an all-reduce of the table; that of positions is there
  // in both.
  EXPECT_EQ(tp_bytes() + 2 * 3 * 128 * 64 * 2, replicated + 2 * stream);
}

TEST(Lowering, PipelineBytes) {
  for (const int tp : {1, 4}) {
    for (const bool sp : {false, true}) {
      LoweringFixture setup;
      setup.set_degrees(2, tp, 4);
      setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
      setup.training.clip_grad = false;
      const Bytes whole =
          2 * 3 * 2 * microbatches(setup) * setup.stream_bytes();  // directions x boundaries x replicas
      EXPECT_EQ(sent_bytes(setup.lower().trace)[axis(Axis::pp)], whole);
      setup.plan.pp_transfer_full = true;
      EXPECT_EQ(sent_bytes(setup.lower().trace)[axis(Axis::pp)], sp ? whole : whole * static_cast<Bytes>(tp));
    }
  }
}

TEST(Lowering, SlicedBoundaryIsGatheredAtTheReceiver) {
  LoweringFixture setup;
  setup.layers_alone();
  setup.set_degrees(1, 4, 2);
  setup.training.clip_grad = false;
  const Bytes sliced = sent_bytes(setup.lower().trace)[axis(Axis::tp)];
  setup.plan.pp_transfer_full = true;
  const Bytes whole = sent_bytes(setup.lower().trace)[axis(Axis::tp)];
  EXPECT_EQ(sliced - whole, 2 * 3 * setup.stream_bytes() * microbatches(setup));
}

TEST(Lowering, GradientBytes) {
  for (const int zero : {0, 1}) {
    for (const int pp : {1, 2}) {
      LoweringFixture setup;
      setup.set_degrees(4, 1, pp);
      setup.plan.zero = zero;
      setup.training.clip_grad = false;
      // All-reduce, or reduce-scatter and all-gather of weights as wide as gradients: 2 (n - 1) vectors over
      // the group.
      const std::uint64_t parameters = models::count_parameters(setup.model).total(setup.model.layers);
      EXPECT_EQ(sent_bytes(setup.lower().trace)[axis(Axis::dp)], 2 * 3 * parameters * 2);
      setup.training.optimizer = Optimizer::none;
      EXPECT_EQ(sent_bytes(setup.lower().trace)[axis(Axis::dp)], (zero == 0 ? 2 : 1) * 3 * parameters * 2);
    }
  }
}

TEST(Lowering, TiedEmbeddingsAreSummedOverTheEndsOfThePipeline) {
  LoweringFixture setup;
  setup.set_degrees(1, 2, 4);
  setup.training.clip_grad = false;
  const Bytes separate = sent_bytes(setup.lower().trace)[axis(Axis::pp)];
  setup.model.tied_embeddings = true;
  const LoweredPlan tied = setup.lower();
  EXPECT_EQ(sent_bytes(tied.trace)[axis(Axis::pp)] - separate, 2ULL * 128 * 64 * 2);
  EXPECT_TRUE(check_trace(tied.trace, setup.mesh()).empty());
}

TEST(Lowering, ParametersOfAllTiles) {
  for (const bool llama : {false, true}) {
    for (const bool tied : {false, true}) {
      LoweringFixture setup;
      if (llama) setup.make_llama();
      setup.model.tied_embeddings = tied;
      setup.plan.pp = 4;
      std::uint64_t total = 0;
      const LoweredPlan lowered = setup.lower();
      for (const TileBinding& tile : lowered.trace.tiles) {
        const auto& bytes = lowered.trace.statics[tile.statics].bytes;
        total += bytes[static_cast<std::size_t>(MemoryClass::parameters)];
        EXPECT_EQ(bytes[static_cast<std::size_t>(MemoryClass::optimizer)],
                  6 * bytes[static_cast<std::size_t>(MemoryClass::parameters)]);
      }
      const std::uint64_t copy = tied ? 128 * 64 : 0;  // the last stage has the embedding as well
      EXPECT_EQ(total, 2 * (models::count_parameters(setup.model).total(4) + copy));
    }
  }
}

TEST(Lowering, ZeroOneShardsTheOptimizer) {
  LoweringFixture setup;
  setup.plan.dp = 4;
  setup.plan.zero = 1;
  Bytes optimizer = 0;
  const LoweredPlan lowered = setup.lower();
  for (const TileBinding& tile : lowered.trace.tiles) {
    optimizer += lowered.trace.statics[tile.statics].bytes[static_cast<std::size_t>(MemoryClass::optimizer)];
  }
  EXPECT_EQ(optimizer, 12 * models::count_parameters(setup.model).total(4));
}

TEST(Lowering, ProgramsFollowTheSchedule) {
  LoweringFixture setup;
  setup.set_degrees(2, 2, 4);
  setup.training.iterations = 2;
  const LoweredPlan lowered = setup.lower();
  for (const TileBinding& tile : lowered.trace.tiles) {
    std::vector<ScheduleSlot> seen;
    for (const Step& step : lowered.trace.programs[tile.program].steps) {
      if (step.kind == StepKind::layer) seen.push_back({step.pass, step.microbatch});
    }
    std::vector<ScheduleSlot> expected = 
        schedule_order(pipeline_shape(setup.plan, setup.training), tile.stage);
    expected.insert(expected.end(), expected.begin(), expected.end());
    EXPECT_EQ(seen, expected);
  }
}

TEST(Lowering, NumberOfSteps) {
  LoweringFixture setup;
  setup.set_degrees(2, 2, 2);
  setup.plan.zero = 1;
  setup.training.iterations = 3;
  const LoweredPlan lowered = setup.lower();
  // Two layers and one end: 3 forwards and 3 backwards for each of 4 microbatches, 3 syncs, an optimizer, 3
  // gathers.
  for (const Program& program : lowered.trace.programs) {
    EXPECT_EQ(program.steps.size(), 3U * (6U * 4U + 3U + 1U + 3U));
  }
}

TEST(Lowering, GradientSyncWaitsForItsBackwardOnly) {
  LoweringFixture setup;
  setup.plan.dp = 2;
  const LoweredPlan lowered = setup.lower();
  const Program& program = lowered.trace.programs.front();
  std::set<std::uint32_t> syncs;
  for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const auto first = program.waits.begin() + step.first_wait;
    const std::vector<std::uint32_t> waits(first, first + step.wait_count);
    if (step.kind == StepKind::gradient_sync) {
      EXPECT_TRUE(step.background);
      EXPECT_EQ(waits, std::vector<std::uint32_t>{i - 1});
      EXPECT_EQ(program.steps[i - 1].pass, Pass::backward);
      EXPECT_EQ(program.steps[i - 1].microbatch, 3);
      syncs.insert(i);
    } else if (step.kind == StepKind::optimizer) {
      const std::set<std::uint32_t> all(waits.begin(), waits.end());
      EXPECT_TRUE(std::includes(all.begin(), all.end(), syncs.begin(), syncs.end()));
    } else {
      EXPECT_FALSE(step.background);
    }
  }
  EXPECT_EQ(syncs.size(), 6U);
}

TEST(Lowering, NextIterationWaitsForItsWeights) {
  LoweringFixture setup;
  setup.plan.dp = 2;
  setup.plan.zero = 1;
  setup.training.iterations = 2;
  const LoweredPlan lowered = setup.lower();
  const Program& program = lowered.trace.programs.front();
  std::set<std::uint32_t> gathers, waited;
  for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    if (step.kind == StepKind::parameter_gather && step.iteration == 0) gathers.insert(i);
    for (std::uint32_t w = 0; w < step.wait_count; ++w) {
      const std::uint32_t wait = program.waits[step.first_wait + w];
      if (step.pass == Pass::forward && gathers.count(wait) > 0) waited.insert(wait);
    }
  }
  EXPECT_EQ(gathers.size(), 6U);
  EXPECT_EQ(waited, gathers);
}

TEST(Lowering, GradientIsSentAfterTheWeightGradients) {
  LoweringFixture setup;
  setup.plan.pp = 2;
  const LoweredPlan lowered = setup.lower();
  int sends = 0;
  for (const StepTemplate& each : lowered.trace.templates) {
    if (each.name != "layer.backward") continue;
    std::uint32_t last_product = 0;
    for (std::uint32_t i = 0; i < each.ops.size(); ++i) {
      if (each.ops[i].kind == OpKind::matrix) last_product = i;
    }
    for (const Op& op : each.ops) {
      if (op.kind != OpKind::send) continue;
      ++sends;
      EXPECT_TRUE(op.detached);
      const auto first = each.dependencies.begin() + op.first_dependency;
      EXPECT_NE(std::find(first, first + op.dependency_count, last_product), first + op.dependency_count);
    }
  }
  EXPECT_EQ(sends, 1);
}

TEST(Lowering, OptimizerNoneLeavesTheUpdateOut) {
  LoweringFixture setup;
  setup.plan.dp = 2;
  setup.plan.zero = 1;
  setup.training.optimizer = Optimizer::none;
  for_each_op(setup.lower().trace, [](const TileBinding&, const Step& step, const Op&) {
    ASSERT_NE(step.kind, StepKind::optimizer);
    ASSERT_NE(step.kind, StepKind::parameter_gather);
  });
}

TEST(Lowering, TrafficOfTheMemoryClasses) {
  LoweringFixture setup;
  setup.layers_alone();
  setup.training.optimizer = Optimizer::none;
  const auto traffic = [&setup](MemoryClass memory_class) {
    const LoweredPlan lowered = setup.lower();
    Bytes total = 0;
    for_each_op(lowered.trace, [&](const TileBinding&, const Step&, const Op& op) {
      if (op.kind == OpKind::matrix || op.kind == OpKind::vector)
        total += lowered.trace.works[op.work].class_bytes[static_cast<std::size_t>(memory_class)];
    });
    return total;
  };
  const Bytes weights = 2 * 12 * 64 * 64 * 4;  // the matrices of four layers
  EXPECT_EQ(traffic(MemoryClass::parameters), 2 * weights * microbatches(setup));  // forward and dX
  const Bytes biases = 2 * 2 * 64 * 4;  // of the outputs of attention and MLP
  EXPECT_EQ(traffic(MemoryClass::gradients), 2 * (weights + biases) * microbatches(setup));  // read and written
  EXPECT_GT(traffic(MemoryClass::activations), 0U);
}

TEST(Lowering, DoesNotLowerWhatCannotBeCut) {
  LoweringFixture setup;
  setup.plan.tp = 16;
  EXPECT_THROW(setup.lower(), PlanError);
}

TEST(Lowering, Gpt3On2048TilesStaysSmall) {
  LoweringFixture setup;
  setup.model.layers = 96;
  setup.model.hidden = 12288;
  setup.model.heads = setup.model.kv_heads = 96;
  setup.model.head_dim = 128;
  setup.model.ffn = 4 * 12288;
  setup.model.vocab = 50257;
  setup.model.context = setup.model.sequence = 2048;
  setup.model.attention_kernel = AttentionKernel::fused;
  setup.wafer.mesh.shape = {32, 64};
  setup.training.global_batch = 128;
  setup.training.microbatch = 1;
  setup.set_degrees(4, 16, 32);
  setup.plan.sp = SequenceParallel::megatron;
  setup.plan.collectives = Collective::automatic;
  const LoweredPlan lowered = setup.lower();
  EXPECT_EQ(lowered.trace.tiles.size(), 2048U);
  EXPECT_LT(lowered.trace.memory_bytes(), 100U << 20);
  EXPECT_FALSE(lowered.memory.fits);
}

}  // namespace
}  // namespace wafersim::workloads
