// All rows of wse_line_collectives.csv, with the tables of docs/wse-validation.md.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>

#include "tests/sim/wse_rows.h"

namespace wafersim::test {
namespace {

using workloads::StreamedAlgorithm;
using workloads::StreamedKind;
using workloads::StreamRelay;

double percent(Cycle ours, Cycle theirs) { return 100 * (static_cast<double>(ours) / static_cast<double>(theirs) - 1); }

/// What no reduction on a line can do without: the farthest wavelet's way, and all wavelets over the root's one link.
Cycle least(const WseRow& row) { return static_cast<Cycle>(row.tiles - 1) + 2 * 2 + 1 + row.wavelets; }

/// The lower bound of the cost model is one of its formula, which adds the mean load of a link to the longest way. Trees with few
/// wavelets, where the two overlap, go below it; docs/wse-validation.md says where.
void expect_bounded(Cycle cycles, const WseRow& row) {
  EXPECT_GE(cycles, least(row)) << row.tiles << " tiles, " << row.wavelets << " wavelets";
  if (row.wavelets > 16) {
    EXPECT_GE(cycles, row.bound) << row.tiles << " tiles, " << row.wavelets << " wavelets";
  }
}

std::string compared(Cycle ours, Cycle theirs) { return fmt::format("{} | {:+.1f} %", ours, percent(ours, theirs)); }

TEST(WseStudy, ChainsTreesAndTwoPhases) {
  fmt::print("| tiles | wavelets | bound | chain | tree | | tree, store_and_forward | | two_phase | |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const WseRow& row : wse_rows()) {
    const auto cycles = [&](StreamedAlgorithm algorithm, StreamRelay relay) {
      const Cycle result = wse_collective(row, StreamedKind::reduce, algorithm, relay).cycles;
      expect_bounded(result, row);
      return result;
    };
    const Cycle chain = cycles(StreamedAlgorithm::chain, StreamRelay::cut_through);
    const Cycle tree = cycles(StreamedAlgorithm::tree, StreamRelay::cut_through);
    const Cycle stored = cycles(StreamedAlgorithm::tree, StreamRelay::store_and_forward);
    const Cycle two_phase = cycles(StreamedAlgorithm::two_phase, StreamRelay::cut_through);
    fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", row.tiles, row.wavelets, row.bound, chain, compared(tree, row.tree),
               compared(stored, row.tree), compared(two_phase, row.two_phase));
    std::fflush(stdout);
    EXPECT_EQ(chain, row.chain);
    // Level by level: all wavelets, the way, and a message's overhead.
    const auto levels = static_cast<Cycle>(std::bit_width(static_cast<unsigned>(row.tiles)) - 1);
    EXPECT_EQ(stored, levels * (row.wavelets + 5) + static_cast<Cycle>(row.tiles - 1));
    EXPECT_LE(std::abs(percent(two_phase, row.two_phase)), 10) << row.tiles << " tiles, " << row.wavelets << " wavelets";
  }
}

/// Bound by the root's link from two wavelets on, which is the formula and the cycle of the last hop; a single wavelet of each tile
/// meets no other.
TEST(WseStudy, Stars) {
  for (const WseRow& row : wse_rows()) {
    const Cycle star = wse_collective(row, StreamedKind::reduce, StreamedAlgorithm::star).cycles;
    EXPECT_EQ(star, static_cast<Cycle>(row.tiles - 1) * row.wavelets + 6) << row.tiles << " tiles, " << row.wavelets << " wavelets";
    expect_bounded(star, row);
  }
}

TEST(WseStudy, Broadcasts) {
  for (const WseRow& row : wse_rows()) {
    EXPECT_EQ(wse_collective(row, StreamedKind::broadcast, StreamedAlgorithm::router_multicast).cycles, row.broadcast);
  }
}

TEST(WseStudy, Rings) {
  fmt::print("| tiles | wavelets | formula | store_and_forward | | cut_through | |\n|---|---|---|---|---|---|---|\n");
  for (const WseRow& row : wse_rows()) {
    const auto cycles = [&](StreamRelay relay) {
      return wse_collective(row, StreamedKind::all_reduce, StreamedAlgorithm::ring, relay).cycles;
    };
    const Cycle stored = cycles(StreamRelay::store_and_forward), streamed = cycles(StreamRelay::cut_through);
    fmt::print("| {} | {} | {} | {} | {} |\n", row.tiles, row.wavelets, row.ring, compared(stored, row.ring),
               compared(streamed, row.ring));
    std::fflush(stdout);
    if (row.wavelets % static_cast<Bytes>(row.tiles) == 0) {
      EXPECT_EQ(stored, row.ring);
    }
    EXPECT_GE(stored, row.ring);
    EXPECT_LE(streamed, row.ring);
  }
}

}  // namespace
}  // namespace wafersim::test
