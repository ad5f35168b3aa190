#include "workloads/stream_operand.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/parameter_layout.h"
#include "workloads/verify.h"

namespace wafersim::workloads {
namespace {

using models::Recompute;

/// Layers alone, in which every size is a multiple of every degree here.
LoweringFixture even(int tp, int tatp) {
  LoweringFixture setup;
  setup.layers_alone();
  setup.model.attention_kernel = models::AttentionKernel::fused;
  setup.model.sequence = setup.model.context = 48;
  setup.model.kv_heads = 4;
  setup.set_degrees(1, tp, 1);
  setup.plan.tatp = tatp;
  return setup;
}

/// Bytes that the layers' steps of a trace send over tatp, of one layer and microbatch.
Bytes sent(const LoweringFixture& setup) {
  const Trace trace = setup.lower().trace;
  Bytes total = 0;
  for_each_op(trace, [&](const TileBinding&, const Step& step, const Op& op) {
    if (step.kind == StepKind::layer && op.kind == OpKind::send && op.axis == Axis::tatp) total += op.bytes;
  });
  const auto passes = static_cast<Bytes>(setup.model.layers) *
                      static_cast<Bytes>(setup.training.microbatches(setup.plan.dp));
  EXPECT_EQ(total % passes, 0U);
  return total / passes;
}

Bytes volume(const LoweringFixture& setup) {
  Bytes total = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    const StreamVolumes volumes = stream_volumes(setup.model, setup.training, setup.plan, pair);
    total += streams_inputs(setup.model, setup.training, setup.plan, pair) ? *volumes.inputs : volumes.weights;
  }
  return total;
}

TEST(StreamOperand, VolumesAreWhatTracesSend) {
  for (const auto& [tp, tatp] : {std::pair(1, 2), {1, 4}, {2, 2}}) {
    for (const auto operand : {StreamOperand::weights, StreamOperand::inputs, StreamOperand::automatic}) {
      for (const auto attention : {StreamAttention::stream_kv, StreamAttention::heads}) {
        for (const auto recompute : {Recompute::none, Recompute::full}) {
          for (const auto schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1}) {
            for (const auto variant : {StreamVariant::flood, StreamVariant::wrapped_ring}) {
              LoweringFixture setup = even(tp, tatp);
              setup.plan.stream = {operand, attention, variant, StreamRelay::cut_through};
              setup.plan.schedule = schedule;
              setup.training.recompute = recompute;
              EXPECT_EQ(volume(setup), sent(setup))
                  << "tp " << tp << " tatp " << tatp << " operand " << static_cast<int>(operand) << " heads "
                  << (attention == StreamAttention::heads) << " recompute " << static_cast<int>(recompute) << " "
                  << to_string(schedule);
            }
          }
        }
      }
    }
  }
}

TEST(StreamOperand, VolumesAreWhatTracesSendBesideOtherCuts) {
  for (const auto operand : {StreamOperand::weights, StreamOperand::inputs}) {
    for (const auto attention : {StreamAttention::stream_kv, StreamAttention::heads}) {
      LoweringFixture ring = even(1, 2);
      ring.plan.stream.operand = operand;
      ring.plan.stream.attention = attention;
      ring.plan.sp = SequenceParallel::ring;
      ring.plan.sp_degree = 3;
      EXPECT_EQ(volume(ring), sent(ring));
    }
    LoweringFixture ulysses = even(1, 2);
    ulysses.plan.stream.operand = operand;
    ulysses.plan.sp = SequenceParallel::ulysses;
    ulysses.plan.sp_degree = 2;
    EXPECT_EQ(volume(ulysses), sent(ulysses));
    // Key and value heads that stand on several tensor-parallel ranks.
    LoweringFixture shared = even(4, 2);
    shared.model.kv_heads = 2;
    shared.plan.stream.operand = operand;
    shared.plan.sp = SequenceParallel::megatron;
    shared.training.precision = Precision::fp32;
    EXPECT_EQ(volume(shared), sent(shared));
  }
}

std::array<bool, kPairs> chosen(const LoweringFixture& setup) {
  return streamed_inputs(setup.model, setup.training, setup.plan);
}

/// Without recomputation in bf16 a weight moves 8 bytes a parameter, the residual stream 14 an element; keys and values 8.
TEST(StreamOperand, AutoTakesWhatMovesFewerBytes) {
  LoweringFixture setup = even(1, 4);
  setup.plan.stream.operand = StreamOperand::automatic;
  setup.model.linear_bias = false;
  setup.training.microbatch = 1;
  // MLP: 8 x 2 x 64 x 224 = 14 x 64 x 256, where weights stay in their place.
  setup.model.ffn = 224;
  setup.model.sequence = setup.model.context = 256;
  EXPECT_EQ(stream_volumes(setup.model, setup.training, setup.plan, 1).weights,
            stream_volumes(setup.model, setup.training, setup.plan, 1).inputs);
  EXPECT_FALSE(chosen(setup)[1]) << "weights when equal";
  setup.model.sequence = 255;
  EXPECT_TRUE(chosen(setup)[1]);
  // Attention: 8 (2 + 2 kv / 8) x 64^2 + 8 x 2 x 8 kv t against 14 x 64 t: with kv = 8 keys and values alone are more.
  setup.model.sequence = setup.model.context = 1 << 20;
  setup.model.kv_heads = 8;
  EXPECT_EQ(chosen(setup), (std::array{true, false}));
  setup.model.kv_heads = 4;
  EXPECT_EQ(chosen(setup), (std::array{false, false}));
  setup.model.sequence = setup.model.context = 32;
  EXPECT_EQ(chosen(setup), (std::array{true, true}));
}

TEST(StreamOperand, WeightsOfExpertsAlwaysTravel) {
  for (const auto operand : {StreamOperand::weights, StreamOperand::inputs, StreamOperand::automatic}) {
    for (const int ep : {1, 2}) {
      LoweringFixture setup = even(2, 2);
      setup.make_mixtral();
      setup.plan.dp = 2;
      setup.plan.ep = ep;
      setup.plan.stream.operand = operand;
      EXPECT_FALSE(chosen(setup)[1]);
      EXPECT_EQ(2 * volume(setup), sent(setup)) << "two replicas, operand " << static_cast<int>(operand) << " ep " << ep;
      EXPECT_EQ(join(verify_trace(setup.lower().trace, setup.mesh()), "\n"), "");
    }
  }
}

TEST(StreamOperand, AutoStreamsWeightsWhereInputsCannotTravel) {
  LoweringFixture setup = even(1, 16);
  setup.model.sequence = setup.model.context = 32;
  setup.plan.stream.operand = StreamOperand::automatic;
  EXPECT_FALSE(stream_inputs_fault(setup.model, setup.plan, 0).empty());
  EXPECT_EQ(chosen(setup), (std::array{false, true}));
  setup.plan.stream.operand = StreamOperand::weights;
  EXPECT_EQ(chosen(setup), (std::array{false, false}));
}

TEST(StreamOperand, IsReportedWithTensorStreamsOnly) {
  LoweringFixture setup = even(1, 2);
  setup.plan.stream.operand = StreamOperand::automatic;
  ASSERT_TRUE(stream_report(setup.model, setup.training, setup.plan).has_value());
  EXPECT_EQ(stream_report(setup.model, setup.training, setup.plan)->inputs, chosen(setup));
  setup.plan.tatp = 1;
  EXPECT_FALSE(stream_report(setup.model, setup.training, setup.plan).has_value());
  EXPECT_EQ(chosen(setup), (std::array{false, false}));
}

/// Every rank cuts its share of what lies between the products: each parameter of a layer stands on one tile of the line.
TEST(StreamOperand, ALineHoldsEachParameterOnce) {
  for (const int near : {1, 3}) {
    for (const auto operand : {StreamOperand::weights, StreamOperand::inputs}) {
      LoweringFixture setup = even(2, 2);
      setup.plan.stream.operand = operand;
      setup.plan.overlap_near = near;
      const ParameterLayout layout(setup.model, setup.training, setup.plan);
      std::uint64_t held = 0;
      for (int tp = 0; tp < 2; ++tp) {
        for (int tatp = 0; tatp < 2; ++tatp) held += parameters_in(layout.layer(tp, tatp)) - layout.layer(tp, tatp)[0].rows;
      }
      const models::ParameterCount count = models::count_parameters(setup.model);
      const auto biases = static_cast<std::uint64_t>(2 * setup.model.hidden);  // of outputs, on every tile
      EXPECT_EQ(held, count.attention_per_layer + count.mlp_per_layer - biases) << near;
    }
  }
}

}  // namespace
}  // namespace wafersim::workloads
