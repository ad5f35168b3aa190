#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/workloads/numeric/numeric_case.h"

namespace wafersim::workloads::numeric {
namespace {

using models::AttentionKernel;
using models::AttentionMask;
using models::Recompute;

/// Two replicas of two stages of three ranks.
struct MixedPlan : NumericCase {
  explicit MixedPlan(bool sp = true) {
    set_degrees(2, 3, 2);
    plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
    plan.zero = 1;
  }
};

TEST(NumericModel, EveryKindOfAttentionAndRecompute) {
  for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (const auto kernel : {AttentionKernel::fused, AttentionKernel::materialized}) {
      for (const auto mask : {AttentionMask::causal, AttentionMask::full}) {
        for (const bool parallel : {false, true}) {
          MixedPlan setup(parallel);
          setup.training.recompute = recompute;
          setup.model.attention_kernel = kernel;
          setup.model.attention = mask;
          setup.model.parallel_residual = parallel;
          EXPECT_EQ(differences(setup), "")
              << fmt::format("recompute {} kernel {} mask {} parallel {}", static_cast<int>(recompute),
                             static_cast<int>(kernel), static_cast<int>(mask), parallel);
        }
      }
    }
  }
}

TEST(NumericModel, EveryPartOfALayer) {
  using models::Mlp, models::Norm, models::Positions;
  for (const auto mlp : {Mlp::gelu, Mlp::swiglu}) {
    for (const auto norm : {Norm::layernorm, Norm::rmsnorm}) {
      for (const auto positions : {Positions::learned, Positions::rotary, Positions::none}) {
        for (const bool bias : {false, true}) {
          MixedPlan setup(bias);
          setup.model.mlp = mlp;
          setup.model.norm = norm;
          setup.model.positions = positions;
          setup.model.linear_bias = bias;
          EXPECT_EQ(differences(setup), "")
              << fmt::format("mlp {} norm {} positions {} bias {}", static_cast<int>(mlp),
                             static_cast<int>(norm), static_cast<int>(positions), bias);
        }
      }
    }
  }
}

TEST(NumericModel, ParallelResidualsSumBothBlocksOutputsAndBiases) {
  for (const int tp : {1, 2, 4}) {
    for (const bool sp : {false, true}) {
      NumericCase setup;
      setup.model.parallel_residual = true;
      setup.set_degrees(1, tp, 1);
      setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
      EXPECT_EQ(differences(setup), "") << fmt::format("tp {} sp {}", tp, sp);
    }
  }
}

TEST(NumericModel, TiedEmbeddingsOnOneStageAndAcross) {
  for (const int pp : {1, 2}) {
    for (const int tp : {1, 3}) {
      for (const int dp : {1, 2}) {
        for (const int zero : {0, 1}) {
          NumericCase setup;
          setup.model.tied_embeddings = true;
          setup.set_degrees(dp, tp, pp);
          setup.plan.zero = zero;
          setup.training.iterations = 2;
          EXPECT_EQ(differences(setup), "") << fmt::format("pp {} tp {} dp {} zero {}", pp, tp, dp, zero);
        }
      }
    }
  }
}

TEST(NumericModel, WithoutSomeOfItsEnds) {
  for (const bool embedding : {false, true}) {
    for (const bool head : {false, true}) {
      for (const bool final_norm : {false, true}) {
        for (const bool sp : {false, true}) {
          MixedPlan setup(sp);
          setup.model.embedding = embedding;
          setup.model.head = head;
          setup.model.final_norm = final_norm;
          EXPECT_EQ(differences(setup), "")
              << fmt::format("embedding {} head {} final norm {} sp {}", embedding, head, final_norm, sp);
        }
      }
    }
  }
}

/// The last ranks have padding only.
TEST(NumericModel, PaddingOfTheVocabularyHasNoPartInTheLoss) {
  NumericCase setup;
  setup.model.vocab = 5;
  setup.set_degrees(1, 4, 1);
  EXPECT_EQ(differences(setup), "");
}

}  // namespace
}  // namespace wafersim::workloads::numeric
