#include "apps/progress_bar.h"

#include <gtest/gtest.h>

namespace wafersim::apps {
namespace {

TEST(ProgressLine, HalfWay) {
  EXPECT_EQ(progress_line({1'234'567, 0.5}, 30.0),
            "[############------------]  50 %  cycle 1,234,567  30.0 s, about 30.0 s left");
}

TEST(ProgressLine, NoGuessFromTooLittle) {
  EXPECT_EQ(progress_line({10, 0.001}, 1.0), "[------------------------]   0 %  cycle 10  1.0 s, ...");
}

TEST(ProgressLine, LongTimesAreWrittenAsClocks) {
  EXPECT_NE(progress_line({10, 0.25}, 75.0).find("1:15, about 3:45 left"), std::string::npos);
  EXPECT_NE(progress_line({10, 0.5}, 3723.0).find("1:02:03, about 1:02:03 left"), std::string::npos);
}

TEST(ProgressLine, FractionsOutOfRangeAreClamped) {
  EXPECT_EQ(progress_line({1, 1.5}, 2.0),
            "[########################] 100 %  cycle 1  2.0 s, about 0.0 s left");
}

}  // namespace
}  // namespace wafersim::apps
