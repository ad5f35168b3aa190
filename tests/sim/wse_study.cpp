// All rows of wse_line_collectives.csv, with the tables of docs/wse-validation.md.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/sim/wse_rows.h"

namespace wafersim::test {
namespace {

using workloads::StreamedAlgorithm;
using workloads::StreamedKind;
using workloads::StreamRelay;

double percent(Cycle ours, Cycle theirs) { return 100 * (static_cast<double>(ours) / static_cast<double>(theirs) - 1); }

/// Reductions: the bound of the cost model holds, except where one wavelet of a star comes straight from its tile.
TEST(WseStudy, Reductions) {
  std::printf("| tiles | wavelets | bound | chain | star | | tree | | two_phase | |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const WseRow& row : wse_rows()) {
    const auto cycles = [&](StreamedAlgorithm algorithm) { return wse_collective(row, StreamedKind::reduce, algorithm).cycles; };
    const Cycle chain = cycles(StreamedAlgorithm::chain), star = cycles(StreamedAlgorithm::star);
    const Cycle tree = cycles(StreamedAlgorithm::tree), two_phase = cycles(StreamedAlgorithm::two_phase);
    std::printf("| %d | %llu | %llu | %llu | %llu | %+.1f %% | %llu | %+.1f %% | %llu | %+.1f %% |\n", row.tiles,
                static_cast<unsigned long long>(row.wavelets), static_cast<unsigned long long>(row.bound),
                static_cast<unsigned long long>(chain), static_cast<unsigned long long>(star), percent(star, row.star),
                static_cast<unsigned long long>(tree), percent(tree, row.tree), static_cast<unsigned long long>(two_phase),
                percent(two_phase, row.two_phase));
    std::fflush(stdout);
    EXPECT_EQ(chain, row.chain);
    EXPECT_GE(chain, row.bound);
    EXPECT_GE(tree, row.bound);
    EXPECT_GE(two_phase, row.bound);
    const Cycle farthest = static_cast<Cycle>(row.tiles - 1) + 2 * 2 + 1 + row.wavelets;
    EXPECT_GE(star, row.wavelets == 1 ? farthest : row.bound);
  }
}

TEST(WseStudy, Broadcasts) {
  for (const WseRow& row : wse_rows()) {
    EXPECT_EQ(wse_collective(row, StreamedKind::broadcast, StreamedAlgorithm::router_multicast).cycles, row.broadcast);
  }
}

TEST(WseStudy, Rings) {
  std::printf("| tiles | wavelets | formula | store_and_forward | | cut_through | |\n|---|---|---|---|---|---|---|\n");
  for (const WseRow& row : wse_rows()) {
    const auto cycles = [&](StreamRelay relay) {
      return wse_collective(row, StreamedKind::all_reduce, StreamedAlgorithm::ring, relay).cycles;
    };
    const Cycle stored = cycles(StreamRelay::store_and_forward), streamed = cycles(StreamRelay::cut_through);
    std::printf("| %d | %llu | %llu | %llu | %+.1f %% | %llu | %+.1f %% |\n", row.tiles,
                static_cast<unsigned long long>(row.wavelets), static_cast<unsigned long long>(row.ring),
                static_cast<unsigned long long>(stored), percent(stored, row.ring), static_cast<unsigned long long>(streamed),
                percent(streamed, row.ring));
    std::fflush(stdout);
    if (row.wavelets % static_cast<Bytes>(row.tiles) == 0) {
      EXPECT_EQ(stored, row.ring);
    }
    EXPECT_GE(stored, row.ring);
    EXPECT_LE(streamed, row.ring + 1);
  }
}

}  // namespace
}  // namespace wafersim::test
