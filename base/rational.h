#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace wafersim {

/// An exact fraction of 64-bit integers, always reduced, denominator > 0. Rates and clocks are rationals so that no
/// result depends on floating-point rounding. Operations throw std::overflow_error when a reduced result does not
/// fit 64 bits.
class Rational {
 public:
  constexpr Rational() = default;
  constexpr Rational(std::int64_t whole) : num_(whole) {}  // NOLINT(google-explicit-constructor): an integer is a rational
  Rational(std::int64_t num, std::int64_t den);

  std::int64_t num() const { return num_; }
  std::int64_t den() const { return den_; }
  double to_double() const { return static_cast<double>(num_) / static_cast<double>(den_); }
  bool is_integer() const { return den_ == 1; }

  /// Smallest integer >= value, which must not be negative.
  std::uint64_t ceil() const;
  /// Largest integer <= value, which must not be negative.
  std::uint64_t floor() const;

  Rational operator*(const Rational& other) const;
  Rational operator/(const Rational& other) const;
  Rational operator+(const Rational& other) const;
  Rational operator-(const Rational& other) const;
  bool operator==(const Rational&) const = default;
  std::strong_ordering operator<=>(const Rational& other) const;

  /// Parses a decimal number ("1.1", "2e9", "0.85") exactly. Returns false when the text is not one or does not fit.
  static bool parse_decimal(const std::string& text, Rational& out);
  /// The shortest exact decimal ("53.687"), or "num/den" where there is none whose digits fit 64 bits.
  std::string to_string() const;

 private:
  std::int64_t num_ = 0;
  std::int64_t den_ = 1;
};

/// ceil(count * rate.den / rate.num): the cycles in which `count` units pass at `rate` units per cycle.
std::uint64_t cycles_at_rate(std::uint64_t count, const Rational& rate);

}  // namespace wafersim
