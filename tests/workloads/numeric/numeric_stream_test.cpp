#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/workloads/numeric/cut.h"

namespace wafersim::workloads::numeric {
namespace {

using models::AttentionMask, models::Recompute;

/// Every way in which blocks travel, on either kind of layer and mask.
TEST(NumericStream, EveryTensorStream) {
  for (const auto variant :
       {StreamVariant::flood, StreamVariant::wrapped_ring, StreamVariant::interleaved_ring}) {
    for (const auto relay : {StreamRelay::cut_through, StreamRelay::store_and_forward}) {
      for (const int tatp : {2, 3, 4}) {
        for (const auto attention : {StreamAttention::stream_kv, StreamAttention::heads}) {
          for (const int near : {1, 2}) {
            NumericCase setup = setup_of({.tatp = tatp, .attention = attention, .near = near});
            setup.plan.stream.variant = variant;
            setup.plan.stream.relay = relay;
            setup.model.sequence = 9;
            setup.training.microbatch = near;
            setup.training.global_batch = 2 * near;
            if (tatp == 2) setup.make_llama();
            if (near == 2) setup.model.attention = AttentionMask::full;
            EXPECT_EQ(faults(setup), "")
                << fmt::format("variant {} relay {} tatp {} heads {} near {}", static_cast<int>(variant),
                               static_cast<int>(relay), tatp, attention == StreamAttention::heads, near);
          }
        }
      }
    }
  }
}

TEST(NumericStream, SequenceOverRanksOfItsOwn) {
  for (const auto& [sp, degree] : {std::pair(SequenceParallel::ring, 2),
                                   {SequenceParallel::ring, 3},
                                   {SequenceParallel::ring, 4},
                                   {SequenceParallel::ulysses, 2},
                                   {SequenceParallel::ulysses, 3},
                                   {SequenceParallel::ulysses, 4}}) {
    for (const auto mask : {AttentionMask::causal, AttentionMask::full}) {
      for (const auto recompute : {Recompute::none, Recompute::full}) {
        NumericCase setup = setup_of({.sp = sp, .sp_degree = degree});
        if (mask == AttentionMask::full && degree == 2) setup.make_llama();
        setup.model.attention = mask;
        setup.training.recompute = recompute;
        EXPECT_EQ(faults(setup), "") << fmt::format("sp {} x{} full mask {} recompute {}",
                                                    static_cast<int>(sp), degree, mask == AttentionMask::full,
                                                    static_cast<int>(recompute));
      }
    }
  }
}

/// Heads that are exchanged find all keys in one place: materialized scores will do.
TEST(NumericStream, MaterializedScoresOfExchangedHeads) {
  for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (const bool over_tatp : {false, true}) {
      NumericCase setup = over_tatp ? setup_of({.tatp = 2, .attention = StreamAttention::heads})
                                    : setup_of({.sp = SequenceParallel::ulysses, .sp_degree = 2});
      setup.model.attention_kernel = models::AttentionKernel::materialized;
      setup.training.recompute = recompute;
      EXPECT_EQ(faults(setup), "") << fmt::format("recompute {} tatp {}", static_cast<int>(recompute),
                                                  over_tatp);
    }
  }
}

TEST(NumericStream, CombinationsOfTheAxes) {
  using enum SequenceParallel;
  constexpr auto kHeads = StreamAttention::heads;
  const std::vector<Cut> cuts = {
      {.tatp = 2, .dp = 2, .pp = 2},
      {.tatp = 3, .dp = 2, .pp = 2, .near = 2},
      {.tatp = 2, .dp = 2, .pp = 2, .attention = kHeads, .near = 2},
      {.tp = 2, .sp = ring, .sp_degree = 2, .pp = 2},
      {.tp = 3, .sp = ring, .sp_degree = 3, .dp = 2},
      {.tp = 2, .sp = ulysses, .sp_degree = 2, .dp = 2, .pp = 2},
      {.tatp = 2, .sp = ring, .sp_degree = 2},
      {.tatp = 2, .sp = ring, .sp_degree = 3, .near = 2},
      {.tatp = 3, .sp = ring, .sp_degree = 2, .dp = 2},
      {.tatp = 2, .sp = ring, .sp_degree = 2, .attention = kHeads},
      {.tatp = 2, .sp = ulysses, .sp_degree = 2},
      {.tatp = 3, .sp = ulysses, .sp_degree = 2, .near = 2},
      {.tp = 2, .tatp = 2, .sp = megatron},
      {.tp = 3, .tatp = 2, .sp = megatron, .dp = 2, .near = 2},
      {.tp = 2, .tatp = 2, .sp = megatron, .pp = 2, .attention = kHeads},
      {.tp = 4, .tatp = 2, .near = 2},
      {.tp = 2, .tatp = 2, .sp = ring, .sp_degree = 2, .dp = 2, .pp = 2, .near = 2},
      {.tp = 2, .tatp = 2, .sp = ulysses, .sp_degree = 2, .dp = 2, .pp = 2},
      {.tp = 2, .tatp = 2, .sp = ring, .sp_degree = 2, .pp = 2, .attention = kHeads}};
  for (const Cut& cut : cuts) EXPECT_EQ(faults(setup_of(cut)), "") << describe(cut);
}

/// Key and value heads that several tensor-parallel ranks hold, and two query heads or more for each.
TEST(NumericStream, GroupedQueriesAndSharedKeyValueHeads) {
  using enum SequenceParallel;
  for (const auto& [kv_heads, cut] :
       std::vector<std::pair<int, Cut>>{{1, {.tp = 1, .tatp = 2, .near = 2}},
                                        {1, {.tp = 2, .tatp = 2, .sp = ring, .sp_degree = 2}},
                                        {2, {.tp = 3, .tatp = 2, .dp = 2}},
                                        {2, {.tp = 4, .tatp = 3, .sp = megatron, .near = 2}},
                                        {2, {.tp = 4, .sp = ring, .sp_degree = 3}},
                                        {4, {.tp = 2, .tatp = 2, .sp = ulysses, .sp_degree = 2}},
                                        {2, {.tatp = 2, .attention = StreamAttention::heads}}}) {
    NumericCase setup = setup_of(cut);
    setup.make_llama();
    setup.model.qkv_bias = true;
    setup.model.kv_heads = kv_heads;
    EXPECT_EQ(faults(setup), "") << kv_heads << " of " << describe(cut);
  }
}

/// Models of other kinds, and what is made again for the backward pass.
TEST(NumericStream, KindsOfModelsAndOfMemorySaving) {
  using enum SequenceParallel;
  for (const Cut& cut : std::vector<Cut>{{.tp = 2, .tatp = 2, .pp = 2, .near = 2},
                                         {.tatp = 2, .sp = ring, .sp_degree = 2, .dp = 2},
                                         {.tp = 2, .tatp = 3, .sp = megatron},
                                         {.tatp = 2, .sp = ulysses, .sp_degree = 2},
                                         {.tatp = 2, .pp = 2, .attention = StreamAttention::heads}}) {
    for (const bool full : {false, true}) {
      NumericCase setup = setup_of(cut);
      setup.training.recompute = full ? Recompute::full : Recompute::none;
      setup.training.microbatch = full ? 1 : 2;
      setup.training.iterations = 2;
      setup.largest_norm = 0.5;
      setup.model.tied_embeddings = true;
      setup.model.parallel_residual = full;
      EXPECT_EQ(faults(setup), "") << describe(cut) << " full " << full;
      setup.make_llama();
      setup.model.final_norm = full;
      EXPECT_EQ(faults(setup), "") << describe(cut) << " full " << full << " llama";
    }
  }
}

TEST(NumericStream, WrongMeaningsMakeWrongNumbers) {
  using enum SequenceParallel;
  const auto forget = [](Meaning& meaning) { meaning = {}; };
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  // A block of keys that nobody attends to, and one whose gradient nobody makes or adds.
  const NumericCase ring_plan = setup_of({.sp = ring, .sp_degree = 3});
  EXPECT_TRUE(contains(differences_with(ring_plan, "layer.forward", Kernel::attend, forget), "loss"));
  EXPECT_TRUE(contains(differences_with(ring_plan, "layer.backward", Kernel::attend_backward, forget),
                       "gradients of iteration 0"));
  EXPECT_TRUE(contains(differences_with(ring_plan, "layer.backward", Kernel::add, forget), "gradients of"));
  // Row products of too few heads.
  const auto fewer_heads = [](Meaning& meaning) {
    for (View& view : meaning.reads) {
      if (view.region.cols == 4) view.region = {view.region.row, view.region.rows, 0, 3};
    }
  };
  EXPECT_NE(differences_with(ring_plan, "layer.backward", Kernel::attend_backward, fewer_heads), "");
  // A block that a member does not pass on, and a bias that nobody sums.
  NumericCase stream_plan = setup_of({.tatp = 4});
  stream_plan.plan.stream.variant = StreamVariant::wrapped_ring;
  stream_plan.plan.stream.relay = StreamRelay::store_and_forward;
  EXPECT_NE(differences_with(stream_plan, "layer.forward", Kernel::pass, forget), "");
  EXPECT_TRUE(contains(differences_with(stream_plan, "layer.backward", Kernel::bias_gradient, forget),
                       "gradients of iteration 0"));
}

}  // namespace
}  // namespace wafersim::workloads::numeric
