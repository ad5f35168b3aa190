#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/workloads/numeric/numeric_case.h"

namespace wafersim::workloads::numeric {
namespace {

TEST(NumericPlan, OneTile) {
  NumericCase setup;
  EXPECT_EQ(differences(setup), "");
  setup.make_llama();
  EXPECT_EQ(differences(setup), "");
}

/// Every degree of the axes that cut a layer or the batch, ragged ones too, on both kinds of layer.
TEST(NumericPlan, EveryDegreeOfDataTensorAndPipeline) {
  for (const bool llama : {false, true}) {
    for (const int tp : {1, 2, 3, 4}) {
      for (const int dp : {1, 2}) {
        for (const int pp : {1, 2}) {
          for (const bool sp : {false, true}) {
            NumericCase setup;
            if (llama) setup.make_llama();
            setup.set_degrees(dp, tp, pp);
            setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
            setup.plan.zero = dp - 1;
            EXPECT_EQ(differences(setup), "")
                << fmt::format("llama {} tp {} dp {} pp {} sp {}", llama, tp, dp, pp, sp);
          }
        }
      }
    }
  }
}

/// A vector is cut into pieces and shards in other ways by each of them.
TEST(NumericPlan, EveryCollectiveInOneAndInSeveralPieces) {
  for (const auto collective :
       {Collective::ring, Collective::line, Collective::rows_cols, Collective::tree, Collective::halving_doubling, Collective::direct,
        Collective::multicast, Collective::router_multicast}) {
    for (const int chunks : {1, 3}) {
      for (const bool sp : {false, true}) {
        NumericCase setup;
        setup.set_degrees(2, 4, 1);
        setup.plan.collectives = collective;
        setup.plan.collective_chunks = chunks;
        setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
        setup.plan.zero = sp ? 1 : 0;
        EXPECT_EQ(differences(setup), "") << fmt::format("{} {} sp {}", to_string(collective), chunks, sp);
      }
    }
  }
}

TEST(NumericPlan, FourReplicasOfOneMicrobatchEach) {
  for (const int zero : {0, 1, 2, 3}) {
    NumericCase setup;
    setup.set_degrees(4, 2, 1);
    setup.plan.zero = zero;
    EXPECT_EQ(differences(setup), "") << zero;
  }
}

TEST(NumericPlan, MicrobatchesOfOneSequence) {
  NumericCase setup;
  setup.set_degrees(2, 3, 2);
  setup.training.microbatch = 1;
  setup.plan.sp = SequenceParallel::megatron;
  EXPECT_EQ(differences(setup), "");
}

/// The boundary between stages cut over the ranks or sent whole by each, and both orders of microbatches.
TEST(NumericPlan, PipelinesOfEitherScheduleAndTransfer) {
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    for (const bool full : {false, true}) {
      NumericCase setup;
      setup.model.layers = 4;
      setup.set_degrees(1, 3, 4);
      setup.plan.schedule = schedule;
      setup.plan.pp_transfer_full = full;
      EXPECT_EQ(differences(setup), "") << full;
    }
  }
}

/// With more tensor-parallel ranks than kv heads some ranks share one, and some need two.
TEST(NumericPlan, KeyValueHeadsOfSeveralRanks) {
  for (const bool sp : {false, true}) {
    for (const int zero : {0, 1}) {
      for (const auto& [heads, kv_heads, tp] :
           {std::tuple(4, 1, 2), {4, 1, 4}, {4, 2, 3}, {4, 2, 4}, {6, 2, 4}, {6, 3, 5}}) {
        NumericCase setup;
        setup.make_llama();
        setup.model.heads = heads;
        setup.model.kv_heads = kv_heads;
        setup.model.qkv_bias = true;
        setup.set_degrees(2, tp, 1);
        setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
        setup.plan.zero = zero;
        EXPECT_EQ(differences(setup), "")
            << fmt::format("{} {} tp {} sp {} zero {}", heads, kv_heads, tp, sp, zero);
      }
    }
  }
}

}  // namespace
}  // namespace wafersim::workloads::numeric
