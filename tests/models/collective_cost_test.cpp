#include "models/collective_cost.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "tests/models/csv_table.h"
#include "tests/models/test_models.h"

namespace wafersim::models {
namespace {

constexpr Bytes kMebi = 1 << 20;

TEST(Ring, StepsAreShardsToANeighbour) {
  const HardwareModel hardware = test::plain_hardware();
  const Cycle step = 2 * 2 + 4 + kMebi / 8 / 256;
  EXPECT_EQ(ring_all_gather(hardware, 8, kMebi), 7 * step);
  EXPECT_EQ(ring_reduce_scatter(hardware, 8, kMebi, 100), 7 * (step + 100));
  EXPECT_EQ(ring_all_reduce(hardware, 8, kMebi, 100), 7 * (2 * step + 100));
}

TEST(Ring, TwoHopNeighboursCostARouterAndALinkMore) {
  const HardwareModel hardware = test::plain_hardware();
  EXPECT_EQ(ring_all_gather(hardware, 8, kMebi, 2), ring_all_gather(hardware, 8, kMebi) + 7 * (2 + 4));
}

TEST(Ring, UnequalShardsCountAsTheLargest) {
  const HardwareModel hardware = test::plain_hardware();
  EXPECT_EQ(ring_all_gather(hardware, 3, 3 * 256 + 1), ring_all_gather(hardware, 3, 3 * 257));
}

TEST(Ring, OneMemberCostsNothing) {
  EXPECT_EQ(ring_all_reduce(test::plain_hardware(), 1, kMebi, 100), 0u);
  EXPECT_THROW(ring_all_reduce(test::plain_hardware(), 0, kMebi, 100), InternalError);
}

TEST(Ring, ContentionTableRowOfEightRanksInFourChunks) {
  const auto rows = test::read_reference("contention_cases.csv");
  const test::CsvRow& row = test::row_where(rows, "case", "ring all-reduce 64 MiB, 4 chunks, 8 ranks");
  constexpr int ranks = 8;
  constexpr int chunks = 4;
  HardwareModel hardware = test::plain_hardware();
  ASSERT_TRUE(Rational::parse_decimal(row.at("link_bytes_per_ns"), hardware.link_bytes_per_cycle));
  hardware.injection_bytes_per_cycle = hardware.link_bytes_per_cycle;
  hardware.ejection_bytes_per_cycle = hardware.link_bytes_per_cycle;
  hardware.router_cycles = 0;
  hardware.link_cycles = std::stoull(row.at("hop_latency_ns"));
  const Bytes bytes = std::stoull(row.at("message_bytes"));
  const Cycle cycles = chunks * ring_all_reduce(hardware, ranks, bytes / chunks, 0);
  // The column says "2215500 = 2(n-1)c(m/B+lat)": within one cycle for each of the serializations in the
  // chain.
  const double expected = std::stod(row.at("cut_through_ns"));
  EXPECT_NEAR(static_cast<double>(cycles), expected, 2.0 * (ranks - 1) * chunks);
  EXPECT_LE(cycles, std::stoull(row.at("astra_sim_unaware_ns")));
}

TEST(AllReduceBound, MeshAndLineByHand) {
  const HardwareModel hardware = test::plain_hardware();
  EXPECT_EQ(all_reduce_bound(hardware, 4, kMebi, false), 3 * kMebi / 4 / 256);
  EXPECT_EQ(all_reduce_bound(hardware, 4, kMebi, true), 2 * 3 * kMebi / 4 / 256);
  EXPECT_EQ(all_reduce_bound(hardware, 1, kMebi, true), 0u);
  EXPECT_EQ(all_reduce_bound(hardware, 3, 256, false), 0u) << "two thirds of a cycle, rounded down";
  EXPECT_EQ(two_phase_all_reduce_bound(hardware, 4, kMebi, 4), 3 * kMebi / 8 / 256);
}

RC_GTEST_PROP(AllReduceBound, RingsNeverBeatIt, ()) {
  HardwareModel hardware = test::plain_hardware();
  hardware.link_bytes_per_cycle = Rational(*rc::gen::inRange(1, 1000), *rc::gen::inRange(1, 10));
  hardware.injection_bytes_per_cycle = hardware.link_bytes_per_cycle;
  hardware.ejection_bytes_per_cycle = hardware.link_bytes_per_cycle;
  const auto members = *rc::gen::inRange(1, 64);
  const auto bytes = *rc::gen::inRange<Bytes>(1, 1 << 24);
  RC_ASSERT(ring_all_reduce(hardware, members, bytes, 0) >= all_reduce_bound(hardware, members, bytes, true));
}

TEST(AllReduceBound, CornersOfA5x4MeshHaveTwoLinks) {
  // FRED, arXiv 2406.19580: 750 GB/s a link, so 1.5 TB/s at a corner.
  HardwareModel hardware = test::plain_hardware();
  hardware.link_bytes_per_cycle = Rational(750);
  const Bytes bytes = 3'000'000'000;
  const double seconds = hardware.seconds(all_reduce_bound(hardware, 20, bytes, false));
  EXPECT_DOUBLE_EQ(seconds, 2 * 0.95 * 3e9 / 1.5e12)
      << "both phases move 19/20 of the vector through the corner";
  EXPECT_DOUBLE_EQ(hardware.seconds(two_phase_all_reduce_bound(hardware, 20, bytes, 2)), seconds);
}

TEST(AnyAllReduceBound, TheLargerOfTheCornerCutAndTheTotalTraffic) {
  const HardwareModel hardware = test::plain_hardware();
  // 2x2: 2 * 3 vectors over 8 links, more than half a vector through a corner.
  EXPECT_EQ(any_all_reduce_bound(hardware, {2, 2}, kMebi), 3 * kMebi / 4 / 256);
  // 5x4: 38 vectors over 62 links.
  EXPECT_EQ(any_all_reduce_bound(hardware, {5, 4}, kMebi), 38 * kMebi / (62 * 256));
  // A line: one vector through its end, as many as over all links.
  EXPECT_EQ(any_all_reduce_bound(hardware, {1, 9}, kMebi), kMebi / 256);
  EXPECT_EQ(any_all_reduce_bound(hardware, {1, 1}, kMebi), 0u);
}

RC_GTEST_PROP(AnyAllReduceBound, IsBelowTheBoundOfTwoPhases, ()) {
  const HardwareModel hardware = test::plain_hardware();
  const topology::Shape mesh{*rc::gen::inRange(1, 40), *rc::gen::inRange(2, 40)};
  const auto bytes = *rc::gen::inRange<Bytes>(1, 1 << 24);
  RC_ASSERT(any_all_reduce_bound(hardware, mesh, bytes) <=
            all_reduce_bound(hardware, mesh.size(), bytes, mesh.rows == 1));
}

TEST(RecursiveDoubling, SharesTheLinksOfALine) {
  const HardwareModel hardware = test::plain_hardware();
  for (int steps = 0; steps <= 10; ++steps) {
    Cycle sum = 0;
    for (int i = 0; i < steps; ++i) sum += (Cycle{1} << i) * kMebi / 256;
    EXPECT_EQ(recursive_doubling_on_line(hardware, 1 << steps, kMebi), sum);
  }
  EXPECT_THROW(recursive_doubling_on_line(hardware, 12, kMebi), PlanError);
  EXPECT_THROW(recursive_doubling_on_line(hardware, 0, kMebi), PlanError);
}

}  // namespace
}  // namespace wafersim::models
