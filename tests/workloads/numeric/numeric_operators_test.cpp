#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "tests/workloads/divisions.h"
#include "tests/workloads/numeric/numeric_case.h"
#include "workloads/stream_operand.h"
#include "workloads/verify.h"

/// Operators of a layer with degrees of their own: the numbers are those of the unpartitioned model.
namespace wafersim::workloads::numeric {
namespace {

std::string all_faults(const NumericCase& setup) {
  return join({faults(setup), join(verify_trace(setup.lower().trace, setup.mesh()), "\n")}, "");
}

TEST(NumericOperators, EveryDivisionOfFourTiles) {
  for (const SequenceParallel sp : {SequenceParallel::none, SequenceParallel::megatron}) {
    for (const OperatorDegrees& plan : divisions(4)) {
      for (const OperatorDegrees& attention : divisions(4)) {
        for (const OperatorDegrees& mlp : divisions(4)) {
          NumericCase setup;
          setup.set_degrees(1, plan.tp, 1);
          setup.plan.tatp = plan.tatp;
          setup.plan.attention = attention;
          setup.plan.mlp = mlp;
          setup.plan.sp = sp;
          setup.training.global_batch = 4;
          EXPECT_EQ(all_faults(setup), "") << text_of_cuts(setup.plan);
        }
      }
    }
  }
}

template <class T, std::size_t n>
T draw(RandomStream& random, const std::array<T, n>& from) {
  return from[random.below(n)];
}

OperatorDegrees drawn_division(RandomStream& random, int tiles, int most_tp) {
  std::vector<OperatorDegrees> all;
  for (const OperatorDegrees& each : divisions(tiles)) {
    if (each.tp <= most_tp) all.push_back(each);
  }
  return all[random.below(all.size())];
}

NumericCase drawn(std::uint64_t seed) {
  RandomStream random(seed, "operators");
  NumericCase setup;
  models::TransformerSpec& model = setup.model;
  PlanSpec& plan = setup.plan;
  TrainingSpec& training = setup.training;
  if (random.below(2) == 1) setup.make_llama();
  model.attention = draw(random, std::array{models::AttentionMask::causal, models::AttentionMask::full});
  model.attention_kernel = models::AttentionKernel::fused;
  model.tied_embeddings = random.below(2) == 1;
  model.layers = draw(random, std::array{2, 3});
  const int tiles = draw(random, std::array{2, 4, 6});
  const OperatorDegrees own = drawn_division(random, tiles, tiles);
  setup.set_degrees(draw(random, std::array{1, 2}), own.tp, draw(random, std::array{1, 2}));
  plan.tatp = own.tatp;
  plan.attention = drawn_division(random, tiles, static_cast<int>(model.heads));
  if (random.below(4) > 0) plan.mlp = drawn_division(random, tiles, tiles);
  plan.sp = draw(random, std::array{SequenceParallel::none, SequenceParallel::megatron, SequenceParallel::ring});
  if (plan.sp == SequenceParallel::ring) plan.sp_degree = 2;
  plan.stream.operand = draw(random, std::array{StreamOperand::weights, StreamOperand::automatic, StreamOperand::inputs});
  plan.stream.attention = draw(random, std::array{StreamAttention::stream_kv, StreamAttention::heads});
  const bool whole_keys = plan.attention->tatp == 1 && plan.sp != SequenceParallel::ring;
  if (whole_keys && random.below(2) == 1) model.attention_kernel = models::AttentionKernel::materialized;
  plan.overlap_near = draw(random, std::array{1, 2});
  plan.zero = draw(random, std::array{0, 1, 2, 3});
  plan.schedule = draw(random, std::array{PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b});
  plan.collectives = draw(random, std::array{Collective::automatic, Collective::line, Collective::tree, Collective::multicast});
  plan.collective_chunks = draw(random, std::array{1, 2});
  plan.pp_transfer_full = random.below(2) == 1;
  training.recompute = draw(random, std::array{models::Recompute::none, models::Recompute::selective, models::Recompute::full});
  if (training.recompute == models::Recompute::full) training.recompute_every = draw(random, std::array{1, 2});
  training.iterations = draw(random, std::array{1, 2});
  training.global_batch = 4 * plan.dp;
  model.sequence = 2 * tiles * plan.sp_degree + static_cast<int>(random.below(2));
  model.context = model.sequence;
  setup.largest_norm = draw(random, std::array{0.0, 0.7});
  // Heads may be too few to be exchanged, or cut among the ranks of a line.
  try {
    validate_plan(plan, training, model, setup.mesh());
  } catch (const PlanError&) {
    plan.stream.operand = StreamOperand::automatic;
    plan.stream.attention = StreamAttention::stream_kv;
  }
  return setup;
}

TEST(NumericOperators, AnyModelUnderAnyDivision) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const NumericCase setup = drawn(seed);
    EXPECT_EQ(all_faults(setup), "") << seed << ": " << text_of_cuts(setup.plan);
  }
}

/// Passes of weight gradients take their inputs and gradients as each operator cuts them.
TEST(NumericOperators, WeightPassesOfTheirOwn) {
  for (const SequenceParallel sp : {SequenceParallel::none, SequenceParallel::megatron}) {
    for (const PipelineSchedule schedule : {PipelineSchedule::zb_h1, PipelineSchedule::zb_h2}) {
      NumericCase setup;
      setup.set_degrees(1, 2, 2);
      setup.plan.tatp = 2;
      setup.plan.attention = OperatorDegrees{1, 4};
      setup.plan.mlp = OperatorDegrees{4, 1};
      setup.plan.sp = sp;
      setup.plan.schedule = schedule;
      setup.training.clip_grad = schedule != PipelineSchedule::zb_h2;
      EXPECT_EQ(join(verify_trace(setup.lower().trace, setup.mesh()), "\n"), "") << to_string(schedule);
    }
  }
}

/// A wrong row of a resharded tensor gives wrong numbers: the test above can fail.
TEST(NumericOperators, RowsOfOthersMatter) {
  NumericCase setup;
  setup.set_degrees(1, 1, 1);
  setup.plan.tatp = 4;
  setup.plan.mlp = OperatorDegrees{4, 1};
  setup.plan.collectives = Collective::direct;
  setup.training.global_batch = 4;
  EXPECT_EQ(differences(setup), "");
  const auto move_row = [](Meaning& meaning) { meaning.writes.front().region.row ^= 1; };
  EXPECT_NE(differences_with(setup, "layer.forward", Kernel::transfer, move_row), "");
}

}  // namespace
}  // namespace wafersim::workloads::numeric
