#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "models/cost.h"
#include "tests/sim/dump.h"
#include "tests/sim/isolated.h"
#include "tests/sim/multicast_rig.h"
#include "topology/multicast_tree.h"

/// Messages that routers copy on their way to several tiles.
namespace wafersim::test {
namespace {

int turns_between(const topology::Mesh& mesh, TileId a, TileId b) {
  return mesh.coord(a).x != mesh.coord(b).x && mesh.coord(a).y != mesh.coord(b).y ? 1 : 0;
}

std::vector<models::HardwareModel> machines() {
  std::vector<models::HardwareModel> list;
  list.push_back(plain_hardware(64, Rational(16), 2, 3));
  list.push_back(plain_hardware(64, Rational(16), 2, 3));
  list.back().nic_ports = models::NicPorts::single;
  list.push_back(plain_hardware(100, Rational(53687, 1000), 1, 5));
  list.push_back(plain_hardware(4, Rational(4), 0, 1));
  list.back().nic_ports = models::NicPorts::single;
  list.back().injection_cycles = list.back().ejection_cycles = 2;
  list.back().vc_buffer_bytes = 16;
  list.push_back(plain_hardware(64, Rational(16), 1, 2));
  list.back().turn_cycles = 20;
  list.back().vc_buffer_bytes = 640;
  return list;
}

TEST(RouterMulticast, ReachesEachReceiverAsIfItWereTheOnlyOne) {
  const topology::Mesh mesh({{5, 6}, {}, {}});
  const std::vector<TileId> receivers = {0, 4, 9, 10, 13, 15, 16, 20, 26, 29};
  for (const models::HardwareModel& hardware : machines()) {
    for (const Bytes bytes : {Bytes{1}, hardware.packet_bytes, 5 * hardware.packet_bytes + 1}) {
      // A packet waits for the slowest copy of the one ahead, which is one that turns.
      if (hardware.turn_cycles != 0 && bytes > hardware.packet_bytes) continue;
      isolated_number([&] {
        const MulticastOutcome outcome = run_multicasts({{14, receivers, bytes, 7}}, mesh, hardware);
        for (const TileId receiver : receivers) {
          const sim::MessageRecord& record = outcome.messages.at({0, receiver});
          EXPECT_EQ(record.posted, 7U);
          EXPECT_EQ(record.injected, 7U);
          EXPECT_EQ(record.received - record.posted, models::message_latency(hardware, bytes, mesh.distance(14, receiver),
                                                                             turns_between(mesh, 14, receiver)))
              << mesh.name(receiver) << ", " << bytes << " B";
        }
        EXPECT_EQ(outcome.messages.size(), receivers.size());
        return ::testing::Test::HasFailure() ? throw std::runtime_error("see above") : 0U;
      });
    }
  }
}

TEST(RouterMulticast, EveryLinkOfTheTreeCarriesTheBytesOnce) {
  const topology::Mesh mesh({{4, 4}, {}, {}});
  const auto routing = topology::make_routing("xy", mesh);
  const std::vector<TileId> receivers = {0, 3, 7, 9, 12, 15};
  const topology::MulticastTree tree(*routing, mesh, 5, receivers);
  const MulticastOutcome outcome = run_multicasts({{5, receivers, 300, 0}}, mesh, plain_hardware(64, Rational(16), 1, 1));
  Bytes total = 0;
  for (const sim::LinkMeasurement& link : outcome.measurements.links) {
    EXPECT_TRUE(link.bytes == 0 || link.bytes == 300) << mesh.link_name(link.link) << " carries " << link.bytes;
    EXPECT_TRUE(link.packets == 0 || link.packets == 5);
    total += link.bytes;
  }
  EXPECT_EQ(total, 300 * tree.link_count());
  for (const sim::TileMeasurement& tile : outcome.measurements.tiles) {
    EXPECT_EQ(tile.bytes_sent, tile.tile == 5 ? 300U : 0U);
    EXPECT_EQ(tile.bytes_copied, tile.tile == 5 ? 300U * 5 : 0U);
    const bool receives = std::find(receivers.begin(), receivers.end(), tile.tile) != receivers.end();
    EXPECT_EQ(tile.bytes_received, receives ? 300U : 0U);
  }
}

/// A copy that finds its way taken holds up neither the others nor, once it has left, the buffer.
TEST(RouterMulticast, BranchesLeaveOneByOne) {
  const topology::Mesh mesh({{3, 3}, {}, {}});
  models::HardwareModel hardware = plain_hardware(64, Rational(1), 1, 1);
  hardware.nic_ports = models::NicPorts::single;
  // Tile 4 keeps its southern link busy for 64 cycles from cycle 1 on; the multicast comes from the west in between.
  const MulticastOutcome outcome = run_multicasts({{4, {7}, 64, 0}, {3, {5, 7}, 64, 10}}, mesh, hardware);
  EXPECT_EQ(outcome.messages.at({1, 5}).received - 10, models::message_latency(hardware, 64, 2));
  // Granted when that packet has left: then a link, a router, and all of it.
  EXPECT_EQ(outcome.messages.at({1, 7}).received, 1U + 64 + 1 + 1 + 64);
  EXPECT_GT(outcome.messages.at({1, 7}).queued, 50U);
  EXPECT_EQ(outcome.messages.at({1, 5}).queued, 0U);
}

/// Under contention, with buffers of one packet: all arrives (the run itself checks that bytes are conserved), no earlier than
/// on idle links, and the order of visits does not matter.
TEST(RouterMulticast, RandomTreesArriveWholeWhateverTheOrderOfVisits) {
  RandomStream random(11, "multicasts");
  for (int round = 0; round < 16; ++round) {
    const topology::Mesh mesh({{static_cast<int>(2 + random.below(4)), static_cast<int>(2 + random.below(4))}, {}, {}});
    models::HardwareModel hardware = plain_hardware(48, round % 2 == 0 ? Rational(16) : Rational(7, 3), random.below(3), 1 + random.below(3));
    hardware.nic_ports = round % 3 == 0 ? models::NicPorts::single : models::NicPorts::per_direction;
    hardware.vc_buffer_bytes = 48 * (1 + random.below(2));
    hardware.virtual_channels = 1 + static_cast<int>(random.below(2));
    hardware.turn_cycles = round % 4 == 0 ? 9 : 0;
    const std::vector<Multicast> multicasts = random_multicasts(random, mesh, hardware.packet_bytes, 1);
    const std::string routing = round % 2 == 0 ? "xy" : "yx";
    const auto simulate = [&](bool shuffle) {
      return isolated_text([&] {
        const MulticastOutcome outcome = run_multicasts(multicasts, mesh, hardware, shuffle, routing);
        for (std::uint32_t i = 0; i < multicasts.size(); ++i) {
          for (const TileId receiver : multicasts[i].receivers) {
            const sim::MessageRecord& record = outcome.messages.at({i, receiver});
            const int hops = mesh.distance(multicasts[i].source, receiver);
            if (record.received - record.posted < models::message_latency(hardware, multicasts[i].bytes, hops)) {
              throw std::runtime_error("a message was faster than on idle links");
            }
          }
        }
        return dump(outcome.measurements);
      });
    };
    const std::string straight = simulate(false);
    EXPECT_EQ(straight, simulate(true)) << "round " << round;
  }
}

TEST(RouterMulticast, OnTheIdealNetworkIsThereAtOnce) {
  const topology::Mesh mesh({{3, 3}, {}, {}});
  models::HardwareModel hardware = plain_hardware(64, Rational(1), 1, 1);
  hardware.fidelity = models::Fidelity::ideal;
  const MulticastOutcome outcome = run_multicasts({{4, {0, 1, 8}, 640, 3}}, mesh, hardware);
  ASSERT_EQ(outcome.messages.size(), 3U);
  for (const auto& [where, record] : outcome.messages) EXPECT_EQ(record.received, 3U);
}

}  // namespace
}  // namespace wafersim::test
