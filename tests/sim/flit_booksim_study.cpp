// All rows of booksim2_latency.csv, with the table of docs/network-validation.md.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "tests/sim/booksim_rows.h"

namespace wafersim::test {
namespace {

constexpr int kSeeds = 8;

double spread(const std::vector<sim::TrafficMeasurement>& runs, double mean) {
  double squares = 0;
  for (const sim::TrafficMeasurement& run : runs) squares += (run.latency.mean() - mean) * (run.latency.mean() - mean);
  return std::sqrt(squares / static_cast<double>(runs.size() - 1));
}

/// Latency within 2 % below twice the zero-load latency, plus three standard errors of BookSim2's figure: a row is the mean
/// over its `seeds` runs of the length of ours, whose spread ours have too. A load at or beyond the largest accepted one has no latency.
/// Largest accepted load within `saturation_margin`.
void compare(int flits, double saturation_margin) {
  std::map<std::string, double> largest;  // accepted by BookSim2
  for (const BookSimRow& row : booksim_rows()) largest[row.curve()] = std::max(largest[row.curve()], row.accepted);
  std::map<std::string, std::pair<double, double>> saturation;
  std::printf("| configuration | load | BookSim2 | wafersim | difference | standard error of BookSim2's figure |\n"
              "|---|---|---|---|---|---|\n");
  for (const BookSimRow& row : booksim_rows()) {
    if (row.flits != flits) continue;
    const topology::Mesh mesh = mesh_of(row);
    const std::vector<sim::TrafficMeasurement> runs = measure_row(row, mesh, kSeeds);
    const MeanLoad ours = mean_of(runs);
    auto& [theirs, own] = saturation[row.curve()];
    theirs = std::max(theirs, row.accepted);
    own = std::max(own, ours.accepted);
    if (!row.stable || row.latency >= 2 * zero_load_latency(row, mesh)) continue;
    if (row.load.to_double() > 0.995 * largest.at(row.curve())) continue;
    const double error = spread(runs, ours.latency) / std::sqrt(row.seeds) / row.latency;
    const double difference = ours.latency / row.latency - 1;
    std::printf("| %s | %g | %.2f | %.2f | %+.2f %% | %.2f %% |\n", row.curve().c_str(), row.load.to_double(), row.latency,
                ours.latency, 100 * difference, 100 * error);
    EXPECT_LE(std::abs(difference), 0.02 + 3 * error) << row.curve() << " at " << row.load.to_double();
  }
  std::printf("\n| configuration | BookSim2 | wafersim | difference |\n|---|---|---|---|\n");
  for (const auto& [curve, loads] : saturation) {
    std::printf("| %s | %.4f | %.4f | %+.2f %% |\n", curve.c_str(), loads.first, loads.second,
                100 * (loads.second / loads.first - 1));
    EXPECT_NEAR(loads.second / loads.first, 1, saturation_margin) << curve;
  }
}

TEST(BookSimStudy, SingleFlits) { compare(1, 0.03); }
/// BookSim2 ends a run of long packets beyond saturation, at a mean latency of 500 cycles, before the network is full.
TEST(BookSimStudy, LongPackets) { compare(20, 0.05); }

}  // namespace
}  // namespace wafersim::test
