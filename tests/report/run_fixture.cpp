#include "tests/report/run_fixture.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace wafersim::testing {
namespace {

workloads::PlanSpec plan_of_two() {
  workloads::PlanSpec plan;
  plan.tp = 2;
  return plan;
}

models::TransformerSpec small_model() {
  models::TransformerSpec model;
  model.name = "small";
  model.layers = 2;
  model.hidden = 64;
  model.heads = 4;
  model.kv_heads = 4;
  model.head_dim = 16;
  model.ffn = 256;
  model.vocab = 100;
  model.context = 32;
  model.sequence = 32;
  return model;
}

sim::TileMeasurement first_tile() {
  sim::TileMeasurement tile;
  tile.tile = 0;
  tile.cycles.compute = 600;
  tile.cycles.exposed[0] = 100;
  tile.cycles.memory_stall = 50;
  tile.cycles.idle = 250;
  tile.matrix_busy = 500;
  tile.vector_busy = 100;
  tile.communicating = 400;
  tile.operations = 12;
  tile.matrix_flops = 3'276'800;
  tile.vector_flops = 500;
  tile.core_sram_bytes = 12'000;
  tile.dram_bytes = 2'000;
  tile.bytes_injected = 3000;
  tile.bytes_ejected = 4000;
  tile.messages_sent = 3;
  tile.messages_received = 4;
  tile.bytes_sent = 3000;
  tile.bytes_received = 4000;
  tile.peak_sram_bytes = 700;
  tile.peak_bytes = 700;
  tile.peak_by_class = {300, 100, 200, 100, 0, 50};
  tile.static_bytes = 600;
  tile.final_bytes = 600;
  return tile;
}

sim::TileMeasurement second_tile() {
  sim::TileMeasurement tile;
  tile.tile = 1;
  tile.cycles.compute = 400;
  tile.cycles.exposed[0] = 200;
  tile.cycles.exposed[4] = 100;
  tile.cycles.bubble = 100;
  tile.cycles.idle = 200;
  tile.communicating = 600;
  tile.peak_sram_bytes = 800;
  tile.peak_bytes = 800;
  tile.peak_by_class = {300, 150, 200, 90, 0, 70};
  return tile;
}

sim::LinkMeasurement link(topology::LinkId id, Bytes tp_bytes, Bytes dp_bytes, Cycle busy) {
  sim::LinkMeasurement result;
  result.link = id;
  result.bytes = tp_bytes + dp_bytes;
  result.bytes_by_axis[0] = tp_bytes;
  result.bytes_by_axis[4] = dp_bytes;
  result.packets = busy > 0 ? 2 : 0;
  result.busy = busy;
  result.queued = busy / 10;
  return result;
}

sim::Measurements hand_made(const topology::Mesh& mesh) {
  sim::Measurements result;
  result.cycles = 1000;
  result.iteration_ends = {1000};
  result.tiles = {first_tile(), second_tile()};
  const topology::LinkId east = topology::Mesh::link(0, topology::Direction::east);
  const topology::LinkId west = topology::Mesh::link(1, topology::Direction::west);
  for (topology::LinkId id = 0; id < mesh.link_slots(); ++id) {
    if (!mesh.link_alive(id)) continue;
    result.links.push_back(id == east   ? link(id, 3000, 1000, 500)
                           : id == west ? link(id, 4000, 0, 300)
                                        : link(id, 0, 0, 0));
  }
  sim::StepMeasurement embedding;
  embedding.kind = workloads::StepKind::embedding;
  embedding.pass = workloads::Pass::forward;
  embedding.microbatch = 0;
  embedding.end = 90;
  embedding.shortest = 80;
  embedding.longest = 90;
  embedding.mean = 85;
  embedding.tiles = 2;
  sim::StepMeasurement layer = embedding;
  layer.index = 1;
  layer.kind = workloads::StepKind::layer;
  layer.layer = 0;
  layer.start = 80;
  layer.first_compute = 85;
  layer.end = 1000;
  layer.shortest = 900;
  layer.longest = 910;
  layer.mean = 905.25;
  result.steps = {embedding, layer};
  result.packets = 4;
  result.packet_hops = 4;
  result.messages = 4;
  result.matrix_flops = 3'276'800;
  result.engine = {2.5, 2.0, 1 << 20, 123, 2.0, {}};
  return result;
}

}  // namespace

RunFixture::RunFixture()
    : model(small_model()),
      plan(plan_of_two()),
      mesh(topology::MeshSpec{{2, 2}, {}, {}}),
      mapping(plan, mesh),
      measurements(hand_made(mesh)) {
  training.global_batch = 4;
  hardware.clock = {Rational(1'000'000'000)};
  hardware.array = {128, 128};
  hardware.arrays = Rational(1);
  hardware.matrix_flops_per_cycle = Rational(2 * 128 * 128);
  memory.by_class = {300, 150, 200, 100, 0, 80};
  memory.peak_bytes = 820;
  memory.peak_sram_bytes = 820;
  memory.peak_tile = 1;
  memory.sram_capacity = 1000;
  memory.fits = true;
}

analysis::RunSummary RunFixture::summarize() const {
  return analysis::summarize({model, training, hardware, mesh, memory, measurements});
}

report::RunContext RunFixture::context(const analysis::RunSummary& summary) const {
  return {"small", R"({"name": "small", "seed": 1})", plan, training, mapping, hardware, mesh, measurements,
          summary};
}

TestDirectory::TestDirectory() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  path_ =
      std::filesystem::path(::testing::TempDir()) / ("wafersim_" + std::string(test->test_suite_name()) +
                                                     "_" + test->name() + "_" + std::to_string(::getpid()));
  std::filesystem::remove_all(path_);
  std::filesystem::create_directories(path_);
}

TestDirectory::~TestDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_text(const std::filesystem::path& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace wafersim::testing
