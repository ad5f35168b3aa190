// The flit engine against BookSim2: packets that it made, one by one, and its latency-throughput curves.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/sim/booksim_rows.h"
#include "tests/sim/flit_rig.h"

namespace wafersim::test {
namespace {

const std::string kReference = WAFERSIM_SOURCE_DIR "/tests/reference/";

struct RecordedRun {
  std::map<std::string, std::string> settings;
  std::vector<workloads::TracedPacket> packets;
  std::vector<Cycle> arrivals;
};

/// "# key=value ...", the names of the columns, then created, source, destination, flits, arrived.
RecordedRun read_run(const std::string& path) {
  RecordedRun run;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  std::istringstream words(line.substr(1));
  for (std::string word; words >> word;) run.settings[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  std::getline(in, line);
  while (std::getline(in, line)) {
    unsigned long created = 0, source = 0, destination = 0, flits = 0, arrived = 0;
    EXPECT_EQ(std::sscanf(line.c_str(), "%lu,%lu,%lu,%lu,%lu", &created, &source, &destination, &flits, &arrived), 5);
    run.packets.push_back({created, static_cast<TileId>(source), static_cast<TileId>(destination), 4 * flits});
    run.arrivals.push_back(arrived);
  }
  return run;
}

class RecordedPackets : public testing::TestWithParam<const char*> {};

TEST_P(RecordedPackets, ArriveInTheSameCycles) {
  const RecordedRun run = read_run(kReference + "booksim2_packets/" + GetParam() + ".csv");
  ASSERT_GT(run.packets.size(), 1000U);
  topology::MeshSpec spec;
  ASSERT_TRUE(topology::parse_shape(run.settings.at("mesh"), spec.shape));
  const topology::Mesh mesh(spec);
  models::PipelineStages stages = models::stages_of(pipeline_named(run.settings.at("pipeline")));
  if (run.settings.contains("credit_stage")) stages.credit = std::stoi(run.settings.at("credit_stage"));
  models::HardwareModel hardware = booksim_hardware(stages, std::stoi(run.settings.at("virtual_channels")),
                                                    static_cast<unsigned>(std::stoi(run.settings.at("vc_buffer_flits"))));
  if (run.settings.at("allocator") == "round_robin") hardware.flit.allocator = models::Allocator::round_robin;
  const FlitRun ours = run_packets(mesh, hardware, run.packets);
  ASSERT_EQ(ours.delivered.size(), run.packets.size());
  for (std::size_t i = 0; i < run.packets.size(); ++i) {
    ASSERT_EQ(ours.delivered[i].destination, run.packets[i].destination);
    ASSERT_EQ(ours.delivered[i].arrived, run.arrivals[i])
        << "packet of cycle " << run.packets[i].cycle << " from " << run.packets[i].source;
  }
}
INSTANTIATE_TEST_SUITE_P(BookSim2, RecordedPackets,
                         testing::Values("uniform_p5", "uniform_p4_one_vc", "uniform_p3_long", "transpose_p3_small_buffers",
                                         "bit_complement_p5_long", "uniform_p4_round_robin", "uniform_p3_round_robin",
                                         "tornado_p5_many_vcs", "uniform_p5_slow_credits", "transpose_p5_slow_credits"),
                         [](const auto& test) { return std::string(test.param); });

/// The rows of single flits well below saturation, whose own sampling error is small.
TEST(BookSimCurves, LatencyOfSingleFlitsWithinTwoPercent) {
  int compared = 0;
  for (const BookSimRow& row : booksim_rows()) {
    if (row.flits != 1 || row.k != 8 || row.traffic == "neighbor" || !row.stable) continue;
    const topology::Mesh mesh = mesh_of(row);
    if (row.latency > 1.3 * zero_load_latency(row, mesh)) continue;
    const MeanLoad ours = mean_of(measure_row(row, mesh, 2));
    EXPECT_NEAR(ours.latency / row.latency, 1, 0.02) << row.pipeline << " " << row.traffic << " " << row.load.to_double();
    EXPECT_NEAR(ours.accepted, ours.offered, 0.01 * ours.offered + 0.0005);
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

/// The largest accepted load of each configuration of single flits.
TEST(BookSimCurves, SaturationOfSingleFlitsWithinThreePercent) {
  std::map<std::string, std::pair<double, double>> best;
  for (const BookSimRow& row : booksim_rows()) {
    if (row.flits != 1 || row.k != 8 || row.traffic == "neighbor") continue;
    const topology::Mesh mesh = mesh_of(row);
    if (row.stable && row.latency < 2 * zero_load_latency(row, mesh)) continue;
    auto& [theirs, ours] = best[row.curve()];
    theirs = std::max(theirs, row.accepted);
    ours = std::max(ours, measure_row(row, mesh, 1).front().accepted_load);
  }
  EXPECT_EQ(best.size(), 9U);
  for (const auto& [name, loads] : best) EXPECT_NEAR(loads.second / loads.first, 1, 0.03) << name;
}

}  // namespace
}  // namespace wafersim::test
