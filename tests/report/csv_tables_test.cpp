#include "report/csv_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "report/message_log.h"
#include "tests/report/run_fixture.h"

namespace wafersim::report {
namespace {

using wafersim::testing::read_text;
using wafersim::testing::RunFixture;
using wafersim::testing::TestDirectory;

TEST(CsvTables, Tiles) {
  const RunFixture run;
  const TestDirectory directory;
  write_tiles(directory.path() / "tiles.csv", run.measurements, run.mesh);
  EXPECT_EQ(
      read_text(directory.path() / "tiles.csv"),
      "tile,x,y,stage,group,compute_cycles,exposed_tp_cycles,exposed_tatp_cycles,exposed_sp_cycles,"
      "exposed_ep_cycles,exposed_dp_cycles,exposed_pp_cycles,bubble_cycles,memory_stall_cycles,idle_cycles,"
      "compute_utilization,matrix_busy_cycles,vector_busy_cycles,matrix_utilization,vector_utilization,"
      "communicating_cycles,operations,messages_sent,messages_received,bytes_sent,bytes_received,"
      "peak_sram_bytes,peak_dram_bytes,peak_bytes,peak_parameters_bytes,peak_gradients_bytes,"
      "peak_optimizer_bytes,peak_activations_bytes,peak_stream_buffers_bytes,peak_communication_buffers_"
      "bytes,"
      "static_bytes,final_bytes,matrix_flops,vector_flops,sram_bytes,dram_bytes,nic_bytes,energy_joules\n"
      "tile_0_0,0,0,0,0,600,100,0,0,0,0,0,0,50,250,0.600000,500,100,0.500000,0.100000,400,12,3,4,3000,4000,"
      "700,0,700,300,100,200,100,0,50,600,600,3276800,500,19000,2000,7000,\n"
      "tile_1_0,1,0,0,0,400,200,0,0,0,100,0,100,0,200,0.400000,0,0,0.000000,0.000000,600,0,0,0,0,0,"
      "800,0,800,300,150,200,90,0,70,0,0,0,0,0,0,0,\n");
}

TEST(CsvTables, Links) {
  RunFixture run;
  const TestDirectory directory;
  run.measurements.links.resize(2);
  write_links(directory.path() / "links.csv", run.measurements, run.mesh);
  EXPECT_EQ(
      read_text(directory.path() / "links.csv"),
      "link,x,y,direction,bytes,tp_bytes,tatp_bytes,sp_bytes,ep_bytes,dp_bytes,pp_bytes,none_bytes,packets,"
      "busy_cycles,utilization,queue_cycles,energy_joules\n"
      "tile_0_0>tile_1_0,0,0,east,4000,3000,0,0,0,1000,0,0,2,500,0.500000,50,\n"
      "tile_0_0>tile_0_1,0,0,south,0,0,0,0,0,0,0,0,0,0,0.000000,0,\n");
}

TEST(CsvTables, EnergyOfTilesAndLinks) {
  RunFixture run;
  run.hardware.energy.matrix = EnergyPerFlop{Rational(1, 1'000'000)};
  run.hardware.energy.link = EnergyPerBit{Rational(1, 8'000)};
  const analysis::RunSummary summary = run.summarize();
  const TestDirectory directory;
  write_tiles(directory.path() / "tiles.csv", run.measurements, run.mesh, summary.energy);
  write_links(directory.path() / "links.csv", run.measurements, run.mesh, summary.energy);
  // 3,276,800 FLOPs and 4,000 bytes east; 4,000 bytes west.
  EXPECT_NE(read_text(directory.path() / "tiles.csv").find(",7000,7.2768\n"), std::string::npos);
  EXPECT_NE(read_text(directory.path() / "tiles.csv").find(",0,0,4\n"), std::string::npos);
  EXPECT_NE(read_text(directory.path() / "links.csv").find(",50,4\n"), std::string::npos);
  EXPECT_NE(read_text(directory.path() / "links.csv").find(",0.000000,0,0\n"), std::string::npos);
}

TEST(CsvTables, Steps) {
  const RunFixture run;
  const TestDirectory directory;
  write_steps(directory.path() / "steps.csv", run.measurements);
  EXPECT_EQ(read_text(directory.path() / "steps.csv"),
            "group,stage,step,iteration,kind,pass,layer,microbatch,tiles,start_cycle,compute_cycle,end_cycle,span_cycles,"
            "min_cycles,"
            "mean_cycles,max_cycles\n"
            "0,0,0,0,embedding,F,,0,2,0,,90,90,80,85.000,90\n"
            "0,0,1,0,layer,F,0,0,2,80,85,1000,920,900,905.250,910\n");
}

TEST(CsvTables, RanksOfEveryUsedTile) {
  RunFixture run;
  run.plan.tp = 2;
  run.plan.pp = 2;
  const workloads::Mapping mapping(run.plan, run.mesh);
  const TestDirectory directory;
  write_ranks(directory.path() / "ranks.csv", run.plan, mapping, run.mesh);
  EXPECT_EQ(read_text(directory.path() / "ranks.csv"),
            "tile,tp_rank,tatp_rank,sp_rank,ep_rank,dp_rank,pp_rank\n"
            "tile_0_0,0,0,0,0,0,0\n"
            "tile_1_0,1,0,0,0,0,0\n"
            "tile_0_1,0,0,0,0,0,1\n"
            "tile_1_1,1,0,0,0,0,1\n");
}

TEST(CsvTables, RowsHaveAsManyCellsAsTheHeader) {
  const RunFixture run;
  const TestDirectory directory;
  write_tiles(directory.path() / "t", run.measurements, run.mesh);
  std::istringstream lines(read_text(directory.path() / "t"));
  std::string line;
  while (std::getline(lines, line)) EXPECT_EQ(std::count(line.begin(), line.end(), ','), 42) << line;
}

TEST(CsvTables, MessagesStreamIntoTheirFile) {
  const RunFixture run;
  const TestDirectory directory;
  const std::filesystem::path path = directory.path() / "messages.csv";
  const std::vector<workloads::Tensor> tensors = {{"-"}, {"activations"}};
  MessageLog log(path, run.mesh, tensors);
  sim::MessageRecord message;
  message.source = 0;
  message.destination = 3;
  message.axis = workloads::Axis::tp;
  message.tensor = 1;
  message.bytes = 512;
  message.posted = 10;
  message.injected = 14;
  message.received = 60;
  message.queued = 4;
  log.add(message);
  EXPECT_FALSE(std::filesystem::exists(path)) << "the name appears with commit()";
  log.commit();
  EXPECT_EQ(read_text(path),
            "source,destination,axis,tensor,bytes,post_cycle,inject_cycle,receive_cycle,latency_cycles,queue_"
            "cycles\n"
            "tile_0_0,tile_1_1,tp,activations,512,10,14,60,50,4\n");
}

TEST(CsvTables, MissingDirectoryIsNamed) {
  const RunFixture run;
  const TestDirectory directory;
  const std::filesystem::path path = directory.path() / "nowhere" / "steps.csv";
  try {
    write_steps(path, run.measurements);
    FAIL() << "an error is expected";
  } catch (const IoError& error) {
    EXPECT_EQ(error.what(), "cannot create " + path.string() + ": No such file or directory");
    EXPECT_EQ(error.status(), ExitStatus::io);
  }
}

}  // namespace
}  // namespace wafersim::report
