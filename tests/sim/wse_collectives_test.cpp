// Collectives on a line of a WSE against wse_line_collectives.csv: a sample of its rows; wse_study.cpp has all of them.
#include <gtest/gtest.h>

#include <cmath>

#include "models/cost.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/wse_rows.h"

namespace wafersim::test {
namespace {

using workloads::StreamedAlgorithm;
using workloads::StreamedKind;
using workloads::StreamedRoot;
using workloads::StreamRelay;

bool in_sample(const WseRow& row) {
  return static_cast<Bytes>(row.tiles) * row.wavelets <= 2048 || (row.tiles == 512 && row.wavelets == 16);
}

/// The ring's formula with shares of whole wavelets.
Cycle ring_of_whole_wavelets(const WseRow& row) {
  const auto tiles = static_cast<Cycle>(row.tiles);
  const Cycle share = ceil_div<Cycle>(row.wavelets, tiles);
  return 2 * (tiles - 1) * share + 4 * tiles - 6 + 5 * 2 * (tiles - 1);
}

TEST(WseCollectives, ChainsAndBroadcastsAreTheFormulaToTheCycle) {
  for (const WseRow& row : wse_rows()) {
    if (!in_sample(row)) continue;
    EXPECT_EQ(wse_collective(row, StreamedKind::reduce, StreamedAlgorithm::chain).cycles, row.chain)
        << row.tiles << " tiles, " << row.wavelets << " wavelets";
    EXPECT_EQ(wse_collective(row, StreamedKind::broadcast, StreamedAlgorithm::router_multicast).cycles, row.broadcast)
        << row.tiles << " tiles, " << row.wavelets << " wavelets";
  }
}

TEST(WseCollectives, RingsAreTheFormulaWithSharesOfWholeWavelets) {
  for (const WseRow& row : wse_rows()) {
    if (row.tiles > 32 || row.wavelets > 1024) continue;
    const Cycle cycles = wse_collective(row, StreamedKind::all_reduce, StreamedAlgorithm::ring).cycles;
    EXPECT_EQ(cycles, ring_of_whole_wavelets(row)) << row.tiles << " tiles, " << row.wavelets << " wavelets";
    if (row.wavelets % static_cast<Bytes>(row.tiles) == 0) {
      EXPECT_EQ(cycles, row.ring) << row.tiles << " tiles, " << row.wavelets << " wavelets";
    }
  }
}

/// The model that picks the groups of two_phase gives the file's columns.
TEST(WseCollectives, TheCostModelGivesTheColumns) {
  for (const WseRow& row : wse_rows()) {
    const topology::Mesh mesh({{1, row.tiles}, {}, {}});
    const models::HardwareModel hardware = wse_line(row.tiles);
    const auto model = [&](StreamedKind kind, StreamedAlgorithm algorithm) {
      workloads::CollectiveSpec spec;
      spec.kind = kind;
      spec.algorithm = algorithm;
      spec.bytes = {4 * row.wavelets};
      const workloads::StreamedCollective collective(spec, hardware, mesh);
      const int group = algorithm == StreamedAlgorithm::two_phase ? row.group : 0;
      EXPECT_EQ(collective.row_group(), group) << row.tiles << " tiles, " << row.wavelets << " wavelets";
      return static_cast<double>(collective.model_cycles());
    };
    // Halves are rounded up here and to even numbers there.
    EXPECT_NEAR(model(StreamedKind::reduce, StreamedAlgorithm::star), static_cast<double>(row.star), 1);
    EXPECT_NEAR(model(StreamedKind::reduce, StreamedAlgorithm::chain), static_cast<double>(row.chain), 1);
    EXPECT_NEAR(model(StreamedKind::reduce, StreamedAlgorithm::tree), static_cast<double>(row.tree), 1);
    EXPECT_NEAR(model(StreamedKind::reduce, StreamedAlgorithm::two_phase), static_cast<double>(row.two_phase), 1);
    EXPECT_NEAR(model(StreamedKind::broadcast, StreamedAlgorithm::router_multicast), static_cast<double>(row.broadcast), 1);
    EXPECT_NEAR(model(StreamedKind::all_reduce, StreamedAlgorithm::ring), static_cast<double>(row.ring), 1);
  }
}

/// The root multicasts the sum as it comes in: an all-reduce of a chain ends when the last tile has the last wavelet. With one
/// ramp a tile between them takes both in, one wavelet a cycle.
TEST(WseCollectives, AnAllReduceOfAChainOverlapsReductionAndBroadcast) {
  workloads::CollectiveSpec spec;
  spec.kind = StreamedKind::all_reduce;
  spec.bytes = {4 * 64};
  const topology::Mesh mesh({{1, 16}, {}, {}});
  models::HardwareModel hardware = wse_line(16);
  const auto cycles = [&] {
    const workloads::StreamedCollective collective(spec, hardware, mesh);
    return isolated_number([&] { return run_trace(mesh, hardware, collective.trace()).cycles; });
  };
  const Cycle overlapped = 6U * 15 + 15 + 5 + 64;
  EXPECT_GT(cycles(), overlapped);
  EXPECT_LT(cycles(), 6U * 15 + 64 + 15 + 5 + 64);
  hardware.nic_ports = models::NicPorts::per_direction;
  EXPECT_EQ(cycles(), overlapped);
}

/// Both halves of a line reach its middle at once, and then wait for each other at the one ramp.
TEST(WseCollectives, ARootInTheMiddleHalvesTheWay) {
  for (const int half : {1, 4, 30}) {
    const topology::Mesh mesh({{1, 2 * half + 1}, {}, {}});
    const models::HardwareModel hardware = wse_line(2 * half + 1);
    workloads::CollectiveSpec spec;
    spec.root = StreamedRoot::center;
    const auto cycles = [&] {
      const workloads::StreamedCollective collective(spec, hardware, mesh);
      return isolated_number([&] { return run_trace(mesh, hardware, collective.trace()).cycles; });
    };
    const auto hops = static_cast<Cycle>(half);
    for (const Bytes wavelets : {1, 8}) {
      spec.bytes = {4 * wavelets};
      spec.kind = StreamedKind::reduce;
      spec.algorithm = StreamedAlgorithm::chain;
      EXPECT_EQ(cycles(), 6 * hops + 2 * wavelets) << half;
      spec.kind = StreamedKind::broadcast;
      spec.algorithm = StreamedAlgorithm::router_multicast;
      EXPECT_EQ(cycles(), wavelets + hops + 5) << half;
    }
  }
}

/// All algorithms of all kinds on lines and rectangles, in pieces and whole: sound traces that end, no faster than the way of
/// one element, and the same in any order of visits.
TEST(WseCollectives, AllOfThemEndOnAnyRectangle) {
  for (const topology::Shape shape : {topology::Shape{1, 2}, {5, 1}, {3, 4}}) {
    const topology::Mesh mesh({{5, 4}, {}, {}});
    const models::HardwareModel hardware = wse_line(8);
    for (const StreamedKind kind : {StreamedKind::reduce, StreamedKind::broadcast, StreamedKind::all_reduce}) {
      for (const StreamedAlgorithm algorithm : {StreamedAlgorithm::chain, StreamedAlgorithm::star, StreamedAlgorithm::tree,
                                                StreamedAlgorithm::two_phase, StreamedAlgorithm::k_tree, StreamedAlgorithm::ring,
                                                StreamedAlgorithm::router_multicast}) {
        for (const auto& [relay, root] : {std::pair(StreamRelay::cut_through, StreamedRoot::corner),
                                          std::pair(StreamRelay::store_and_forward, StreamedRoot::corner),
                                          std::pair(StreamRelay::cut_through, StreamedRoot::center)}) {
          workloads::CollectiveSpec spec;
          spec.root = root;
          spec.kind = kind;
          spec.algorithm = algorithm;
          spec.relay = relay;
          spec.shape = shape;
          spec.bytes = {4 * 13};
          spec.task_overhead = Duration::of_cycles(3);
          if (workloads::fault_of(spec, mesh.shape())) continue;
          const workloads::StreamedCollective collective(spec, hardware, mesh);
          const workloads::Trace trace = collective.trace();
          ASSERT_EQ(workloads::check_trace(trace, mesh), std::vector<std::string>{});
          const auto cycles = [&](bool shuffle) {
            return isolated_number([&] {
              sim::SimulationOptions options;
              options.shuffle = shuffle;
              return run_trace(mesh, hardware, trace, options).cycles;
            });
          };
          const Cycle straight = cycles(false);
          if (relay == StreamRelay::cut_through) {
            EXPECT_EQ(straight, cycles(true));
          }
          const bool corner = root == StreamedRoot::corner;
          const int farthest = corner ? shape.rows + shape.cols - 2 : shape.rows / 2 + shape.cols / 2;
          EXPECT_GE(straight, models::message_latency(hardware, 4, farthest));
        }
      }
    }
  }
}

/// N stages that receive all of a stream, begin a task and send it on: the way between two cores takes 7 cycles of a WSE-3.
TEST(WseCollectives, StagesOfARelayAddUp) {
  models::WaferSpec wafer;
  wafer.link = {{Rational(4), true}, Duration::of_cycles(2)};
  wafer.nic.ports = models::NicPorts::single;
  wafer.nic.injection_latency = wafer.nic.ejection_latency = Duration::of_cycles(2);
  models::RouterSpec router;
  router.pipeline = Duration::of_cycles(0);
  models::NetworkSpec network;
  network.packet_bytes = {4};
  for (const int stages : {1, 2, 9, 40}) {
    for (const Bytes wavelets : {Bytes{1}, Bytes{16}, Bytes{300}, Bytes{1024}}) {
      wafer.mesh.shape = {1, stages + 1};
      const models::HardwareModel hardware = models::resolve_hardware(wafer, router, network);
      const topology::Mesh mesh(wafer.mesh);
      workloads::CollectiveSpec spec;
      spec.kind = StreamedKind::broadcast;
      spec.relay = StreamRelay::store_and_forward;
      spec.bytes = {4 * wavelets};
      spec.launch = Duration::of_cycles(16);
      spec.task_overhead = Duration::of_cycles(9);
      const workloads::StreamedCollective collective(spec, hardware, mesh);
      const Cycle cycles = isolated_number([&] { return run_trace(mesh, hardware, collective.trace()).cycles; });
      const auto n = static_cast<Cycle>(stages);
      EXPECT_EQ(cycles, 16 + n * (wavelets + 7 + 9));
      const double published = 1.001 * stages * static_cast<double>(wavelets) + 16.1 * stages + 16.5;
      EXPECT_LE(std::abs(static_cast<double>(cycles) / published - 1), 0.02) << stages << " stages, " << wavelets << " wavelets";
    }
  }
}

}  // namespace
}  // namespace wafersim::test
