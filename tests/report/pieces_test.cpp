#include "report/pieces.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace wafersim::report {
namespace {

template <class... Values>
std::string text_of(const Values&... values) {
  fmt::memory_buffer text;
  append_pieces(text, values...);
  return fmt::to_string(text);
}

TEST(Pieces, NumbersHaveAllTheirDigits) {
  EXPECT_EQ(text_of(std::uint64_t{0}, ",", std::numeric_limits<std::uint64_t>::max()), "0,18446744073709551615");
  EXPECT_EQ(text_of(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()),
            "-92233720368547758089223372036854775807");
  EXPECT_EQ(text_of(std::int8_t{-128}, std::uint16_t{65535}, std::int32_t{-1}), "-12865535-1");
}

TEST(Pieces, TextsStayAsTheyAre) {
  const std::string with_zero("a\0b", 3);
  EXPECT_EQ(text_of("", with_zero, std::string_view("\"{}\""), static_cast<const char*>("c")), with_zero + "\"{}\"c");
}

/// More than the buffer holds by itself, piece by piece and at once.
TEST(Pieces, GrowWithTheirText) {
  fmt::memory_buffer text;
  std::string expected;
  const std::string long_text(3000, 'x');
  for (int i = 0; i < 1000; ++i) {
    append_pieces(text, i, ";", i % 100 == 0 ? long_text : "");
    expected += std::to_string(i) + ";" + (i % 100 == 0 ? long_text : "");
  }
  EXPECT_EQ(fmt::to_string(text), expected);
}

}  // namespace
}  // namespace wafersim::report
