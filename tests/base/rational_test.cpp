#include "base/rational.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <stdexcept>

namespace wafersim {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

Rational parsed(const std::string& text) {
  Rational value;
  EXPECT_TRUE(Rational::parse_decimal(text, value)) << text;
  return value;
}

/// What config files hold: a decimal, or two of them as a fraction.
Rational read_back(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return parsed(text);
  return parsed(text.substr(0, slash)) / parsed(text.substr(slash + 1));
}

TEST(Rational, IsReducedWithPositiveDenominator) {
  const Rational value(6, -4);
  EXPECT_EQ(value.num(), -3);
  EXPECT_EQ(value.den(), 2);
  EXPECT_EQ(Rational(0, -7), Rational(0));
  EXPECT_THROW(Rational(1, 0), std::domain_error);
}

TEST(Rational, ParsesDecimalsExactly) {
  EXPECT_EQ(parsed("0.85"), Rational(17, 20));
  EXPECT_EQ(parsed("53.687"), Rational(53687, 1000));
  EXPECT_EQ(parsed("2e9"), Rational(2'000'000'000));
  EXPECT_EQ(parsed("1.5E-3"), Rational(3, 2000));
  EXPECT_EQ(parsed("-.5"), Rational(-1, 2));
  EXPECT_EQ(parsed("+7."), Rational(7));
  EXPECT_EQ(parsed("1_000_000"), Rational(1'000'000));
  EXPECT_EQ(parsed("9223372036854775807"), Rational(kMax));
}

TEST(Rational, RefusesWhatIsNoNumberOrDoesNotFit) {
  for (const char* text : {"", ".", "-", "1.2.3", "abc", "1e", "1e+", "0x10", "1 ", "_1",
                           "9223372036854775808", "1e19", "1e-19", "1e99999"}) {
    Rational value(42);
    EXPECT_FALSE(Rational::parse_decimal(text, value)) << text;
    EXPECT_EQ(value, Rational(42)) << text << " changed the value";
  }
}

TEST(Rational, WritesTheShortestExactText) {
  EXPECT_EQ(Rational(0).to_string(), "0");
  EXPECT_EQ(Rational(-3, 2).to_string(), "-1.5");
  EXPECT_EQ(Rational(1, 8).to_string(), "0.125");
  EXPECT_EQ(Rational(17, 20).to_string(), "0.85");
  EXPECT_EQ(Rational(53687, 1000).to_string(), "53.687");
  EXPECT_EQ(Rational(1, 1000).to_string(), "0.001");
  EXPECT_EQ(Rational(1, 3).to_string(), "1/3");
  EXPECT_EQ(Rational(kMax, 2).to_string(), "9223372036854775807/2");
}

TEST(Rational, ComputesExactly) {
  EXPECT_EQ(Rational(1, 3) + Rational(1, 6), Rational(1, 2));
  EXPECT_EQ(Rational(1, 3) - Rational(1, 2), Rational(-1, 6));
  EXPECT_EQ(Rational(2, 3) * Rational(9, 4), Rational(3, 2));
  EXPECT_EQ(Rational(2, 3) / Rational(-4, 9), Rational(-3, 2));
  EXPECT_DOUBLE_EQ(Rational(-3, 8).to_double(), -0.375);
  EXPECT_THROW(Rational(1) / Rational(0), std::domain_error);
}

TEST(Rational, OverflowOfAReducedResultThrows) {
  EXPECT_THROW(Rational(kMax) * Rational(2), std::overflow_error);
  EXPECT_THROW(Rational(kMax) + Rational(1), std::overflow_error);
  EXPECT_THROW(Rational(-kMax) - Rational(1), std::overflow_error);
  EXPECT_THROW(Rational(1, kMax) / Rational(2), std::overflow_error);
  EXPECT_EQ(Rational(kMax, 2) * Rational(2), Rational(kMax)) << "an intermediate may be large";
}

TEST(Rational, ComparesWithoutOverflow) {
  EXPECT_LT(Rational(1, 3), Rational(1, 2));
  EXPECT_LT(Rational(-1, 2), Rational(-1, 3));
  EXPECT_GT(Rational(kMax), Rational(kMax, 2));
  EXPECT_LT(Rational(kMax - 1, kMax), Rational(1));
  EXPECT_GE(Rational(2, 4), Rational(1, 2));
}

TEST(Rational, CeilAndFloor) {
  EXPECT_EQ(Rational(7, 2).ceil(), 4U);
  EXPECT_EQ(Rational(7, 2).floor(), 3U);
  EXPECT_EQ(Rational(8, 2).ceil(), 4U);
  EXPECT_EQ(Rational(8, 2).floor(), 4U);
  EXPECT_EQ(Rational(0).ceil(), 0U);
  EXPECT_EQ(Rational(kMax).ceil(), static_cast<std::uint64_t>(kMax));
  EXPECT_THROW(Rational(-1, 2).ceil(), std::domain_error);
  EXPECT_THROW(Rational(-1, 2).floor(), std::domain_error);
}

TEST(CyclesAtRate, RoundsUp) {
  EXPECT_EQ(cycles_at_rate(0, Rational(32)), 0U);
  EXPECT_EQ(cycles_at_rate(64, Rational(32)), 2U);
  EXPECT_EQ(cycles_at_rate(65, Rational(32)), 3U);
  EXPECT_EQ(cycles_at_rate(10, Rational(1, 3)), 30U);
  EXPECT_EQ(cycles_at_rate(1'000'000, Rational(53687, 1000)), 18627U);  // 18626.48...
}

TEST(CyclesAtRate, HoldsLargeCounts) {
  constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(cycles_at_rate(all, Rational(1)), all);
  EXPECT_EQ(cycles_at_rate(all, Rational(kMax)), 3U);  // 2^64 - 1 = 2 (2^63 - 1) + 1
  EXPECT_THROW(cycles_at_rate(all, Rational(1, 2)), std::overflow_error);
  EXPECT_THROW(cycles_at_rate(1, Rational(0)), std::domain_error);
  EXPECT_THROW(cycles_at_rate(1, Rational(-1)), std::domain_error);
}

RC_GTEST_PROP(RationalProperty, TextIsReadBackExactly, ()) {
  const auto num = *rc::gen::inRange<std::int64_t>(-kMax, kMax);
  const auto shift = *rc::gen::inRange(0, 62);
  const auto power_of_ten = *rc::gen::element<std::int64_t>(1, 10, 1'000'000, 1'000'000'000'000);
  const std::int64_t den =
      *rc::gen::element<std::int64_t>(1, std::int64_t{1} << shift, power_of_ten, 3 * power_of_ten);
  const Rational value(num >> *rc::gen::inRange(0, 62), den);
  RC_ASSERT(read_back(value.to_string()) == value);
}

RC_GTEST_PROP(RationalProperty, SumAndProductUndo, ()) {
  const auto small = [] {
    return Rational(*rc::gen::inRange<std::int64_t>(-1'000'000, 1'000'000),
                    *rc::gen::inRange<std::int64_t>(1, 1000));
  };
  const Rational a = small();
  const Rational b = small();
  RC_ASSERT(a + b - b == a);
  if (b != Rational(0)) RC_ASSERT(a * b / b == a);
  RC_ASSERT((a < b) == (Rational(0) < b - a));
}

RC_GTEST_PROP(RationalProperty, FloorAndCeilEnclose, ()) {
  const Rational value(*rc::gen::inRange<std::int64_t>(0, kMax), *rc::gen::inRange<std::int64_t>(1, kMax));
  const Rational low(static_cast<std::int64_t>(value.floor()));
  const Rational high(static_cast<std::int64_t>(value.ceil()));
  RC_ASSERT(low <= value);
  RC_ASSERT(value <= high);
  RC_ASSERT(high.num() - low.num() == (value.is_integer() ? 0 : 1));
}

}  // namespace
}  // namespace wafersim
