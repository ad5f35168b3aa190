#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/sim/hand_trace.h"
#include "tests/sim/machine.h"

/// Engines, memory ports and messages of a tile, computed by hand. R = 1, L = 2, packets of 64 B at 16 B a
/// cycle: a packet sent at t to a neighbour is granted its ejection at t + 4 and received at t + 8.
namespace wafersim::test {
namespace {

using workloads::Axis;
using workloads::MemoryClass;
using workloads::StepBuilder;

constexpr Cycle kReceived = 8;

models::HardwareModel machine() { return plain_hardware(64, Rational(16), 1, 2); }

/// A packet occupies the SRAM port for 4 cycles.
models::HardwareModel narrow_sram() {
  models::HardwareModel hardware = machine();
  hardware.sram_bytes_per_cycle = Rational(16);
  return hardware;
}

struct Outcome {
  sim::Measurements measurements;
  std::map<std::uint64_t, sim::MessageRecord> messages;  ///< by channel
  const sim::TileMeasurement& tile(std::size_t index) const { return measurements.tiles.at(index); }
};

Outcome run(const topology::Shape& shape, const models::HardwareModel& hardware, HandTrace& hand) {
  Outcome result;
  const workloads::Trace trace = hand.take();
  sim::SimulationOptions options;
  options.on_message = [&](const sim::MessageRecord& record) {
    result.messages[record.key & 0xffffff] = record;
  };
  result.measurements = run_trace(topology::Mesh({shape, {}, {}}), hardware, trace, options);
  return result;
}

/// Tile 0 sends `bytes` to tile 1 after `delay` cycles.
void send_after(HandTrace& hand, Cycle delay, Bytes bytes) {
  hand.step(0, [&](StepBuilder& b) { b.send(Axis::tp, 1, 0, bytes, {b.vector(vector_work(delay), {})}); });
}

TEST(SramPort, NicTrafficDelaysAnOperationAtTheReceiver) {
  HandTrace hand(2);
  send_after(hand, 0, 128);  // the NIC has the port in [4, 8) and [8, 12)
  hand.step(1, [](StepBuilder& b) {
    b.receive(Axis::tp, 0, 0, 128, {});
    b.vector(vector_work(20, 320), {});  // 20 cycles of compute, 20 of SRAM: e - 8 >= 20
  });
  const Outcome result = run({1, 2}, narrow_sram(), hand);
  EXPECT_EQ(result.measurements.cycles, 28U);
  EXPECT_EQ(result.tile(1).vector_busy, 28U);
  EXPECT_EQ(result.tile(1).cycles.compute, 20U);
  EXPECT_EQ(result.tile(1).cycles.memory_stall, 8U);
}

TEST(SramPort, NicTrafficDelaysAnOperationAtTheSender) {
  HandTrace hand(2);
  hand.step(0, [](StepBuilder& b) {
    b.send(Axis::tp, 1, 0, 128, {});  // [0, 4) and [4, 8)
    b.vector(vector_work(5, 320), {});
  });
  hand.step(1, [](StepBuilder& b) { b.receive(Axis::tp, 0, 0, 128, {}); });
  const Outcome result = run({1, 2}, narrow_sram(), hand);
  EXPECT_EQ(result.tile(0).vector_busy, 28U);
  EXPECT_EQ(result.tile(0).cycles.memory_stall, 23U);
}

TEST(SramPort, LongComputationHidesIt) {
  HandTrace hand(2);
  send_after(hand, 0, 128);
  hand.step(1, [](StepBuilder& b) {
    b.receive(Axis::tp, 0, 0, 128, {});
    b.vector(vector_work(30, 320), {});
  });
  const Outcome result = run({1, 2}, narrow_sram(), hand);
  EXPECT_EQ(result.tile(1).vector_busy, 30U);
  EXPECT_EQ(result.tile(1).cycles.memory_stall, 0U);
}

TEST(SramPort, OnlyCyclesSinceTheStartCount) {
  HandTrace hand(2);
  send_after(hand, 0, 128);
  hand.step(1, [](StepBuilder& b) {
    b.receive(Axis::tp, 0, 0, 128, {});
    b.vector(vector_work(20, 320),
             {b.vector(vector_work(6), {})});  // starts at 6, when [6, 12) are left: e - 6 - 6 >= 20
  });
  const Outcome result = run({1, 2}, narrow_sram(), hand);
  EXPECT_EQ(result.measurements.cycles, 32U);
  EXPECT_EQ(result.tile(1).cycles.compute, 26U);
}

TEST(SramPort, TrafficThatComesDuringTheDelayAddsToIt) {
  HandTrace hand(2);
  hand.step(0, [](StepBuilder& b) {
    b.send(Axis::tp, 1, 0, 64, {});                               // [4, 8): the operation would end at 24
    b.send(Axis::tp, 1, 1, 64, {b.vector(vector_work(18), {})});  // [22, 26)
  });
  hand.step(1, [](StepBuilder& b) {
    b.receive(Axis::tp, 0, 0, 64, {});
    b.receive(Axis::tp, 0, 1, 64, {});
    b.vector(vector_work(20, 320), {});
  });
  EXPECT_EQ(run({1, 2}, narrow_sram(), hand).tile(1).vector_busy, 28U);
}

models::HardwareModel with_dram(const topology::Shape& die, const Rational& bytes_per_cycle) {
  models::HardwareModel hardware = machine();
  hardware.dram_capacity = Bytes{1} << 40;
  hardware.dram_bytes_per_cycle = bytes_per_cycle;
  hardware.dram_die = die;
  return hardware;
}

TEST(DramChannel, RequestsOfOneCycleGoByTile) {
  HandTrace hand(2);
  hand.set_quota(MemoryClass::optimizer, 0);
  for (const TileId tile : {TileId{1}, TileId{0}}) {
    hand.step(tile, [](StepBuilder& b) { b.vector(vector_work(1, 0, 105), {}); });  // 10.5 cycles each
  }
  const Outcome result = run({2, 1}, with_dram({2, 1}, Rational(10)), hand);
  EXPECT_EQ(result.tile(0).vector_busy, 11U);
  EXPECT_EQ(result.tile(1).vector_busy, 21U);  // the remainder carries over
  EXPECT_EQ(result.tile(0).cycles.memory_stall, 10U);
  EXPECT_EQ(result.tile(1).cycles.memory_stall, 20U);
}

TEST(DramChannel, FirstComeFirstServed) {
  HandTrace hand(2);
  hand.set_quota(MemoryClass::optimizer, 0);
  hand.step(0, [](StepBuilder& b) { b.vector(vector_work(1, 0, 100), {b.vector(vector_work(3), {})}); });
  hand.step(1, [](StepBuilder& b) { b.vector(vector_work(1, 0, 100), {}); });
  const Outcome result = run({2, 1}, with_dram({2, 1}, Rational(10)), hand);
  EXPECT_EQ(result.tile(1).vector_busy, 10U);
  EXPECT_EQ(result.tile(0).vector_busy, 20U);
}

TEST(DramChannel, DiesAreIndependentAndEnginesOfATileShareOne) {
  HandTrace hand(2);
  hand.set_quota(MemoryClass::optimizer, 0);
  hand.step(0, [](StepBuilder& b) {
    b.vector(vector_work(1, 0, 100), {});
    workloads::Work product = vector_work(0, 0, 100);
    product.gemm = {1, 1, 1, 1};
    b.matrix(product, {});
  });
  hand.step(1, [](StepBuilder& b) { b.vector(vector_work(1, 0, 100), {}); });
  const Outcome result = run({1, 2}, with_dram({1, 1}, Rational(10)), hand);
  EXPECT_EQ(result.tile(0).matrix_busy, 10U);  // before the vector engine
  EXPECT_EQ(result.tile(0).vector_busy, 20U);
  EXPECT_EQ(result.tile(1).vector_busy, 10U);
}

/// A class that holds 1000 bytes, 375 of them in SRAM: of 105 bytes 65.625 pass through DRAM, rounded up, at 10 bytes a
/// cycle. With 500 more the share is 3/4.
TEST(DramChannel, CarriesWhatOfAClassIsBeyondItsQuota) {
  HandTrace hand(1);
  hand.set_quota(MemoryClass::optimizer, 375);
  hand.set_resident(0, MemoryClass::optimizer, 1000);
  hand.step(0, [](StepBuilder& b) {
    const auto held = b.allocate(MemoryClass::optimizer, 500, {b.vector(vector_work(1, 0, 105), {})});
    b.free(MemoryClass::optimizer, 500, {b.vector(vector_work(1, 0, 100), {held})});
  });
  const Outcome result = run({1, 1}, with_dram({1, 1}, Rational(10)), hand);
  EXPECT_EQ(result.tile(0).vector_busy, 7 + 8U);  // 6.6 cycles, and 7.5 from the next whole one on
  EXPECT_EQ(result.tile(0).peak_sram_bytes, 375U);
  EXPECT_EQ(result.tile(0).peak_dram_bytes, 1125U);
  EXPECT_EQ(result.tile(0).final_bytes, 1000U);
}

TEST(DramChannel, IsIdleAsLongAsTheQuotaIsNotUsedUp) {
  HandTrace hand(1);
  hand.set_quota(MemoryClass::optimizer, 1000);
  hand.set_resident(0, MemoryClass::optimizer, 1000);
  hand.step(0, [](StepBuilder& b) { b.vector(vector_work(1, 0, 100000), {}); });
  EXPECT_EQ(run({1, 1}, with_dram({1, 1}, Rational(10)), hand).tile(0).vector_busy, 1U);
}

TEST(Engines, OperationsIssueInProgramOrder) {
  HandTrace hand(2);
  send_after(hand, 0, 64);
  hand.step(1, [](StepBuilder& b) {
    b.vector(vector_work(10), {b.receive(Axis::tp, 0, 0, 64, {})});
    b.vector(vector_work(100), {});  // ready at 0, but behind
    b.matrix({.gemm = {1, 10, 1, 1}}, {});
  });
  const Outcome result = run({1, 2}, machine(), hand);
  EXPECT_EQ(result.measurements.cycles, kReceived + 110);
  EXPECT_GT(result.tile(1).matrix_busy, 0U);
  // The matrix engine runs meanwhile; the wait for the message is exposed only after it.
  EXPECT_EQ(result.tile(1).cycles.exposed_total(),
            kReceived - std::min(kReceived, result.tile(1).matrix_busy));
}

/// Channel 9 is posted when the reduction is over.
TEST(Engines, ReductionGoesBeforeYoungerVectorWork) {
  HandTrace hand(2);
  send_after(hand, 0, 64);
  hand.step(1, [](StepBuilder& b) {
    b.vector(vector_work(20), {});
    b.send(Axis::tp, 0, 9, 64, {b.reduce(Axis::tp, vector_work(5), {b.receive(Axis::tp, 0, 0, 64, {})})});
    b.vector(vector_work(100), {});
  });
  hand.step(0, [](StepBuilder& b) { b.receive(Axis::tp, 1, 9, 64, {}); });
  const Outcome result = run({1, 2}, machine(), hand);
  EXPECT_EQ(result.messages.at(9).posted, 25U);
  EXPECT_EQ(result.measurements.cycles, 125U);
}

TEST(Engines, ReductionWaitsForOlderVectorWorkThatIsReady) {
  HandTrace hand(2);
  send_after(hand, 0, 64);
  hand.step(1, [](StepBuilder& b) {
    b.vector(vector_work(20), {});
    b.vector(vector_work(100), {});
    b.send(Axis::tp, 0, 9, 64, {b.reduce(Axis::tp, vector_work(5), {b.receive(Axis::tp, 0, 0, 64, {})})});
  });
  hand.step(0, [](StepBuilder& b) { b.receive(Axis::tp, 1, 9, 64, {}); });
  EXPECT_EQ(run({1, 2}, machine(), hand).messages.at(9).posted, 125U);
}

TEST(Engines, ReductionPassesOlderVectorWorkThatIsNotReady) {
  HandTrace hand(2);
  send_after(hand, 0, 64);
  hand.step(1, [](StepBuilder& b) {
    b.vector(vector_work(7), {b.matrix({.gemm = {1, 500, 1, 1}}, {})});
    b.send(Axis::tp, 0, 9, 64, {b.reduce(Axis::tp, vector_work(5), {b.receive(Axis::tp, 0, 0, 64, {})})});
  });
  hand.step(0, [](StepBuilder& b) { b.receive(Axis::tp, 1, 9, 64, {}); });
  EXPECT_EQ(run({1, 2}, machine(), hand).messages.at(9).posted, kReceived + 5);
}

TEST(Engines, OperationsOfNoCyclesChainInOne) {
  HandTrace hand(2);
  hand.step(0, [](StepBuilder& b) {
    workloads::OpId last = b.vector(vector_work(3), {});
    for (int i = 0; i < 40; ++i) {
      last = b.allocate(MemoryClass::activations, 10, {b.vector(vector_work(0), {b.matrix({}, {last})})});
      last = b.free(MemoryClass::activations, 10, {last});
    }
    b.send(Axis::tp, 1, 9, 64, {last});
  });
  hand.step(1, [](StepBuilder& b) { b.receive(Axis::tp, 0, 9, 64, {}); });
  const Outcome result = run({1, 2}, machine(), hand);
  EXPECT_EQ(result.messages.at(9).posted, 3U);
  EXPECT_EQ(result.messages.at(9).injected, 3U);
  EXPECT_EQ(result.tile(0).peak_bytes, 0U);  // no cycle ended with anything held
}

TEST(Messages, SendIsCompleteWhenItsTailHasLeft) {
  HandTrace hand(2);
  hand.step(0, [](StepBuilder& b) { b.vector(vector_work(10), {b.send(Axis::tp, 1, 0, 200, {})}); });
  hand.step(1, [](StepBuilder& b) { b.receive(Axis::tp, 0, 0, 200, {}); });
  EXPECT_EQ(run({1, 2}, machine(), hand).measurements.cycles, 13 + 10U);  // ceil(200 / 16)
}

TEST(Messages, EarlyOneLiesInCommunicationBuffers) {
  HandTrace hand(2);
  send_after(hand, 0, 500);
  hand.step(1, [](StepBuilder& b) { b.receive(Axis::tp, 0, 0, 500, {b.vector(vector_work(100), {})}); });
  const Outcome result = run({1, 2}, machine(), hand);
  const auto buffers = static_cast<std::size_t>(MemoryClass::communication_buffers);
  EXPECT_EQ(result.tile(1).peak_by_class[buffers], 500U);
  EXPECT_EQ(result.tile(1).final_bytes, 0U);
  EXPECT_EQ(result.tile(0).peak_by_class[buffers], 0U);
  EXPECT_EQ(result.measurements.cycles, 100U);  // and is there at once when it is asked for
}

}  // namespace
}  // namespace wafersim::test
