#include <fmt/format.h>
#include <gtest/gtest.h>

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

TEST(NumericExperts, OneTile) {
  for (const Rational factor : {Rational(1), Rational(5, 4), Rational(1, 2)}) {
    NumericCase setup = mixture();
    setup.model.capacity_factor = factor;
    EXPECT_EQ(faults(setup), "") << factor.to_string();
  }
}

TEST(NumericExperts, ExpertsOverReplicas) {
  for (const auto& [dp, ep] : {std::pair(2, 1), {2, 2}, {4, 2}, {4, 4}}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const Rational factor : {Rational(1), Rational(5, 4), Rational(1, 2)}) {
        NumericCase setup = mixture();
        setup.model.capacity_factor = factor;
        setup.set_degrees(dp, 1, 1);
        setup.plan.ep = ep;
        setup.plan.zero = zero;
        EXPECT_EQ(faults(setup), "")
            << fmt::format("dp {} ep {} zero {} factor {}", dp, ep, zero, factor.to_string());
      }
    }
  }
}

}  // namespace
}  // namespace wafersim::workloads::numeric
