#include "base/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace wafersim {
namespace {

TEST(Nearest, FindsTheTypo) {
  const std::vector<std::string> keys = {"bandwidth", "latency", "buffer_flits", "routing"};
  EXPECT_EQ(nearest("bufer_flits", keys), "buffer_flits");
  EXPECT_EQ(nearest("bandwith", keys), "bandwidth");
  EXPECT_EQ(nearest("latnecy", keys), "latency");
  EXPECT_EQ(nearest("routing", keys), "routing");
}

TEST(Nearest, IsEmptyWhenNothingIsMeant) {
  EXPECT_EQ(nearest("colour", {"bandwidth", "latency"}), "");
  EXPECT_EQ(nearest("word", {}), "");
  EXPECT_EQ(nearest("ab", {"xy", "yx"}), "") << "two letters, both wrong";
}

TEST(Nearest, ShortWordsAllowOneWrongLetter) {
  EXPECT_EQ(nearest("xz", {"yx", "xy"}), "xy");
  EXPECT_EQ(nearest("dpp", {"tatp", "dp"}), "dp");
}

TEST(Nearest, FirstOfEquallyNearWins) { EXPECT_EQ(nearest("tap", {"tax", "tab"}), "tax"); }

TEST(Join, PutsSeparatorsBetween) {
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join({"a"}), "a");
  EXPECT_EQ(join({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join({"", "b"}, "|"), "|b");
}

TEST(HumanBytes, ThreeDigitsInBinaryUnits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(48 * 1024), "48.0 KiB");
  EXPECT_EQ(human_bytes(500 * 1024), "500 KiB");
  EXPECT_EQ(human_bytes((Bytes{1} << 20) - 1), "1.00 MiB") << "rounds into the next unit";
  EXPECT_EQ(human_bytes(Bytes{123} << 27), "15.4 GiB");
  EXPECT_EQ(human_bytes(std::numeric_limits<Bytes>::max()), "16384 PiB");
}

TEST(HumanUnit, ThreeDigitsWithPrefix) {
  EXPECT_EQ(human_unit(0, "J"), "0 J");
  EXPECT_EQ(human_unit(8e-13, "J"), "0.80 pJ");
  EXPECT_EQ(human_unit(1.42e-3, "J"), "1.42 mJ");
  EXPECT_EQ(human_unit(0.99961, "W"), "1.00 W");
  EXPECT_EQ(human_unit(15'000, "W"), "15.0 kW");
  EXPECT_EQ(human_unit(2.5e21, "J"), "2500 EJ");
}

TEST(HumanSeconds, ThreeDigitsWithPrefix) {
  EXPECT_EQ(human_seconds(0), "0.00 ns");
  EXPECT_EQ(human_seconds(2e-7), "200 ns");
  EXPECT_EQ(human_seconds(1.42e-3), "1.42 ms");
  EXPECT_EQ(human_seconds(12.34e-6), "12.3 us");
  EXPECT_EQ(human_seconds(1234), "1234 s");
  EXPECT_EQ(human_seconds(0.9996), "1.00 s");
  EXPECT_EQ(human_seconds(0.9996e-3), "1.00 ms");
  EXPECT_EQ(human_seconds(0.9994e-6), "999 ns");
}

TEST(HumanCount, GroupsByThree) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1,000");
  EXPECT_EQ(human_count(12'345'678), "12,345,678");
  EXPECT_EQ(human_count(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
}

TEST(Text, QuotesInsideQuotesAreDoubled) {
  EXPECT_EQ(quoted("a \"b\", 'c'"), "\"a \"\"b\"\", 'c'\"");
  EXPECT_EQ(quoted("it's", '\''), "'it''s'");
}

}  // namespace
}  // namespace wafersim
