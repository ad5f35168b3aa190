#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "tests/workloads/numeric/numeric_case.h"

/// A mixture of experts under every axis that it can be cut over.
namespace wafersim::workloads::numeric {
namespace {

using models::Recompute;

NumericCase mixture() {
  NumericCase setup;
  make_tiny_mixtral(setup.model);
  setup.model.attention_kernel = models::AttentionKernel::fused;
  return setup;
}

const std::array kFactors = {Rational(1), Rational(5, 4), Rational(1, 2)};

TEST(NumericExperts, OneTile) {
  for (const Rational& factor : kFactors) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      NumericCase setup = mixture();
      setup.model.capacity_factor = factor;
      setup.training.recompute = recompute;
      EXPECT_EQ(faults(setup), "") << factor.to_string() << " " << static_cast<int>(recompute);
    }
  }
}

TEST(NumericExperts, OverReplicas) {
  for (const auto& [dp, ep] : {std::pair(2, 1), {2, 2}, {4, 2}, {4, 4}}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const Rational& factor : kFactors) {
        NumericCase setup = mixture();
        setup.model.capacity_factor = factor;
        setup.set_degrees(dp, 1, 1);
        setup.plan.ep = ep;
        setup.plan.zero = zero;
        setup.training.iterations = 2;
        EXPECT_EQ(faults(setup), "") << fmt::format("dp {} ep {} zero {} factor {}", dp, ep, zero,
                                                    factor.to_string());
      }
    }
  }
}

/// Every degree of top_k, experts that do not divide the choices, one expert for all.
TEST(NumericExperts, AnyNumberOfExpertsAndChoices) {
  for (const auto& [experts, top_k, ep] :
       {std::tuple(1, 1, 1), {2, 1, 2}, {6, 5, 2}, {6, 4, 2}, {3, 3, 1}, {8, 3, 4}}) {
    for (const Rational& factor : {Rational(1), Rational(7, 10), Rational(experts, top_k)}) {
      NumericCase setup = mixture();
      setup.model.experts = experts;
      setup.model.top_k = top_k;
      setup.model.capacity_factor = factor;
      setup.model.sequence = 7;
      setup.training.microbatch = 1;
      setup.training.global_batch = 4;
      setup.set_degrees(4, 2, 1);
      setup.plan.ep = ep;
      setup.plan.zero = 1;
      EXPECT_EQ(faults(setup), "") << fmt::format("experts {} top_k {} ep {} factor {}", experts, top_k, ep,
                                                  factor.to_string());
    }
  }
}

TEST(NumericExperts, CutOverTensorParallelRanks) {
  for (const int tp : {2, 3, 4}) {
    for (const auto sp : {SequenceParallel::none, SequenceParallel::megatron}) {
      for (const Recompute recompute : {Recompute::none, Recompute::full}) {
        for (const bool parallel : {false, true}) {
          NumericCase setup = mixture();
          setup.model.capacity_factor = tp == 3 ? Rational(5, 4) : Rational(1);
          setup.model.parallel_residual = parallel;
          setup.training.recompute = recompute;
          setup.set_degrees(2, tp, 1);
          setup.plan.ep = 2;
          setup.plan.sp = sp;
          setup.plan.zero = parallel ? 1 : 0;
          EXPECT_EQ(faults(setup), "")
              << fmt::format("tp {} sp {} recompute {} parallel {}", tp, static_cast<int>(sp),
                             static_cast<int>(recompute), parallel);
        }
      }
    }
  }
}

TEST(NumericExperts, WeightsThatStream) {
  for (const int tatp : {2, 3}) {
    for (const auto variant : {StreamVariant::flood, StreamVariant::interleaved_ring}) {
      for (const int near : {1, 2}) {
        for (const Rational& factor : kFactors) {
          NumericCase setup = mixture();
          setup.model.capacity_factor = factor;
          setup.model.sequence = 12;
          setup.set_degrees(2, near, 1);
          setup.plan.ep = 2;
          setup.plan.tatp = tatp;
          setup.plan.stream.variant = variant;
          setup.plan.overlap_near = near;
          setup.plan.zero = tatp - 1;
          EXPECT_EQ(faults(setup), "") << fmt::format("tatp {} variant {} near {} factor {}", tatp,
                                                      static_cast<int>(variant), near, factor.to_string());
        }
      }
    }
  }
}

TEST(NumericExperts, SequenceOverRanksOfItsOwn) {
  for (const auto sp : {SequenceParallel::ring, SequenceParallel::ulysses}) {
    for (const int tatp : {1, 2}) {
      NumericCase setup = mixture();
      setup.model.sequence = 9;
      setup.set_degrees(4, 1, 1);
      setup.plan.ep = 2;
      setup.plan.sp = sp;
      setup.plan.sp_degree = 2;
      setup.plan.tatp = tatp;
      setup.plan.zero = 2;
      EXPECT_EQ(faults(setup), "") << fmt::format("sp {} tatp {}", static_cast<int>(sp), tatp);
    }
  }
}

/// Backward passes in one piece and in two.
TEST(NumericExperts, EverySchedule) {
  for (const auto schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
        PipelineSchedule::zb_h1, PipelineSchedule::zb_h2}) {
    for (const auto sp : {SequenceParallel::none, SequenceParallel::megatron}) {
      for (const bool parallel : {false, true}) {
        for (const int zero : {0, 1, 2, 3}) {
          NumericCase setup = mixture();
          setup.model.layers = 4;
          setup.model.parallel_residual = parallel;
          setup.model.attention_kernel =
              zero == 1 ? models::AttentionKernel::materialized : models::AttentionKernel::fused;
          setup.training.recompute = zero == 2 ? Recompute::full : Recompute::none;
          setup.training.clip_grad = schedule != PipelineSchedule::zb_h2;
          setup.set_degrees(2, 2, 2);
          setup.plan.ep = 2;
          setup.plan.schedule = schedule;
          setup.plan.virtual_stages = schedule == PipelineSchedule::interleaved ? 2 : 1;
          setup.plan.sp = sp;
          setup.plan.zero = zero;
          EXPECT_EQ(faults(setup), "") << fmt::format("{} sp {} parallel {} zero {}", to_string(schedule),
                                                      static_cast<int>(sp), parallel, zero);
        }
      }
    }
  }
}

TEST(NumericExperts, TiedEmbeddingsClippingAndOtherNestings) {
  for (const int zero : {0, 1, 3}) {
    NumericCase setup = mixture();
    setup.model.tied_embeddings = true;
    setup.set_degrees(4, 1, 2);
    setup.plan.ep = 2;
    setup.plan.zero = zero;
    setup.plan.order = {Axis::dp, Axis::pp, Axis::ep};
    setup.training.iterations = 2;
    setup.largest_norm = 0.5;
    EXPECT_EQ(faults(setup), "") << zero;
  }
}

TEST(NumericExperts, GradientsThatNobodyUses) {
  NumericCase setup = mixture();
  setup.set_degrees(4, 2, 1);
  setup.plan.ep = 2;
  setup.training.optimizer = Optimizer::none;
  EXPECT_EQ(faults(setup), "");
}

TEST(NumericExperts, WrongMeaningsMakeWrongNumbers) {
  const auto with = [](const std::string& name, Kernel kernel, const std::function<void(Meaning&)>& change) {
    NumericCase setup = mixture();
    setup.set_degrees(4, 2, 1);
    setup.plan.ep = 2;
    return differences_with(setup, name, kernel, change);
  };
  const auto forget = [](Meaning& meaning) { meaning = {}; };
  for (const Kernel kernel : {Kernel::route, Kernel::dispatch, Kernel::combine}) {
    EXPECT_NE(with("layer.forward", kernel, forget), "") << to_string(kernel);
  }
  for (const Kernel kernel :
       {Kernel::route_backward, Kernel::dispatch_backward, Kernel::combine_backward, Kernel::accumulate}) {
    EXPECT_NE(with("layer.backward", kernel, forget), "") << to_string(kernel);
  }
  // Gates and outputs that belong to other tokens.
  const auto turn = [](Meaning& meaning) { std::swap(meaning.reads.front(), meaning.reads.at(1)); };
  EXPECT_NE(with("layer.forward", Kernel::combine, turn), "");
}

}  // namespace
}  // namespace wafersim::workloads::numeric
