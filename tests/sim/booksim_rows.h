#pragma once

#include <string>
#include <vector>

#include "base/rational.h"
#include "tests/sim/flit_rig.h"

namespace wafersim::test {

/// A row of booksim2_latency.csv or booksim2_means.csv.
struct BookSimRow {
  int k = 0, vcs = 0, buffer = 0, flits = 0, seeds = 0;
  std::string pipeline, traffic;
  Rational load;
  bool stable = false;
  double latency = 0, accepted = 0;
  double latency_error = 0, accepted_error = 0;  ///< standard errors; of booksim2_means.csv
  /// What rows of one curve share.
  std::string curve() const;
};
std::vector<BookSimRow> booksim_rows(const std::string& file = "booksim2_latency.csv");
topology::Mesh mesh_of(const BookSimRow& row);

/// c R + 2 + (F - 1) with the mean number of routers of the row's pattern.
double zero_load_latency(const BookSimRow& row, const topology::Mesh& mesh);

/// The row's configuration. Without other lengths it is measured as BookSim2 measured booksim2_latency.csv: 3,000 cycles of
/// warm-up, then 5,000 (it took 3,000 to 7,000).
std::vector<sim::TrafficMeasurement> measure_row(const BookSimRow& row, const topology::Mesh& mesh, int seeds,
                                                 Cycle warmup = 3000, Cycle measurement = 5000);

}  // namespace wafersim::test
