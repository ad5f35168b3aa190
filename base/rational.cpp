#include "base/rational.h"

#include <limits>
#include <numeric>
#include <stdexcept>

namespace wafersim {
namespace {

__extension__ using Wide = __int128;

Wide wide_gcd(Wide a, Wide b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

Rational reduced(Wide num, Wide den) {
  if (den == 0) throw std::domain_error("division by zero in an exact fraction");
  if (den < 0) {
    num = -num;
    den = -den;
  }
  const Wide common = num == 0 ? den : wide_gcd(num, den);
  num /= common;
  den /= common;
  constexpr Wide limit = std::numeric_limits<std::int64_t>::max();
  if (num > limit || num < -limit || den > limit) {
    throw std::overflow_error("an exact fraction does not fit 64 bits");
  }
  Rational out(static_cast<std::int64_t>(num));
  return den == 1 ? out : Rational(static_cast<std::int64_t>(num), static_cast<std::int64_t>(den));
}

}  // namespace

Rational::Rational(std::int64_t num, std::int64_t den) {
  if (den == 0) throw std::domain_error("division by zero in an exact fraction");
  const std::int64_t common = std::gcd(num, den);
  num_ = num / common;
  den_ = den / common;
  if (den_ < 0) {
    num_ = -num_;
    den_ = -den_;
  }
}

std::uint64_t Rational::ceil() const {
  if (num_ < 0) throw std::domain_error("ceil of a negative fraction");
  return static_cast<std::uint64_t>(num_ / den_ + (num_ % den_ != 0 ? 1 : 0));
}

std::uint64_t Rational::floor() const {
  if (num_ < 0) throw std::domain_error("floor of a negative fraction");
  return static_cast<std::uint64_t>(num_ / den_);
}

Rational Rational::operator*(const Rational& other) const {
  return reduced(Wide{num_} * other.num_, Wide{den_} * other.den_);
}
Rational Rational::operator/(const Rational& other) const {
  return reduced(Wide{num_} * other.den_, Wide{den_} * other.num_);
}
Rational Rational::operator+(const Rational& other) const {
  return reduced(Wide{num_} * other.den_ + Wide{other.num_} * den_, Wide{den_} * other.den_);
}
Rational Rational::operator-(const Rational& other) const {
  return reduced(Wide{num_} * other.den_ - Wide{other.num_} * den_, Wide{den_} * other.den_);
}
std::strong_ordering Rational::operator<=>(const Rational& other) const {
  return Wide{num_} * other.den_ <=> Wide{other.num_} * den_;
}

bool Rational::parse_decimal(const std::string& text, Rational& out) {
  std::size_t i = 0;
  bool negative = false;
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) negative = text[i++] == '-';
  std::int64_t mantissa = 0;
  int scale = 0;
  bool digits = false;
  bool point = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.') {
      if (point) return false;
      point = true;
    } else if (c >= '0' && c <= '9') {
      digits = true;
      if (mantissa > (std::numeric_limits<std::int64_t>::max() - (c - '0')) / 10) return false;
      mantissa = mantissa * 10 + (c - '0');
      if (point) ++scale;
    } else if (c == '_' && digits) {
      continue;
    } else {
      break;
    }
  }
  if (!digits) return false;
  int exponent = 0;
  if (i < text.size()) {
    if (text[i] != 'e' && text[i] != 'E') return false;
    ++i;
    bool exponent_negative = false;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) exponent_negative = text[i++] == '-';
    if (i == text.size()) return false;
    for (; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9' || exponent > 1000) return false;
      exponent = exponent * 10 + (text[i] - '0');
    }
    if (exponent_negative) exponent = -exponent;
  }
  try {
    Rational value(negative ? -mantissa : mantissa);
    for (int power = exponent - scale; power > 0; --power) value = value * Rational(10);
    for (int power = exponent - scale; power < 0; ++power) value = value / Rational(10);
    out = value;
  } catch (const std::overflow_error&) {
    return false;
  }
  return true;
}

std::string Rational::to_string() const {
  if (den_ == 1) return std::to_string(num_);
  std::int64_t rest = den_;
  int twos = 0;
  int fives = 0;
  while (rest % 2 == 0) rest /= 2, ++twos;
  while (rest % 5 == 0) rest /= 5, ++fives;
  const int places = twos > fives ? twos : fives;
  const std::string fraction = std::to_string(num_) + "/" + std::to_string(den_);
  if (rest != 1 || places > 18) return fraction;
  Wide scaled = num_ < 0 ? -Wide{num_} : Wide{num_};
  for (int i = twos; i < places; ++i) scaled *= 2;
  for (int i = fives; i < places; ++i) scaled *= 5;
  if (scaled > std::numeric_limits<std::int64_t>::max()) return fraction;  // parse_decimal could not read it back
  std::string text;
  for (int i = 0; i < places || scaled != 0; ++i) {
    if (i == places) text.insert(text.begin(), '.');
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(scaled % 10)));
    scaled /= 10;
  }
  if (text.size() == static_cast<std::size_t>(places)) text.insert(0, "0.");
  return num_ < 0 ? "-" + text : text;
}

std::uint64_t cycles_at_rate(std::uint64_t count, const Rational& rate) {
  if (rate.num() <= 0) throw std::domain_error("a rate must be positive");
  __extension__ using Unsigned = unsigned __int128;
  const Unsigned scaled = Unsigned{count} * static_cast<std::uint64_t>(rate.den());
  const auto num = static_cast<std::uint64_t>(rate.num());
  const Unsigned cycles = scaled / num + (scaled % num != 0 ? 1 : 0);
  if (cycles > std::numeric_limits<std::uint64_t>::max()) throw std::overflow_error("a duration does not fit 64 bits");
  return static_cast<std::uint64_t>(cycles);
}

}  // namespace wafersim
