// All rows of booksim2_latency.csv and booksim2_means.csv, with the tables of docs/network-validation.md.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "tests/sim/booksim_rows.h"

namespace wafersim::test {
namespace {

constexpr int kSeeds = 8;

/// Standard deviation of what `figure` is of each run.
template <class Figure>
double spread(const std::vector<sim::TrafficMeasurement>& runs, double mean, const Figure& figure) {
  double squares = 0;
  for (const sim::TrafficMeasurement& run : runs) squares += (figure(run) - mean) * (figure(run) - mean);
  return std::sqrt(squares / static_cast<double>(runs.size() - 1));
}
double latency_of(const sim::TrafficMeasurement& run) { return run.latency.mean(); }
double accepted_of(const sim::TrafficMeasurement& run) { return run.accepted_load; }

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
    const double error = spread(runs, ours.latency, latency_of) / std::sqrt(row.seeds) / row.latency;
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

/// Many long runs of each simulator: of latencies below twice that without load the means differ by 2 % at most, of accepted
/// loads beyond saturation by 3 %, within the 95 % confidence interval of the difference.
TEST(BookSimStudy, MeansOfManyRuns) {
  constexpr int kRuns = 100;
  std::printf("| configuration | load | runs of BookSim2 | | BookSim2 | wafersim | difference |\n|---|---|---|---|---|---|---|\n");
  std::size_t seen = 0;
  for (const BookSimRow& row : booksim_rows("booksim2_means.csv")) {
    const topology::Mesh mesh = mesh_of(row);
    const std::vector<sim::TrafficMeasurement> runs = measure_row(row, mesh, kRuns, 5000, 20'000);
    const MeanLoad ours = mean_of(runs);
    const double theirs = row.stable ? row.latency : row.accepted;
    const double mine = row.stable ? ours.latency : ours.accepted;
    const double their_error = row.stable ? row.latency_error : row.accepted_error;
    const double my_error = spread(runs, mine, row.stable ? latency_of : accepted_of) / std::sqrt(kRuns);
    EXPECT_TRUE(!row.stable || row.latency < 2 * zero_load_latency(row, mesh));
    const double difference = mine / theirs - 1;
    const double width = 1.96 * std::hypot(their_error, my_error) / theirs;
    const char* const format = row.stable ? "| %s | %g | %d | latency | %.2f +- %.2f | %.2f +- %.2f | %+.2f +- %.2f %% |\n"
                                          : "| %s | %g | %d | accepted | %.4f +- %.4f | %.4f +- %.4f | %+.2f +- %.2f %% |\n";
    std::printf(format, row.curve().c_str(), row.load.to_double(), row.seeds, theirs, 1.96 * their_error, mine, 1.96 * my_error,
                100 * difference, 100 * width);
    const double allowed = row.stable ? 0.02 : 0.03;
    EXPECT_LE(std::abs(difference), allowed) << row.curve() << " at " << row.load.to_double();
    ++seen;
  }
  EXPECT_EQ(seen, 7U);
}

TEST(BookSimStudy, SingleFlits) { compare(1, 0.03); }
/// BookSim2 ends a run of long packets beyond saturation, at a mean latency of 500 cycles, before the network is full.
TEST(BookSimStudy, LongPackets) { compare(20, 0.05); }

}  // namespace
}  // namespace wafersim::test
