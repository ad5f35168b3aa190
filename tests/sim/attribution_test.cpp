#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/hand_trace.h"
#include "tests/sim/machine.h"

/// Where the cycles of a tile go. R = 1, L = 2, packets of 64 B at 16 B a cycle: a packet posted at t is
/// received by a neighbour at t + 8.
namespace wafersim::test {
namespace {

using workloads::Axis;
using workloads::StepBuilder;

constexpr Cycle kMessage = 8;

/// Tiles on a line; stages by tile.
sim::Measurements run(HandTrace& hand, const std::vector<std::int32_t>& stages) {
  for (TileId tile = 0; tile < stages.size(); ++tile) hand.set_stage(tile, stages[tile]);
  hand.trace().pipeline_stages = 1 + *std::max_element(stages.begin(), stages.end());
  const workloads::Trace trace = hand.take();
  const topology::Mesh mesh({{1, static_cast<int>(stages.size())}, {}, {}});
  return run_trace(mesh, plain_hardware(64, Rational(16), 1, 2), trace);
}

Cycle exposed(const sim::TileMeasurement& tile, Axis axis) {
  return tile.cycles.exposed[static_cast<std::size_t>(axis)];
}

void compute_and_send(HandTrace& hand, TileId tile, Cycle cycles, Axis axis, TileId to) {
  hand.step(tile, [&](StepBuilder& b) { b.send(axis, to, 0, 64, {b.vector(vector_work(cycles), {})}); });
}

void wait_and_compute(HandTrace& hand, TileId tile, Axis axis, TileId from, Cycle cycles) {
  hand.step(tile, [&](StepBuilder& b) { b.vector(vector_work(cycles), {b.receive(axis, from, 0, 64, {})}); });
}

TEST(Attribution, AwaitedMessageIsExposedCommunicationOfItsAxis) {
  HandTrace hand(2);
  compute_and_send(hand, 0, 0, Axis::tp, 1);
  wait_and_compute(hand, 1, Axis::tp, 0, 10);
  const sim::Measurements result = run(hand, {0, 0});
  EXPECT_EQ(exposed(result.tiles[1], Axis::tp), kMessage);
  EXPECT_EQ(result.tiles[1].cycles.compute, 10U);
  EXPECT_EQ(result.tiles[0].cycles.idle, kMessage + 10);
}

TEST(Attribution, WaitingForAComputingPeerIsIdle) {
  HandTrace hand(2);
  compute_and_send(hand, 0, 50, Axis::dp, 1);
  wait_and_compute(hand, 1, Axis::dp, 0, 10);
  const sim::TileMeasurement tile = run(hand, {0, 0}).tiles[1];
  EXPECT_EQ(tile.cycles.idle, 50U);
  EXPECT_EQ(exposed(tile, Axis::dp), kMessage);
  EXPECT_EQ(tile.cycles.compute, 10U);
}

TEST(Attribution, CommunicationBehindComputationIsHidden) {
  HandTrace hand(2);
  compute_and_send(hand, 0, 0, Axis::tp, 1);
  hand.step(1, [](StepBuilder& b) {
    const auto received = b.receive(Axis::tp, 0, 0, 64, {});
    b.vector(vector_work(10), {received, b.vector(vector_work(100), {})});
  });
  const sim::TileMeasurement tile = run(hand, {0, 0}).tiles[1];
  EXPECT_EQ(tile.cycles.exposed_total(), 0U);
  EXPECT_EQ(tile.cycles.compute, 110U);
  EXPECT_EQ(tile.communicating, kMessage);
}

TEST(Attribution, OnlyTheUncoveredPartIsExposed) {
  HandTrace hand(2);
  compute_and_send(hand, 0, 0, Axis::tp, 1);
  hand.step(1, [](StepBuilder& b) {
    const auto received = b.receive(Axis::tp, 0, 0, 64, {});
    b.vector(vector_work(10), {received, b.vector(vector_work(5), {})});
  });
  EXPECT_EQ(exposed(run(hand, {0, 0}).tiles[1], Axis::tp), kMessage - 5);
}

TEST(Attribution, WaitingForAnotherStageIsBubble) {
  HandTrace hand(2);
  compute_and_send(hand, 0, 50, Axis::pp, 1);
  wait_and_compute(hand, 1, Axis::pp, 0, 30);
  const sim::Measurements result = run(hand, {0, 1});
  EXPECT_EQ(result.tiles[1].cycles.bubble, 50U);
  EXPECT_EQ(exposed(result.tiles[1], Axis::pp), kMessage);
  EXPECT_EQ(result.tiles[1].cycles.compute, 30U);
  EXPECT_EQ(result.tiles[0].cycles.compute, 50U);
  EXPECT_EQ(result.tiles[0].cycles.bubble, kMessage + 30);  // after its last operation
}

/// Tile 2 waits for a message of its own stage, whose sender waits for the stage before.
TEST(Attribution, ChainOfUnpostedMessagesThatEndsInThePipelineIsBubble) {
  HandTrace hand(4);
  compute_and_send(hand, 0, 50, Axis::pp, 1);
  for (const TileId tile : {TileId{1}, TileId{2}}) {
    hand.step(tile, [&](StepBuilder& b) {
      const Axis axis = tile == 1 ? Axis::pp : Axis::tp;
      b.send(Axis::tp, tile + 1, 0, 64, {b.receive(axis, tile - 1, 0, 64, {})});
    });
  }
  wait_and_compute(hand, 3, Axis::tp, 2, 10);
  const sim::Measurements result = run(hand, {0, 1, 1, 1});
  EXPECT_EQ(result.tiles[2].cycles.bubble, 50 + kMessage + (kMessage + 10));  // and at its end
  EXPECT_EQ(exposed(result.tiles[2], Axis::tp), kMessage);
  // The hop from tile 1 to tile 2 is communication for tile 3 as well.
  EXPECT_EQ(result.tiles[3].cycles.bubble, 50 + kMessage);
  EXPECT_EQ(exposed(result.tiles[3], Axis::tp), 2 * kMessage);
  EXPECT_EQ(result.tiles[3].cycles.idle, 0U);
}

TEST(Attribution, HopsOfARelayAreCommunication) {
  HandTrace hand(4);
  compute_and_send(hand, 0, 50, Axis::dp, 1);
  for (const TileId tile : {TileId{1}, TileId{2}}) {
    hand.step(tile, [&](StepBuilder& b) {
      b.send(Axis::dp, tile + 1, 0, 64, {b.receive(Axis::dp, tile - 1, 0, 64, {})});
    });
  }
  wait_and_compute(hand, 3, Axis::dp, 2, 10);
  const sim::TileMeasurement tile = run(hand, {0, 0, 0, 0}).tiles[3];
  EXPECT_EQ(tile.cycles.idle, 50U);
  EXPECT_EQ(exposed(tile, Axis::dp), 3 * kMessage);
  EXPECT_EQ(tile.cycles.bubble, 0U);
}

TEST(Attribution, EachOfSeveralMessagesClosesItsInterval) {
  HandTrace hand(3);
  compute_and_send(hand, 0, 20, Axis::dp, 1);
  compute_and_send(hand, 2, 0, Axis::tp, 1);
  hand.step(1, [](StepBuilder& b) {
    const auto from_peer = b.receive(Axis::tp, 2, 0, 64, {});
    b.vector(vector_work(10), {from_peer, b.receive(Axis::dp, 0, 0, 64, {})});
  });
  const sim::TileMeasurement tile = run(hand, {0, 0, 0}).tiles[1];
  EXPECT_EQ(exposed(tile, Axis::tp), kMessage);
  EXPECT_EQ(tile.cycles.idle, 20 - kMessage);
  EXPECT_EQ(exposed(tile, Axis::dp), kMessage);
}

/// Nobody waits in a background step while a foreground step is open; afterwards somebody does.
TEST(Attribution, BackgroundMessagesCountWhenNothingElseIsOpen) {
  HandTrace hand(2);
  compute_and_send(hand, 0, 0, Axis::dp, 1);
  workloads::Step background;
  background.background = true;
  hand.step(
      1, [](StepBuilder& b) { b.receive(Axis::dp, 0, 0, 64, {}); }, {}, background);
  hand.step(1, [](StepBuilder& b) { b.vector(vector_work(3), {}); });
  const sim::Measurements result = run(hand, {0, 0});
  EXPECT_EQ(result.cycles, kMessage);
  EXPECT_EQ(result.tiles[1].cycles.compute, 3U);
  EXPECT_EQ(exposed(result.tiles[1], Axis::dp), kMessage - 3);
}

}  // namespace
}  // namespace wafersim::test
