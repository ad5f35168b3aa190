#include "models/spatial_cost.h"

#include <gtest/gtest.h>

#include "tests/models/csv_table.h"

namespace wafersim::models {
namespace {

/// A WSE as in the paper: wavelets of 4 bytes at one a cycle, a cycle a hop, ramps of 2 cycles, a cycle in the core.
HardwareModel wse() {
  HardwareModel hardware;
  hardware.link_bytes_per_cycle = Rational(4);
  hardware.injection_bytes_per_cycle = Rational(4);
  hardware.ejection_bytes_per_cycle = Rational(4);
  hardware.link_cycles = 1;
  hardware.router_cycles = 0;
  hardware.injection_cycles = hardware.ejection_cycles = 2;
  hardware.stream_cycles = 1;
  return hardware;
}

Cycle cycles(const test::CsvRow& row, const char* column) { return std::stoull(row.at(column)); }

TEST(SpatialCost, BoundsAreThoseOfThePaper) {
  for (const test::CsvRow& row : test::read_reference("wse_line_collectives.csv")) {
    const int tiles = std::stoi(row.at("tiles"));
    const auto bound = line_reduce_bound(wse(), tiles, 4 * std::stoull(row.at("wavelets")));
    ASSERT_TRUE(bound.has_value());
    // The file rounds halves to even.
    EXPECT_NEAR(static_cast<double>(*bound), static_cast<double>(cycles(row, "reduce_lower_bound_cycles")), 1)
        << tiles << " tiles, " << row.at("wavelets") << " wavelets";
  }
}

TEST(SpatialCost, TermsAddUpAsThePaperSays) {
  // A chain of P tiles: contention B, energy B (P - 1), distance and depth P - 1.
  EXPECT_EQ(spatial_cost(wse(), {Rational(4 * 16), Rational(4 * 16 * 7), 7, 7, 7}), 16U + 7 + 5 * 7);
  // A star: contention B (P - 1), energy B P (P - 1) / 2.
  EXPECT_EQ(spatial_cost(wse(), {Rational(4 * 16 * 7), Rational(4 * 16 * 28), 7, 7, 1}), 16U * 7 + 5);
}

TEST(SpatialCost, OneTileNeedsNothingAndLongLinesHaveNoBound) {
  EXPECT_EQ(line_reduce_bound(wse(), 1, 64), 0U);
  EXPECT_FALSE(line_reduce_bound(wse(), 1025, 64).has_value());
}

TEST(SpatialCost, SlowerHopsAndCoresCostTheirTime) {
  HardwareModel hardware = wse();
  hardware.link_cycles = 2;
  hardware.router_cycles = 1;
  hardware.message_overhead = 3;
  // Hops of 3 cycles; a message costs two ramps, the router of its source, the core's cycle and two overheads.
  EXPECT_EQ(spatial_cost(hardware, {Rational(4), Rational(4 * 3), 3, 3, 3}), 1U + 3 * 3 + 3 * (2 + 1 + 2 + 1 + 6));
}

}  // namespace
}  // namespace wafersim::models
