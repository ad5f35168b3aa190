#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/sim/flit_rig.h"
#include "tests/sim/hand_trace.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/topology/dateline_ring.h"

/// What cannot go on ends with an error that says who waits for what; nothing ends silently.
namespace wafersim::test {
namespace {

using workloads::Axis;
using workloads::MemoryClass;
using workloads::StepBuilder;

models::HardwareModel machine() { return plain_hardware(64, Rational(16), 1, 2); }

/// The message of the PlanError with which a run ends.
std::string plan_error(const topology::Shape& shape, const models::HardwareModel& hardware,
                       const workloads::Trace& trace) {
  try {
    run_trace(topology::Mesh({shape, {}, {}}), hardware, trace);
  } catch (const PlanError& error) {
    return error.what();
  }
  return "no PlanError";
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' in: " << text;
}

TEST(Stall, ReceiveThatNobodySends) {
  HandTrace trace(2);
  trace.step(0, [](StepBuilder& b) { b.vector(vector_work(30), {}); });
  trace.step(1, [](StepBuilder& b) { b.receive(Axis::tp, 0, 0xabc, 777, {}); });
  expect_words(plan_error({1, 2}, machine(), trace.take()),
               {"stalled in cycle 30", "1 of 2 tiles", "tile_1_0: step 0 (hand)",
                "waits for 777 B from tile_0_0", "abc)", "since cycle 0", "nobody sends it"});
}

TEST(Stall, MessageThatNobodyAskedFor) {
  HandTrace trace(3);
  trace.step(0, [](StepBuilder& b) { b.send(Axis::tp, 1, 5, 100, {}); });
  trace.step(1, [](StepBuilder& b) { b.receive(Axis::tp, 0, 6, 100, {}); });
  expect_words(plan_error({1, 3}, machine(), trace.take()),
               {"tile_1_0", "waits for 100 B from tile_0_0", "6)", "holds 100 B from tile_0_0",
                "5) that it has not asked for"});
}

TEST(Stall, CyclicWaitOfThreeTiles) {
  HandTrace trace(4);
  for (const auto& [tile, waits_for, sends_to] : {std::array<TileId, 3>{0, 1, 2}, {1, 2, 0}, {2, 0, 1}}) {
    trace.step(tile, [&, from = waits_for, to = sends_to](StepBuilder& b) {
      b.send(Axis::tp, to, 1, 64, {b.receive(Axis::tp, from, 1, 64, {})});
    });
  }
  expect_words(
      plan_error({2, 2}, machine(), trace.take()),
      {"3 of 3 tiles", "cyclic wait: tile_0_0 waits for tile_1_0 waits for tile_0_1 waits for tile_0_0"});
}

TEST(Stall, DifferentSizesAtBothEnds) {
  HandTrace trace(2);
  trace.step(0, [](StepBuilder& b) { b.send(Axis::tp, 1, 3, 100, {}); });
  trace.step(1, [](StepBuilder& b) { b.receive(Axis::tp, 0, 3, 99, {}); });
  expect_words(plan_error({1, 2}, machine(), trace.take()),
               {"tile_1_0", "a receive of 99 B from tile 0", "100 B", "key 0x"});
}

TEST(Stall, DifferentSizesWhenTheMessageIsEarly) {
  HandTrace trace(2);
  trace.step(0, [](StepBuilder& b) { b.send(Axis::tp, 1, 3, 100, {}); });
  trace.step(1, [](StepBuilder& b) { b.receive(Axis::tp, 0, 3, 99, {b.vector(vector_work(500), {})}); });
  expect_words(plan_error({1, 2}, machine(), trace.take()),
               {"tile_1_0", "a receive of 99 B from tile 0", "100 B"});
}

TEST(Stall, SendToATileThatRunsNothing) {
  HandTrace trace(3);
  trace.step(0, [](StepBuilder& b) { b.send(Axis::tp, 2, 3, 100, {}); });
  expect_words(plan_error({1, 3}, machine(), trace.take()),
               {"tile_0_0", "a message of 100 B", "tile 2, which runs nothing"});
}

TEST(Stall, ProgramOnADeadTile) {
  HandTrace hand(2);
  hand.step(1, [](StepBuilder& b) { b.vector(vector_work(1), {}); });
  const workloads::Trace trace = hand.take();
  const topology::Mesh mesh({{1, 2}, {{1, 0}}, {}});
  EXPECT_THROW(run_trace(mesh, machine(), trace), PlanError);
}

TEST(Stall, BufferThatHoldsNoPacket) {
  models::HardwareModel hardware = machine();
  hardware.vc_buffer_bytes = 63;
  HandTrace trace(2);
  trace.step(0, [](StepBuilder& b) { b.send(Axis::tp, 1, 3, 100, {}); });
  trace.step(1, [](StepBuilder& b) { b.receive(Axis::tp, 0, 3, 100, {}); });
  expect_words(plan_error({1, 2}, hardware, trace.take()),
               {"2 of 2 tiles", "tile_0_0", "waits for 100 B from tile_0_0"});
}

TEST(Stall, PacketsThatHoldEachOthersBuffersAreNamed) {
  models::HardwareModel hardware = machine();
  hardware.virtual_channels = 1;
  hardware.vc_buffer_bytes = hardware.packet_bytes;
  const topology::Mesh mesh({{2, 2}, {}, {}});
  // Everybody sends a long message to the opposite corner.
  const workloads::Trace trace =
      workloads::flow_trace({{0, 3, 640, 0}, {1, 2, 640, 0}, {3, 0, 640, 0}, {2, 1, 640, 0}});
  const topology::Clockwise routing;
  sim::Simulation simulation(mesh, routing, hardware, trace);
  try {
    simulation.run();
    FAIL() << "the run ended";
  } catch (const PlanError& error) {
    expect_words(error.what(),
                 {"4 of 4 tiles", "holds a packet of 64 B from tile 0 to tile 3",
                  "holds a packet of 64 B from tile 3 to tile 0", "tile_1_0.router: input port"});
  }
}

/// The circle of the four links, each link's buffer named once.
void expect_circle(const std::string& text) {
  expect_words(text, {"flits wait for each other in a circle:", "tile_1_0: input west VC 0 holds",
                      "tile_1_1: input north VC 0 holds", "tile_0_1: input east VC 0 holds",
                      "tile_0_0: input south VC 0 holds", "\n  and so on from tile_"});
}

TEST(Stall, FlitsThatHoldEachOthersBuffersAreNamedInACircle) {
  const topology::Mesh mesh({{2, 2}, {}, {}});
  const topology::Clockwise routing;
  models::HardwareModel hardware = machine();
  hardware.fidelity = models::Fidelity::flit;
  hardware.virtual_channels = 1;
  hardware.vc_buffer_bytes = hardware.packet_bytes;
  hardware.flit.flit_bytes = 16;
  hardware.flit.vc_buffer_flits = 4;
  for (const models::Switching switching : {models::Switching::wormhole, models::Switching::cut_through}) {
    hardware.flit.switching = switching;
    try {
      isolated_text([&] {
        run_flows(mesh, routing, hardware, {{0, 3, 640, 0}, {1, 2, 640, 0}, {3, 0, 640, 0}, {2, 1, 640, 0}});
        return std::string();
      });
      ADD_FAILURE() << "the run ended";
    } catch (const std::runtime_error& error) {
      expect_words(error.what(), {"the run stalled in cycle", "4 of 4 tiles", "a packet to tile_1_1, and waits for room in VC 0 of output "});
      expect_circle(error.what());
    }
  }
}

/// Synthetic traffic has no tiles that do not finish: it is seen that nothing moves.
TEST(Stall, TrafficThatStallsIsAnErrorThatNamesTheCircle) {
  const topology::Mesh mesh({{2, 2}, {}, {}});
  for (const models::Switching switching : {models::Switching::wormhole, models::Switching::cut_through}) {
    models::HardwareModel hardware = booksim_hardware(models::stages_of(models::PipelinePreset::p4), 1, 20);
    hardware.flit.switching = switching;
    std::vector<workloads::TracedPacket> packets;
    for (int round = 0; round < 20; ++round) {
      for (TileId tile = 0; tile < 4; ++tile) packets.push_back({0, tile, 3 - tile, 80});
    }
    workloads::TrafficSpec spec;
    spec.drain = Duration::of_cycles(1'000'000);
    sim::TrafficOptions options;
    options.packets = &packets;
    try {
      sim::run_traffic(mesh, topology::Clockwise(), hardware, spec, options);
      ADD_FAILURE() << "the traffic ended";
    } catch (const InternalError& error) {
      expect_words(error.what(), {"the network stalled before cycle", "flits are in it, and none has moved for "});
      expect_circle(error.what());
    }
    const FlitRun saved = run_packets(mesh, hardware, packets, "xy");
    EXPECT_TRUE(saved.measurement.drained);
  }
}

TEST(Stall, PacketWithoutAWayOnIsAnError) {
  const topology::Mesh mesh({{1, 3}, {}, {{{1, 0}, {2, 0}}}});
  const workloads::Trace trace = workloads::flow_trace({{0, 2, 64, 0}});
  EXPECT_THROW(run_trace(mesh, machine(), trace), Error);
}

TEST(Overflow, NamesTileStepBytesAndClasses) {
  models::HardwareModel hardware = machine();
  hardware.sram_capacity = 1000;
  HandTrace trace(1);
  trace.step(0, [](StepBuilder& b) {
    const auto held = b.allocate(MemoryClass::activations, 500, {b.vector(vector_work(12), {})});
    b.free(MemoryClass::activations, 500, {b.vector(vector_work(5), {held})});
  });
  trace.set_resident(0, MemoryClass::parameters, 600);
  expect_words(plan_error({1, 1}, hardware, trace.take()),
               {"tile_0_0: out of SRAM in cycle 12", "step 0 (hand)", "1100 B held", "1000 B there", "100 B",
                "parameters 600 B", "activations 500 B"});
}

TEST(Overflow, ThatLastsNoCycleIsNone) {
  models::HardwareModel hardware = machine();
  hardware.sram_capacity = 1000;
  HandTrace hand(1);
  hand.step(0, [](StepBuilder& b) {
    const auto held = b.allocate(MemoryClass::activations, 500, {});
    b.free(MemoryClass::activations, 500, {held});
  });
  hand.set_resident(0, MemoryClass::parameters, 600);
  const workloads::Trace trace = hand.take();
  EXPECT_EQ(run_trace(topology::Mesh({{1, 1}, {}, {}}), hardware, trace).tiles[0].peak_bytes, 600U);
}

TEST(Overflow, OfResidentMemory) {
  models::HardwareModel hardware = machine();
  hardware.sram_capacity = 1000;
  HandTrace trace(1);
  trace.step(0, [](StepBuilder& b) { b.vector(vector_work(12), {}); });
  trace.set_resident(0, MemoryClass::optimizer, 1001);
  expect_words(plan_error({1, 1}, hardware, trace.take()), {"out of SRAM", "optimizer 1001 B"});
}

TEST(Overflow, OfAMessageThatIsEarly) {
  models::HardwareModel hardware = machine();
  hardware.sram_capacity = 1000;
  HandTrace trace(2);
  trace.step(0, [](StepBuilder& b) { b.send(Axis::tp, 1, 0, 2000, {}); });
  trace.step(1, [](StepBuilder& b) { b.receive(Axis::tp, 0, 0, 2000, {b.vector(vector_work(900), {})}); });
  expect_words(plan_error({1, 2}, hardware, trace.take()), {"tile_1_0", "communication_buffers 2000 B"});
}

TEST(Limits, MaxCyclesGivesAPartialResult) {
  HandTrace hand(2);
  hand.step(0, [](StepBuilder& b) { b.vector(vector_work(30), {b.vector(vector_work(40), {})}); });
  hand.step(1, [](StepBuilder& b) { b.vector(vector_work(1000), {}); });
  const workloads::Trace trace = hand.take();
  sim::SimulationOptions options;
  options.max_cycles = 50;
  const sim::Measurements result = run_trace(topology::Mesh({{1, 2}, {}, {}}), machine(), trace, options);
  EXPECT_TRUE(result.partial);
  EXPECT_EQ(result.stopped_by, "max-cycles");
  EXPECT_EQ(result.cycles, 50U);
  for (const sim::TileMeasurement& tile : result.tiles) EXPECT_EQ(tile.cycles.compute, 50U);
  EXPECT_EQ(result.tiles[0].operations, 1U);
}

TEST(Limits, ThatAreNotReachedChangeNothing) {
  HandTrace hand(1);
  hand.step(0, [](StepBuilder& b) { b.vector(vector_work(50), {}); });
  const workloads::Trace trace = hand.take();
  sim::SimulationOptions options;
  options.max_cycles = 50;
  const sim::Measurements result = run_trace(topology::Mesh({{1, 1}, {}, {}}), machine(), trace, options);
  EXPECT_FALSE(result.partial);
  EXPECT_EQ(result.cycles, 50U);
}

}  // namespace
}  // namespace wafersim::test
