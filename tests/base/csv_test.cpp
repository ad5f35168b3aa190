#include "base/csv.h"

#include <gtest/gtest.h>

namespace wafersim {
namespace {

TEST(Csv, CellsAreTrimmedAndKnowTheirColumns) {
  const std::vector<CsvCell> cells = csv_cells("a, 17 ,,tile_0_0\r");
  ASSERT_EQ(cells.size(), 4U);
  EXPECT_EQ(cells[0].text, "a");
  EXPECT_EQ(cells[1].text, "17");
  EXPECT_EQ(cells[1].column, 3);
  EXPECT_EQ(cells[2].text, "");
  EXPECT_EQ(cells[3].text, "tile_0_0");
  EXPECT_EQ(cells[3].column, 9);
  EXPECT_EQ(csv_cells("").size(), 1U);
  EXPECT_EQ(csv_cells("1,").size(), 2U);
}

TEST(Csv, BlanksAreTrimmed) {
  EXPECT_EQ(trimmed(" \t x y \r"), "x y");
  EXPECT_EQ(trimmed(" \t"), "");
}

TEST(Csv, WholeNumbersAreAllOfTheText) {
  EXPECT_EQ(whole_number("0"), 0U);
  EXPECT_EQ(whole_number("18446744073709551615"), 18446744073709551615U);
  for (const char* text : {"", "-1", "1.5", "1 ", "0x1", "18446744073709551616"}) {
    EXPECT_FALSE(whole_number(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace wafersim
