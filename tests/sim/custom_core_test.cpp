#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sim/core.h"
#include "tests/sim/hand_trace.h"
#include "tests/sim/machine.h"

namespace wafersim::test {
namespace {

using workloads::Axis;
using workloads::StepBuilder;

// The class of docs/custom-core.md.
class PingCore : public sim::Core {
 public:
  SC_HAS_PROCESS(PingCore);
  PingCore(sc_core::sc_module_name name, TileId peer, std::uint64_t key)
      : Core(name), peer_(peer), key_(key) {
    SC_THREAD(run);
  }

  void send_done(std::uint64_t) override { sent_at_ = sc_core::sc_time_stamp(); }
  void received(std::uint64_t, const sim::Arrival&) override { arrived_.notify(sc_core::SC_ZERO_TIME); }
  void dram_done(std::uint32_t) override {}

  bool finished() const override { return finished_; }
  std::string describe() const override { return finished_ ? "done" : "waiting for the answer"; }
  void measure(Cycle end, sim::TileMeasurement& out) override { out.cycles.idle = end; }

  sc_core::sc_time sent_at_, answered_at_;

 private:
  void run() {
    wait(100, sc_core::SC_NS);  // 100 cycles of a 1 GHz wafer
    nic->post_send({.destination = peer_, .key = key_, .bytes = 64, .axis = workloads::Axis::tp});
    if (!nic->post_receive({.source = peer_, .key = key_, .bytes = 128})) wait(arrived_);
    answered_at_ = sc_core::sc_time_stamp();
    finished_ = true;
  }

  TileId peer_;
  std::uint64_t key_;
  sc_core::sc_event arrived_;
  bool finished_ = false;
};

/// Tile 1 waits for 64 B on channel 7, computes `cycles` and answers with 128 B on the same channel.
workloads::Trace answering(Cycle cycles) {
  HandTrace hand(2);
  hand.step(0, [](StepBuilder&) {});
  hand.step(1, [&](StepBuilder& b) {
    const auto computed = b.vector(vector_work(cycles), {b.receive(Axis::tp, 0, 7, 64, {})});
    b.send(Axis::tp, 0, 7, 128, {computed});
  });
  return hand.take();
}

std::uint64_t key_of_channel(std::uint32_t channel) {
  workloads::Op op;
  op.kind = workloads::OpKind::send;
  op.channel = channel;
  return workloads::message_key(op, workloads::Step{});
}

models::HardwareModel machine() { return plain_hardware(64, Rational(16), 1, 2); }

struct Outcome {
  sim::Measurements measurements;
  std::vector<sim::MessageRecord> messages;
  sc_core::sc_time sent_at, answered_at;
};

Outcome run_ping(Cycle cycles) {
  const topology::Mesh mesh({{1, 2}, {}, {}});
  const auto routing = topology::make_routing("xy", mesh);
  const workloads::Trace trace = answering(cycles);
  Outcome outcome;
  PingCore* ping = nullptr;
  sim::SimulationOptions options;
  options.on_message = [&](const sim::MessageRecord& record) { outcome.messages.push_back(record); };
  options.core_factory = [&](const char* name, TileId tile) -> std::unique_ptr<sim::Core> {
    if (tile != 0) return nullptr;  // the trace's own
    auto core = std::make_unique<PingCore>(name, 1, key_of_channel(7));
    ping = core.get();
    return core;
  };
  sim::Simulation simulation(mesh, *routing, machine(), trace, options);
  EXPECT_STREQ(ping->name(), "wafer0.tile_0_0.core");
  outcome.measurements = simulation.run();
  EXPECT_TRUE(ping->finished());
  outcome.sent_at = ping->sent_at_;
  outcome.answered_at = ping->answered_at_;
  return outcome;
}

/// What a process posts in cycle 100 goes into the network in cycle 101. 64 B take R + L + R + 4 = 8 cycles,
/// 128 B take 12.
void expect_times(const Outcome& outcome, Cycle cycles) {
  ASSERT_EQ(outcome.messages.size(), 2U);
  EXPECT_EQ(outcome.messages[0].posted, 100U);
  EXPECT_EQ(outcome.messages[0].injected, 101U);
  EXPECT_EQ(outcome.messages[0].received, 109U);
  EXPECT_EQ(outcome.messages[1].posted, 109 + cycles);
  EXPECT_EQ(outcome.messages[1].received, 121 + cycles);
  EXPECT_EQ(outcome.sent_at, sc_core::sc_time(105, sc_core::SC_NS));
  EXPECT_EQ(outcome.answered_at, sc_core::sc_time(static_cast<double>(121 + cycles), sc_core::SC_NS));
  EXPECT_EQ(outcome.measurements.cycles, 121 + cycles);
  EXPECT_EQ(outcome.measurements.tiles[0].cycles.idle, 121 + cycles);
  EXPECT_EQ(outcome.measurements.tiles[1].cycles.compute, cycles);
  EXPECT_EQ(outcome.measurements.tiles[0].bytes_sent, 64U);
  EXPECT_EQ(outcome.measurements.tiles[0].bytes_received, 128U);
}

TEST(CustomCore, ThreadTalksToTheTrace) { expect_times(run_ping(40), 40); }

/// Beyond the calendar's wheel.
TEST(CustomCore, ThreadWaitsLongForTheAnswer) { expect_times(run_ping(50'000), 50'000); }

/// A core that never gets its answer ends the run with its own words.
TEST(CustomCore, StallIsReported) {
  const topology::Mesh mesh({{1, 2}, {}, {}});
  const auto routing = topology::make_routing("xy", mesh);
  HandTrace hand(2);
  hand.step(0, [](StepBuilder&) {});
  hand.step(1, [](StepBuilder& b) { b.receive(Axis::tp, 0, 7, 64, {}); });
  const workloads::Trace trace = hand.take();
  sim::SimulationOptions options;
  options.core_factory = [&](const char* name, TileId tile) -> std::unique_ptr<sim::Core> {
    if (tile != 0) return nullptr;
    return std::make_unique<PingCore>(name, 1, key_of_channel(7));
  };
  sim::Simulation simulation(mesh, *routing, machine(), trace, options);
  try {
    simulation.run();
    FAIL() << "the run ended";
  } catch (const PlanError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("tile_0_0: waiting for the answer; waits for 128 B from tile_1_0"), std::string::npos)
        << text;
  }
}

std::string file_text(const std::string& path) {
  std::ifstream file(std::string(WAFERSIM_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(CustomCore, CodeOfTheGuideIsTheCodeTestedHere) {
  const std::string guide = file_text("docs/custom-core.md");
  const std::string opening = "```cpp\n";
  const auto begin = guide.find(opening);
  ASSERT_NE(begin, std::string::npos);
  const auto end = guide.find("```", begin + opening.size());
  ASSERT_NE(end, std::string::npos);
  const std::string code = guide.substr(begin + opening.size(), end - begin - opening.size());
  EXPECT_GT(code.size(), 1000U);
  EXPECT_NE(file_text("tests/sim/custom_core_test.cpp").find(code), std::string::npos);
}

}  // namespace
}  // namespace wafersim::test
