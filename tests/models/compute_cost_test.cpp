#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/cost.h"
#include "tests/models/test_models.h"

namespace wafersim::models {
namespace {

HardwareModel with_array(int rows, int cols, Rational arrays = 1,
                         Dataflow dataflow = Dataflow::weight_stationary) {
  HardwareModel hardware = test::plain_hardware();
  hardware.array = {rows, cols};
  hardware.arrays = arrays;
  hardware.dataflow = dataflow;
  hardware.matrix_flops_per_cycle = Rational(2 * std::int64_t{rows} * cols) * arrays;
  return hardware;
}

Cycle gemm(const HardwareModel& hardware, const GemmShape& shape) {
  return ComputeCost(hardware).gemm(shape);
}

TEST(Gemm, OneFoldByHand) {
  // 4x8 array, weights of 4x8: load 4, stream 100 rows, fill and drain 4 + 8 - 2.
  EXPECT_EQ(gemm(with_array(4, 8), {1, 100, 8, 4}), 4u + 100 + 10);
}

TEST(Gemm, RaggedFoldsByHand) {
  // k = 9 takes 3 folds of 4 rows, n = 17 takes 3 of 8 columns; 5 products.
  EXPECT_EQ(gemm(with_array(4, 8), {5, 100, 17, 9}), 4u + 5 * 9 * 100 + 10);
}

TEST(Gemm, FewRowsWaitForTheNextWeights) {
  EXPECT_EQ(gemm(with_array(128, 128), {1, 1, 256, 256}), 128u + 4 * 128 + 254);
}

TEST(Gemm, DataflowsExchangeTheOperands) {
  const GemmShape shape{2, 100, 30, 50};  // m, n, k
  // Weights k x n: ceil(50/4) * ceil(30/8) = 52 folds of 100. Outputs m x n: 25 * 4 = 100 folds of 50.
  // Inputs k x m: 13 * 13 = 169 folds of 30.
  EXPECT_EQ(gemm(with_array(4, 8, 1, Dataflow::weight_stationary), shape), 14u + 2 * 52 * 100);
  EXPECT_EQ(gemm(with_array(4, 8, 1, Dataflow::output_stationary), shape), 14u + 2 * 100 * 50);
  EXPECT_EQ(gemm(with_array(4, 8, 1, Dataflow::input_stationary), shape), 14u + 2 * 169 * 30);
}

TEST(Gemm, ArraysMayBeFractional) {
  // 114 cycles of one array.
  EXPECT_EQ(gemm(with_array(4, 8, 2), {1, 100, 8, 4}), 57u);
  EXPECT_EQ(gemm(with_array(4, 8, Rational(3, 2)), {1, 100, 8, 4}), 76u);
  EXPECT_EQ(gemm(with_array(4, 8, Rational(1001, 1000)), {1, 100, 8, 4}), 114u);
  EXPECT_EQ(gemm(with_array(4, 8, Rational(1, 3)), {1, 100, 8, 4}), 342u);
}

TEST(Gemm, LaunchOverheadComesOnTop) {
  HardwareModel hardware = with_array(4, 8, 2);
  hardware.launch_overhead = 1000;
  EXPECT_EQ(gemm(hardware, {1, 100, 8, 4}), 1057u);
}

TEST(Gemm, NoElementsCostNothing) {
  HardwareModel hardware = with_array(4, 8);
  hardware.launch_overhead = 1000;
  EXPECT_EQ(gemm(hardware, {1, 0, 8, 4}), 0u);
  EXPECT_EQ(gemm(hardware, {0, 1, 8, 4}), 0u);
}

TEST(Gemm, FullTilesApproachThePeak) {
  const HardwareModel hardware = with_array(128, 128);
  const auto efficiency = [&](const GemmShape& shape) {
    return static_cast<double>(shape.flops()) /
           (static_cast<double>(gemm(hardware, shape)) * hardware.matrix_flops_per_cycle.to_double());
  };
  EXPECT_GT(efficiency({1, 4096, 4096, 4096}), 0.9999);
  EXPECT_NEAR(efficiency({1, 4096, 4096, 64}), 0.5, 0.01) << "half of the rows idle";
  EXPECT_NEAR(efficiency({1, 4096, 129, 4096}), 129.0 / 256, 0.01) << "the second fold holds one column";
  EXPECT_NEAR(efficiency({1, 1, 4096, 4096}), 1.0 / 128, 0.001) << "a vector waits for the weights";
}

GemmShape any_shape() {
  const auto dimension = rc::gen::inRange<std::uint64_t>(1, 700);
  return {*rc::gen::inRange<std::uint64_t>(1, 5), *dimension, *dimension, *dimension};
}

HardwareModel any_array() {
  const auto arrays = Rational(*rc::gen::inRange(1, 100), *rc::gen::inRange(1, 20));
  const auto dataflow =
      *rc::gen::element(Dataflow::weight_stationary, Dataflow::output_stationary, Dataflow::input_stationary);
  return with_array(*rc::gen::inRange(1, 200), *rc::gen::inRange(1, 200), arrays, dataflow);
}

RC_GTEST_PROP(Gemm, IsNeverFasterThanThePeak, ()) {
  const HardwareModel hardware = any_array();
  const GemmShape shape = any_shape();
  RC_ASSERT(gemm(hardware, shape) >= cycles_at_rate(shape.flops(), hardware.matrix_flops_per_cycle));
}

RC_GTEST_PROP(Gemm, IsMonotoneInEachDimension, ()) {
  const HardwareModel hardware = any_array();
  const GemmShape shape = any_shape();
  const Cycle cycles = gemm(hardware, shape);
  for (std::uint64_t GemmShape::*dimension :
       {&GemmShape::batch, &GemmShape::m, &GemmShape::n, &GemmShape::k}) {
    GemmShape larger = shape;
    larger.*dimension += *rc::gen::inRange<std::uint64_t>(1, 300);
    RC_ASSERT(gemm(hardware, larger) >= cycles);
  }
}

TEST(Vector, RoundsUpAndAddsTheLaunch) {
  HardwareModel hardware = test::plain_hardware();
  hardware.vector_flops_per_cycle = Rational(2048, 3);
  hardware.launch_overhead = 7;
  const ComputeCost cost(hardware);
  EXPECT_EQ(cost.vector(2048), 3u + 7);
  EXPECT_EQ(cost.vector(2049), 4u + 7);
  EXPECT_EQ(cost.vector(1), 1u + 7);
  EXPECT_EQ(cost.vector(0), 0u);
}

}  // namespace
}  // namespace wafersim::models
