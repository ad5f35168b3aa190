#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/workloads/numeric/numeric_case.h"

namespace wafersim::workloads::numeric {
namespace {

TEST(NumericTraining, TwoIterationsGiveTheWeightsOfTwoSteps) {
  for (const bool llama : {false, true}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const int pp : {1, 2}) {
        NumericCase setup;
        if (llama) setup.make_llama();
        setup.set_degrees(2, 4, pp);
        setup.plan.zero = zero;
        setup.plan.sp = SequenceParallel::megatron;
        setup.training.iterations = 2;
        EXPECT_EQ(differences(setup), "") << fmt::format("llama {} zero {} pp {}", llama, zero, pp);
      }
    }
  }
}

/// Every tile scales by the same norm, whatever other tiles hold the same parameters.
TEST(NumericTraining, ClippedGradients) {
  for (const int zero : {0, 1}) {
    NumericCase setup;
    setup.make_llama();
    setup.model.tied_embeddings = true;
    setup.set_degrees(2, 4, 2);
    setup.plan.zero = zero;
    setup.training.iterations = 2;
    setup.largest_norm = 0.5;
    EXPECT_EQ(differences(setup), "") << zero;
  }
}

TEST(NumericTraining, GradientsThatNobodyUses) {
  NumericCase setup;
  setup.set_degrees(2, 3, 2);
  setup.plan.sp = SequenceParallel::megatron;
  setup.training.optimizer = Optimizer::none;
  EXPECT_EQ(differences(setup), "");
}

TEST(NumericTraining, WithoutTheGradientNorm) {
  NumericCase setup;
  setup.set_degrees(2, 2, 1);
  setup.training.clip_grad = false;
  EXPECT_EQ(differences(setup), "");
}

std::string differences_with(const std::string& name, Kernel kernel,
                             const std::function<void(Meaning&)>& change) {
  NumericCase setup;
  setup.set_degrees(2, 2, 2);
  setup.plan.sp = SequenceParallel::megatron;
  setup.plan.zero = 1;
  return differences_with(setup, name, kernel, change);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(NumericTraining, WrongMeaningsMakeWrongNumbers) {
  const auto forget = [](Meaning& meaning) { meaning = {}; };
  // Partial sums that nobody adds, of activations and of gradients.
  EXPECT_TRUE(contains(differences_with("layer.forward", Kernel::add, forget), "loss"));
  EXPECT_TRUE(contains(differences_with("layer.backward", Kernel::add, forget), "gradients of iteration 0"));
  EXPECT_TRUE(contains(differences_with("gradient_sync", Kernel::add, forget), "gradients of iteration 0"));
  // A product, and an update, that nobody does.
  EXPECT_TRUE(contains(differences_with("layer.forward", Kernel::linear, forget), "not there"));
  EXPECT_TRUE(contains(differences_with("optimizer", Kernel::update, forget), "weights are wrong"));
  // Weights that do not belong to what is multiplied with them.
  const auto shift = [](Meaning& meaning) {
    for (View& view : meaning.reads) view.region.row += view.region.cols == 1 ? 1 : 0;
  };
  EXPECT_NE(differences_with("layer.forward", Kernel::linear, shift), "");
  // A gradient of the residual path that is forgotten.
  const auto drop_last = [](Meaning& meaning) { meaning.reads.pop_back(); };
  EXPECT_TRUE(contains(differences_with("layer.backward", Kernel::norm_backward, drop_last),
                       "gradients of iteration 0"));
  // Parameters that count twice in the norm.
  const auto twice = [](Meaning& meaning) { meaning.reads.push_back(meaning.reads.front()); };
  EXPECT_TRUE(contains(differences_with("optimizer", Kernel::square_sum, twice), "gradient norm"));
}

}  // namespace
}  // namespace wafersim::workloads::numeric
