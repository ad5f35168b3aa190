#include "base/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace wafersim {
namespace {

template <class Quantity>
Quantity parsed(const std::string& text) {
  Quantity value;
  std::string error;
  EXPECT_TRUE(parse_quantity(text, value, error)) << error;
  return value;
}

template <class Quantity>
std::string error_of(const std::string& text) {
  Quantity value;
  std::string error;
  EXPECT_FALSE(parse_quantity(text, value, error)) << text << " was accepted";
  return error;
}

template <class Quantity>
void expect_written(const std::string& text, const std::string& written) {
  const auto value = parsed<Quantity>(text);
  EXPECT_EQ(to_string(value), written);
  EXPECT_EQ(parsed<Quantity>(written), value) << text;
}

TEST(Quantity, ParsesToBaseUnits) {
  EXPECT_EQ(parsed<Frequency>("0.85 GHz").hertz, Rational(850'000'000));
  EXPECT_EQ(parsed<Bandwidth>("9 TB/s"), Bandwidth::per_second(9'000'000'000'000));
  EXPECT_EQ(parsed<Bandwidth>("53.687 B/ns"), Bandwidth::per_second(53'687'000'000));
  EXPECT_EQ(parsed<Bandwidth>("8 Gb/s"), Bandwidth::per_second(1'000'000'000));
  EXPECT_EQ(parsed<Bandwidth>("2 GiB/s"), Bandwidth::per_second(std::int64_t{1} << 31));
  EXPECT_EQ(parsed<Bandwidth>("32 B/cycle"), Bandwidth::per_clock(32));
  EXPECT_EQ(parsed<Bandwidth>("1/3 B/cycle"), Bandwidth::per_clock(Rational(1, 3)));
  EXPECT_EQ(parsed<Duration>("200 ns").value, Rational(1, 5'000'000));
  EXPECT_EQ(parsed<Duration>("2 cycles"), Duration::of_cycles(2));
  EXPECT_EQ(parsed<Duration>("1 cycle"), Duration::of_cycles(1));
  EXPECT_EQ(parsed<ComputeRate>("312 TFLOP/s").value, Rational(312'000'000'000'000));
  EXPECT_TRUE(parsed<ComputeRate>("64 FLOP/cycle").per_cycle);
  EXPECT_EQ(parsed<EnergyPerBit>("0.8 pJ/bit").joules, Rational(1, 1'250'000'000'000));
  EXPECT_EQ(parsed<EnergyPerFlop>("0.5 pJ/FLOP").joules, Rational(1, 2'000'000'000'000));
  EXPECT_EQ(parsed<Power>("30 mW").watts, Rational(3, 100));
  EXPECT_EQ(parsed<Power>("15 kW").watts, Rational(15'000));
  EXPECT_EQ(parsed<DataSize>("48 KiB").bytes, 49'152U);
  EXPECT_EQ(parsed<DataSize>("1.5 MB").bytes, 1'500'000U);
}

TEST(Quantity, SpaceBeforeTheUnitIsOptional) {
  EXPECT_EQ(parsed<Bandwidth>("32B/cycle"), parsed<Bandwidth>("32   B/cycle"));
  EXPECT_EQ(parsed<Frequency>("1e9Hz"), parsed<Frequency>("1 GHz"));
}

TEST(Quantity, IsWrittenWithTheLargestPrefixAboveOne) {
  expect_written<Frequency>("0.85 GHz", "850 MHz");
  expect_written<Frequency>("1.1 GHz", "1.1 GHz");
  expect_written<Frequency>("0 Hz", "0 Hz");
  expect_written<Bandwidth>("53.687 B/ns", "53.687 GB/s");
  expect_written<Bandwidth>("9000 GB/s", "9 TB/s");
  expect_written<Bandwidth>("1 KiB/cycle", "1024 B/cycle");
  expect_written<Duration>("200 ns", "200 ns");
  expect_written<Duration>("0.5 ps", "0.5 ps");
  expect_written<Duration>("0 s", "0 s");
  expect_written<Duration>("1 cycles", "1 cycle");
  expect_written<Duration>("0 cycle", "0 cycles");
  expect_written<ComputeRate>("0.312 PFLOP/s", "312 TFLOP/s");
  expect_written<ComputeRate>("1.5 FLOP/cycle", "1.5 FLOP/cycle");
  expect_written<EnergyPerBit>("0.8 pJ/bit", "800 fJ/bit");
  expect_written<EnergyPerBit>("1.2 pJ/bit", "1.2 pJ/bit");
  expect_written<EnergyPerFlop>("0.3 pJ/FLOP", "300 fJ/FLOP");
  expect_written<EnergyPerFlop>("0 pJ/FLOP", "0 J/FLOP");
  expect_written<Power>("0.03 W", "30 mW");
  expect_written<Power>("1500 W", "1.5 kW");
  expect_written<DataSize>("49152 B", "48 KiB");
  expect_written<DataSize>("3000 B", "3 kB");
  expect_written<DataSize>("1025 B", "1025 B");
  expect_written<DataSize>("0 KiB", "0 B");
}

TEST(Quantity, AwkwardValuesAreWrittenExactly) {
  expect_written<Frequency>("1/3 GHz", "1000/3 MHz");
  expect_written<Bandwidth>("1/3 B/cycle", "1/3 B/cycle");
  expect_written<EnergyPerBit>("9e18 nJ/bit", "9000000000 J/bit");
  expect_written<Bandwidth>("1/9000000000000000001 B/s", "1/9000000000000000001 B/s");
  expect_written<Frequency>("9223372036854775807/2 Hz", "9223372036854775807/2 Hz");
}

TEST(Quantity, ErrorsListTheUnitsThatFit) {
  EXPECT_EQ(error_of<Frequency>("1.1"), "'1.1' has no unit; units that fit: GHz, MHz, kHz, Hz");
  EXPECT_EQ(error_of<Frequency>("1.1 GB"), "unit 'GB' does not fit here; units that fit: GHz, MHz, kHz, Hz");
  EXPECT_EQ(error_of<Frequency>("fast"),
            "'fast' is not a number with a unit; units that fit: GHz, MHz, kHz, Hz");
  EXPECT_EQ(error_of<Frequency>(""), "'' is not a number with a unit; units that fit: GHz, MHz, kHz, Hz");
  EXPECT_EQ(error_of<Frequency>("1/0 Hz"),
            "'1/0 Hz' is not a number with a unit; units that fit: GHz, MHz, kHz, Hz");
  EXPECT_EQ(error_of<Duration>("5 minutes"),
            "unit 'minutes' does not fit here; units that fit: s, ms, us, ns, ps, cycles, cycle");
  EXPECT_EQ(error_of<EnergyPerBit>("1 pJ"),
            "unit 'pJ' does not fit here; units that fit: J/bit, nJ/bit, pJ/bit, fJ/bit");
  EXPECT_EQ(error_of<EnergyPerFlop>("1 pJ/bit"),
            "unit 'pJ/bit' does not fit here; units that fit: J/FLOP, nJ/FLOP, pJ/FLOP, fJ/FLOP");
  EXPECT_EQ(error_of<Power>("30"), "'30' has no unit; units that fit: MW, kW, W, mW, uW, nW");
  EXPECT_EQ(error_of<ComputeRate>("1 TFLOPS"),
            "unit 'TFLOPS' does not fit here; units that fit: PFLOP/s, TFLOP/s, GFLOP/s, MFLOP/s, FLOP/s, "
            "FLOP/cycle");
  EXPECT_EQ(error_of<DataSize>("1 KB"),
            "unit 'KB' does not fit here; units that fit: TiB, TB, GiB, GB, MiB, MB, KiB, kB, B");
  EXPECT_NE(error_of<Bandwidth>("1 GB").find("GB/s"), std::string::npos);
}

TEST(Quantity, ErrorsNameValuesThatCannotBeHeld) {
  EXPECT_EQ(error_of<Bandwidth>("1e18 PB/s"), "'1e18 PB/s' is too large or too fine to hold exactly");
  EXPECT_EQ(error_of<Duration>("1e-10 ps"), "'1e-10 ps' is too large or too fine to hold exactly");
  EXPECT_EQ(error_of<Frequency>("1e18/0.0001 Hz"),
            "'1e18/0.0001 Hz' is too large or too fine to hold exactly");
  EXPECT_EQ(error_of<DataSize>("0.3 KiB"), "'0.3 KiB' is not a whole number of bytes");
  EXPECT_EQ(error_of<DataSize>("-1 KiB"), "'-1 KiB' is not a whole number of bytes");
}

TEST(Quantity, RatesAndDurationsScaleWithTheClock) {
  const auto clock = parsed<Frequency>("1.1 GHz");
  EXPECT_EQ(parsed<Bandwidth>("11 GB/s").bytes_per_cycle(clock), Rational(10));
  EXPECT_EQ(parsed<Bandwidth>("32 B/cycle").bytes_per_cycle(clock), Rational(32));
  EXPECT_EQ(parsed<Duration>("200 ns").cycles(clock), 220U);
  EXPECT_EQ(parsed<Duration>("1 ns").cycles(clock), 2U) << "1.1 cycles round up";
  EXPECT_EQ(parsed<Duration>("3 cycles").cycles(clock), 3U);
  EXPECT_EQ(parsed<ComputeRate>("1.1 TFLOP/s").flops_per_cycle(clock), Rational(1000));
  EXPECT_EQ(parsed<ComputeRate>("64 FLOP/cycle").flops_per_cycle(clock), Rational(64));
}

/// Any value at all, with denominators that binary and decimal prefixes and ratios of clocks lead to.
Rational any_value() {
  const auto num = *rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max());
  const auto den =
      *rc::gen::oneOf(rc::gen::element<std::int64_t>(1, 3, 1000, 1 << 20, 1'000'000'000'000'000),
                      rc::gen::inRange<std::int64_t>(1, std::numeric_limits<std::int64_t>::max()));
  return {num >> *rc::gen::inRange(0, 63), den};
}

template <class Quantity>
void assert_round_trip(const Quantity& value) {
  const std::string text = to_string(value);
  Quantity read;
  std::string error;
  RC_LOG() << text << '\n';
  RC_ASSERT(parse_quantity(text, read, error));
  RC_ASSERT(read == value);
}

RC_GTEST_PROP(QuantityProperty, WhatIsWrittenIsReadBackExactly, ()) {
  const Rational value = any_value();
  const bool by_clock = *rc::gen::arbitrary<bool>();
  assert_round_trip(Frequency{value});
  assert_round_trip(Bandwidth{value, by_clock});
  assert_round_trip(Duration{value, by_clock});
  assert_round_trip(ComputeRate{value, by_clock});
  assert_round_trip(EnergyPerBit{value});
  assert_round_trip(EnergyPerFlop{value});
  assert_round_trip(Power{value});
  assert_round_trip(DataSize{static_cast<Bytes>(value.num())});
}

}  // namespace
}  // namespace wafersim
