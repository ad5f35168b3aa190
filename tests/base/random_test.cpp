#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace wafersim {
namespace {

// Independent of the implementation: splitmix64's published finalizer and xoshiro256** written out in Python.
TEST(RandomStream, SequenceIsStable) {
  RandomStream stream(1, "wafer0.tile_3_5.core");
  const std::array<std::uint64_t, 4> expected = {0x5bdad3ab07be301eULL, 0x9601f296b204d448ULL,
                                                 0x110611224771d2a3ULL, 0xbd51b195b5058a68ULL};
  for (const std::uint64_t value : expected) EXPECT_EQ(stream.next(), value);
}

TEST(RandomStream, MixBitsIsTheFinalizerOfSplitmix64) {
  EXPECT_EQ(mix_bits(0), 0U);
  EXPECT_EQ(mix_bits(0x9e3779b97f4a7c15ULL), 0xe220a8397b1dcdafULL)
      << "first output of splitmix64 seeded with 0";
}

TEST(RandomStream, SameSeedAndNameAgree) {
  RandomStream a(7, "nic");
  RandomStream b(7, "nic");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
}

TEST(RandomStream, SeedsAndNamesSeparateStreams) {
  std::set<std::uint64_t> first;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const char* name : {"", "a", "b", "ab", "ba", "tile_0_1", "tile_1_0"}) {
      first.insert(RandomStream(seed, name).next());
    }
  }
  EXPECT_EQ(first.size(), 350U);
}

TEST(RandomStream, BelowStaysInRangeAndReachesAll) {
  RandomStream stream(3, "range");
  for (std::uint64_t bound = 1; bound <= 20; ++bound) {
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 1000; ++i) seen.insert(stream.below(bound));
    EXPECT_EQ(seen.size(), bound);
    EXPECT_EQ(*seen.rbegin(), bound - 1);
  }
}

TEST(RandomStream, BelowIsUniform) {
  constexpr std::uint64_t bound = 7;
  constexpr int draws = 70'000;
  std::array<int, bound> counts{};
  RandomStream stream(11, "uniform");
  for (int i = 0; i < draws; ++i) ++counts[stream.below(bound)];
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 1e4) * (count - 1e4) / 1e4;
  EXPECT_LT(chi_square, 22.46) << "6 degrees of freedom, p = 0.001";
}

// Without rejection, 3/4 of all draws below 3 * 2^62 would fall into its lower third twice as often.
TEST(RandomStream, BelowHasNoModuloBias) {
  constexpr std::uint64_t third = std::uint64_t{1} << 62;
  std::array<int, 3> counts{};
  RandomStream stream(13, "bias");
  for (int i = 0; i < 30'000; ++i) ++counts[stream.below(3 * third) / third];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 330) << "four standard deviations";
}

TEST(RandomStream, UnitIsInHalfOpenIntervalWithMeanOneHalf) {
  RandomStream stream(17, "unit");
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = stream.unit();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.012) << "four standard deviations";
}

}  // namespace
}  // namespace wafersim
