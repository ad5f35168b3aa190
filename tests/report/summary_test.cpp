#include "analysis/summary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "models/transformer.h"
#include "tests/report/run_fixture.h"

namespace wafersim::analysis {
namespace {

using wafersim::testing::RunFixture;

TEST(Summary, BreakdownIsTheMeanOverUsedTiles) {
  const RunSummary summary = RunFixture().summarize();
  EXPECT_DOUBLE_EQ(summary.breakdown.compute, 0.5);
  EXPECT_DOUBLE_EQ(summary.breakdown.exposed[0], 0.15);
  EXPECT_DOUBLE_EQ(summary.breakdown.exposed[4], 0.05);
  EXPECT_DOUBLE_EQ(summary.breakdown.bubble, 0.05);
  EXPECT_DOUBLE_EQ(summary.breakdown.memory_stall, 0.025);
  EXPECT_DOUBLE_EQ(summary.breakdown.idle, 0.225);
  EXPECT_DOUBLE_EQ(summary.compute_utilization, 0.5);
  EXPECT_DOUBLE_EQ(summary.communication_share, 0.2);
}

TEST(Summary, FractionsSumToOneForAnyCycles) {
  RandomStream random(1, "fractions");
  for (int round = 0; round < 200; ++round) {
    RunFixture run;
    for (sim::TileMeasurement& tile : run.measurements.tiles) {
      tile.cycles = {};
      Cycle left = run.measurements.cycles = 1'000'000'007;
      for (Cycle& exposed : tile.cycles.exposed) left -= exposed = random.below(left / 4);
      left -= tile.cycles.compute = random.below(left);
      left -= tile.cycles.bubble = random.below(left + 1);
      tile.cycles.idle = left;
    }
    EXPECT_NEAR(run.summarize().breakdown.total(), 1.0, 1e-12);
  }
}

TEST(Summary, RunOfNoCyclesIsIdle) {
  RunFixture run;
  run.measurements.cycles = 0;
  run.measurements.iteration_ends.clear();
  for (sim::TileMeasurement& tile : run.measurements.tiles) tile.cycles = {};
  const RunSummary summary = run.summarize();
  EXPECT_EQ(summary.breakdown.idle, 1.0);
  EXPECT_EQ(summary.breakdown.total(), 1.0);
  EXPECT_EQ(summary.hfu, 0.0);
  EXPECT_FALSE(summary.mfu.has_value());
  EXPECT_EQ(summary.network.mean_link_utilization, 0.0);
}

TEST(Summary, CyclesThatDoNotSumUpAreABug) {
  RunFixture run;
  run.measurements.tiles[0].cycles.idle += 1;
  EXPECT_THROW(run.summarize(), InternalError);
}

TEST(Summary, RatesFollowFromFlopsTokensAndCycles) {
  const RunFixture run;
  const RunSummary summary = run.summarize();
  const double model_flops = static_cast<double>(models::model_flops(run.model, 4));
  const double tile_peak = 2 * 128 * 128 * 1e9;
  EXPECT_DOUBLE_EQ(summary.seconds, 1e-6);
  EXPECT_DOUBLE_EQ(summary.tokens_per_second.value(), 4 * 32 / 1e-6);
  EXPECT_DOUBLE_EQ(summary.mfu.value(), model_flops / (1e-6 * 2 * tile_peak));
  EXPECT_DOUBLE_EQ(summary.mfu_wafer.value(), model_flops / (1e-6 * 4 * tile_peak));
  EXPECT_DOUBLE_EQ(summary.hfu, 0.05 * models::full_score_factor(run.model));
}

TEST(Summary, DeadTilesAreNoPartOfTheWafersPeak) {
  RunFixture run;
  run.mesh = topology::Mesh(topology::MeshSpec{{2, 2}, {{1, 1}}, {}});
  const RunSummary summary = run.summarize();
  EXPECT_EQ(summary.tiles_total, 3u);
  EXPECT_DOUBLE_EQ(summary.mfu_wafer.value(), summary.mfu.value() * 2 / 3);
}

TEST(Summary, HiddenCommunication) {
  RunFixture run;
  EXPECT_DOUBLE_EQ(run.summarize().hidden_communication.value(), 1.0 - 400.0 / 1000.0);
  for (sim::TileMeasurement& tile : run.measurements.tiles) tile.communicating = 0;
  EXPECT_FALSE(run.summarize().hidden_communication.has_value());
}

TEST(Summary, MemoryTakesTheFullestTileAndTheLargestOfEachClass) {
  const MemorySummary memory = RunFixture().summarize().memory;
  EXPECT_TRUE(memory.fits);
  EXPECT_EQ(memory.capacity_bytes, 1000u);
  EXPECT_EQ(memory.peak_bytes, 800u);
  EXPECT_EQ(memory.peak_tile, 1u);
  EXPECT_EQ(memory.bound_bytes, 820u);
  const std::array<Bytes, workloads::kMemoryClasses> largest = {300, 150, 200, 100, 0, 70};
  EXPECT_EQ(memory.peak_by_class, largest);
}

TEST(Summary, FullestTileIsTheLowestOfEquals) {
  RunFixture run;
  run.measurements.tiles[0].peak_bytes = 800;
  EXPECT_EQ(run.summarize().memory.peak_tile, 0u);
}

TEST(Summary, LinkUtilizationIsOverAllLiveLinks) {
  const NetworkSummary network = RunFixture().summarize().network;
  EXPECT_DOUBLE_EQ(network.max_link_utilization, 0.5);
  EXPECT_DOUBLE_EQ(network.mean_link_utilization, 0.8 / 8);
}

TEST(Summary, HotspotsLeaveIdleLinksOut) {
  const NetworkSummary network = RunFixture().summarize().network;
  ASSERT_EQ(network.hotspots.size(), 2u);
  EXPECT_EQ(network.hotspots[0].name, "tile_0_0>tile_1_0");
  EXPECT_DOUBLE_EQ(network.hotspots[0].utilization, 0.5);
  EXPECT_EQ(network.hotspots[0].queue_cycles, 50u);
  EXPECT_EQ(network.hotspots[0].bytes_by_axis[4], 1000u);
  EXPECT_EQ(network.hotspots[1].name, "tile_1_0>tile_0_0");
}

TEST(Summary, HotspotsAreTenWithTiesByBytesThenLink) {
  RunFixture run;
  run.mesh = topology::Mesh(topology::MeshSpec{{4, 4}, {}, {}});
  run.measurements.links.clear();
  for (topology::LinkId id = 0; id < run.mesh.link_slots(); ++id) {
    if (!run.mesh.link_alive(id)) continue;
    sim::LinkMeasurement link;
    link.link = id;
    link.packets = 1;
    link.busy = 100;
    link.bytes = id % 2 == 0 ? 10 : 20;
    run.measurements.links.push_back(link);
  }
  const std::vector<Hotspot> hotspots = run.summarize().network.hotspots;
  ASSERT_EQ(hotspots.size(), 10u);
  for (const Hotspot& hotspot : hotspots) EXPECT_EQ(hotspot.bytes, 20u);
  EXPECT_TRUE(std::is_sorted(hotspots.begin(), hotspots.end(),
                             [](const Hotspot& a, const Hotspot& b) { return a.link < b.link; }));
}

TEST(Summary, SteadyStateIsFromStartToStart) {
  RunFixture run;
  run.training.iterations = 3;
  run.measurements.iteration_ends = {400, 690, 1000};
  sim::StepMeasurement step = run.measurements.steps[0];
  run.measurements.steps.clear();
  for (const auto& [iteration, start] : {std::pair{0, 0}, {0, 50}, {1, 395}, {1, 500}, {2, 680}, {2, 700}}) {
    step.iteration = iteration;
    step.start = static_cast<Cycle>(start);
    run.measurements.steps.push_back(step);
  }
  const IterationSummary iterations = run.summarize().iterations;
  EXPECT_EQ(iterations.steady_state_cycles, Cycle{680 - 395});
  EXPECT_DOUBLE_EQ(iterations.mean_cycles.value(), 1000.0 / 3);
  EXPECT_EQ(iterations.completed, 3);
}

TEST(Summary, OneIterationHasNoSteadyState) {
  EXPECT_FALSE(RunFixture().summarize().iterations.steady_state_cycles.has_value());
}

TEST(Summary, PartialRunRatesCoverTheCompletedIterations) {
  RunFixture run;
  run.training.iterations = 2;
  run.measurements.partial = true;
  run.measurements.iteration_ends = {800};
  const RunSummary summary = run.summarize();
  EXPECT_DOUBLE_EQ(summary.tokens_per_second.value(), 4 * 32 / 0.8e-6);
  run.measurements.iteration_ends.clear();
  EXPECT_FALSE(run.summarize().tokens_per_second.has_value());
}

}  // namespace
}  // namespace wafersim::analysis
