#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/workloads/numeric/cut.h"

/// Tensor streams whose inputs travel, or whichever operand is smaller.
namespace wafersim::workloads::numeric {
namespace {

using models::AttentionKernel, models::AttentionMask, models::Recompute;

NumericCase inputs_of(Cut cut) {
  cut.operand = StreamOperand::inputs;
  return setup_of(cut);
}

/// Every way in which rows travel, on either kind of layer and mask.
TEST(NumericInputs, EveryTensorStream) {
  for (const auto variant : {StreamVariant::flood, StreamVariant::wrapped_ring, StreamVariant::interleaved_ring}) {
    for (const auto relay : {StreamRelay::cut_through, StreamRelay::store_and_forward}) {
      for (const int tatp : {2, 3, 4}) {
        for (const int near : {1, 2, 5}) {
          NumericCase setup = inputs_of({.tatp = tatp, .near = near});
          setup.plan.stream.variant = variant;
          setup.plan.stream.relay = relay;
          setup.model.sequence = 9;
          setup.training.microbatch = near == 2 ? 2 : 1;
          setup.training.global_batch = 2 * setup.training.microbatch;
          if (tatp == 2) setup.make_llama();
          if (near == 2) setup.model.attention = AttentionMask::full;
          EXPECT_EQ(faults(setup), "") << fmt::format("variant {} relay {} tatp {} near {}",
                                                      static_cast<int>(variant), static_cast<int>(relay), tatp, near);
        }
      }
    }
  }
}

TEST(NumericInputs, CombinationsOfTheAxes) {
  using enum SequenceParallel;
  using enum PipelineSchedule;
  const std::vector<Cut> cuts = {{.tatp = 2, .dp = 2, .pp = 2, .zero = 0},
                                 {.tatp = 3, .dp = 2, .pp = 2, .near = 2, .zero = 3},
                                 {.tatp = 4, .dp = 2, .near = 2, .zero = 2},
                                 {.tp = 2, .tatp = 2},
                                 {.tp = 2, .tatp = 2, .dp = 2, .pp = 2, .near = 2, .zero = 1},
                                 {.tp = 2, .tatp = 2, .sp = megatron},
                                 {.tp = 2, .tatp = 2, .sp = megatron, .dp = 2, .pp = 2, .near = 2, .zero = 3},
                                 {.tatp = 2, .sp = ring, .sp_degree = 2},
                                 {.tatp = 3, .sp = ring, .sp_degree = 2, .dp = 2, .near = 2, .zero = 2},
                                 {.tp = 2, .tatp = 2, .sp = ring, .sp_degree = 3, .pp = 2},
                                 {.tatp = 2, .sp = ulysses, .sp_degree = 2},
                                 {.tp = 2, .tatp = 2, .sp = ulysses, .sp_degree = 1, .near = 2},
                                 {.tatp = 2, .pp = 2, .schedule = zb_h1},
                                 {.tatp = 3, .dp = 2, .pp = 2, .near = 2, .schedule = zb_h2, .zero = 1},
                                 {.tp = 2, .tatp = 2, .sp = megatron, .pp = 2, .schedule = zb_h1},
                                 {.tatp = 2, .sp = ring, .sp_degree = 2, .pp = 2, .schedule = zb_h1}};
  for (const Cut& cut : cuts) EXPECT_EQ(faults(inputs_of(cut)), "") << describe(cut);
}

/// Key and value heads that several ranks of a line hold, and of several tensor-parallel ranks.
TEST(NumericInputs, SharedKeyValueHeads) {
  using enum SequenceParallel;
  for (const auto& [heads, kv_heads, cut] : std::vector<std::tuple<int, int, Cut>>{
           {4, 1, {.tatp = 2, .near = 2}},
           {4, 1, {.tatp = 3, .dp = 2, .zero = 2}},
           {4, 2, {.tatp = 3, .near = 2}},
           {4, 2, {.tp = 2, .tatp = 2, .dp = 2, .zero = 3}},
           {6, 3, {.tp = 2, .tatp = 2}},
           {6, 3, {.tatp = 4, .sp = ring, .sp_degree = 2, .dp = 2}},
           {8, 2, {.tp = 4, .tatp = 2, .sp = megatron}},
           {8, 2, {.tp = 4, .tatp = 2, .dp = 2, .near = 2, .zero = 1}},
           {4, 1, {.tp = 2, .tatp = 2, .pp = 2, .schedule = PipelineSchedule::zb_h1}}}) {
    NumericCase setup = inputs_of(cut);
    setup.make_llama();
    setup.model.qkv_bias = true;
    setup.model.heads = heads;
    setup.model.kv_heads = kv_heads;
    setup.model.sequence = setup.model.context = 17;
    EXPECT_EQ(faults(setup), "") << heads << " heads, " << kv_heads << " of keys, " << describe(cut);
  }
}

TEST(NumericInputs, MaterializedScores) {
  for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    NumericCase setup = inputs_of({.tp = 2, .tatp = 2, .near = 2});
    setup.model.attention_kernel = AttentionKernel::materialized;
    setup.training.recompute = recompute;
    EXPECT_EQ(faults(setup), "") << static_cast<int>(recompute);
  }
}

/// Models of other kinds, and what is made again for the backward pass.
TEST(NumericInputs, KindsOfModelsAndOfMemorySaving) {
  using enum SequenceParallel;
  for (const Cut& cut : std::vector<Cut>{{.tp = 2, .tatp = 2, .pp = 2, .near = 2},
                                         {.tatp = 2, .sp = ring, .sp_degree = 2, .dp = 2},
                                         {.tp = 2, .tatp = 2, .sp = megatron},
                                         {.tatp = 2, .pp = 2, .schedule = PipelineSchedule::zb_h1}}) {
    for (const bool full : {false, true}) {
      for (const bool parallel : {false, true}) {
        NumericCase setup = inputs_of(cut);
        setup.training.recompute = full ? Recompute::full : Recompute::none;
        setup.training.microbatch = full ? 1 : 2;
        setup.training.iterations = 2;
        setup.largest_norm = 0.5;
        setup.model.tied_embeddings = true;
        setup.model.parallel_residual = parallel;
        EXPECT_EQ(faults(setup), "") << describe(cut) << " full " << full << " parallel " << parallel;
        setup.make_llama();
        setup.model.final_norm = full;
        EXPECT_EQ(faults(setup), "") << describe(cut) << " full " << full << " parallel " << parallel << " llama";
      }
    }
  }
}

/// One pair streams weights, the other one inputs.
TEST(NumericInputs, EitherPairAlone) {
  using enum SequenceParallel;
  int attention_alone = 0, mlp_alone = 0;
  for (const Cut& cut : std::vector<Cut>{{.tatp = 2, .near = 2},
                                         {.tatp = 3, .pp = 2, .schedule = PipelineSchedule::zb_h1},
                                         {.tp = 2, .tatp = 2, .sp = megatron},
                                         {.tatp = 2, .sp = ring, .sp_degree = 2}}) {
    for (const bool parallel : {false, true}) {
      for (const int ffn : {8, 64}) {
        for (const bool one_key_head : {false, true}) {
          NumericCase setup = inputs_of(cut);
          setup.plan.stream.operand = StreamOperand::automatic;
          setup.model.parallel_residual = parallel;
          if (one_key_head) {
            setup.make_llama();
            setup.model.kv_heads = 1;
            setup.model.sequence = setup.model.context = 24;
          }
          setup.model.ffn = ffn;
          const auto inputs = streamed_inputs(setup.model, setup.training, setup.plan);
          attention_alone += inputs[0] && !inputs[1] ? 1 : 0;
          mlp_alone += !inputs[0] && inputs[1] ? 1 : 0;
          EXPECT_EQ(faults(setup), "") << describe(cut) << " parallel " << parallel << " ffn " << ffn << " attention "
                                       << inputs[0] << " mlp " << inputs[1];
        }
      }
    }
  }
  EXPECT_GT(attention_alone, 0);
  EXPECT_GT(mlp_alone, 0);
}

TEST(NumericInputs, WrongMeaningsMakeWrongNumbers) {
  const auto forget = [](Meaning& meaning) { meaning = {}; };
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const NumericCase plan = inputs_of({.tatp = 3});
  // Rows that one rank does not multiply, a part that nobody adds, a weight that does without the rows of another rank.
  EXPECT_NE(differences_with(plan, "layer.forward", Kernel::linear, forget), "");
  EXPECT_TRUE(contains(differences_with(plan, "layer.forward", Kernel::add, forget), "loss"));
  EXPECT_TRUE(contains(differences_with(plan, "layer.backward", Kernel::add, forget), "gradients of iteration 0"));
  EXPECT_TRUE(
      contains(differences_with(plan, "layer.backward", Kernel::linear_weight, forget), "gradients of iteration 0"));
}

}  // namespace
}  // namespace wafersim::workloads::numeric
