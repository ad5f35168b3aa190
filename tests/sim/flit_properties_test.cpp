// What must hold of a flit network whatever its routers and its traffic. run_traffic() itself checks that what went in
// came out and that every credit and every virtual channel is back in the end.
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "tests/sim/flit_rig.h"
#include "tests/sim/pick.h"

namespace wafersim::test {
namespace {

models::HardwareModel draw_hardware(RandomStream& random) {
  models::PipelineStages stages{static_cast<int>(random.below(3)), 1, 1, static_cast<int>(random.below(3)),
                                static_cast<int>(random.below(3)), random.below(2) == 0};
  if (!stages.speculative) {
    stages.vc_allocation = 1 + static_cast<int>(random.below(3));
    stages.switch_allocation = 1 + static_cast<int>(random.below(3));
  }
  models::HardwareModel hardware = booksim_hardware(stages, pick(random, std::vector{1, 2, 3, 4, 8, 16}),
                                                    1 + static_cast<unsigned>(random.below(9)));
  hardware.flit.allocator = pick(random, std::vector{models::Allocator::islip, models::Allocator::round_robin});
  hardware.nic_ports = pick(random, std::vector{models::NicPorts::single, models::NicPorts::per_direction});
  hardware.link_cycles = 1 + random.below(4);
  hardware.credit_cycles = 1 + random.below(4);
  hardware.injection_cycles = random.below(3);
  hardware.ejection_cycles = random.below(3);
  hardware.link_bytes_per_cycle = pick(random, std::vector{Rational(4), Rational(4), Rational(2), Rational(3), Rational(7)});
  return hardware;
}

std::vector<workloads::TracedPacket> draw_packets(RandomStream& random, const topology::Mesh& mesh) {
  std::vector<workloads::TracedPacket> packets;
  const std::uint64_t gap = pick(random, std::vector<std::uint64_t>{1, 2, 10});
  const auto longest = pick(random, std::vector<std::uint64_t>{1, 5, 30});
  Cycle now = 0;
  for (int i = 0; i < 600; ++i) {
    now += random.below(gap);
    TileId source = kNoTile;
    TileId destination = kNoTile;
    do {
      source = static_cast<TileId>(random.below(mesh.tile_count()));
      destination = static_cast<TileId>(random.below(mesh.tile_count()));
    } while (!mesh.alive(source) || !mesh.alive(destination));
    packets.push_back({now, source, destination, 4 * (1 + random.below(longest))});
  }
  return packets;
}

topology::MeshSpec draw_mesh(RandomStream& random) {
  topology::MeshSpec spec;
  spec.shape = {2 + static_cast<int>(random.below(4)), 2 + static_cast<int>(random.below(5))};
  // A dead tile in the middle, where the rest stays connected.
  if (random.below(3) == 0 && spec.shape.rows >= 3 && spec.shape.cols >= 3) spec.dead_tiles = {{1, 1}};
  return spec;
}

TEST(FlitProperties, EveryPacketArrivesOnceInBoundedTimeInAnyOrderOfVisits) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    RandomStream random(seed, "flit_properties");
    const topology::Mesh mesh(draw_mesh(random));
    const models::HardwareModel hardware = draw_hardware(random);
    const auto packets = draw_packets(random, mesh);
    const FlitRun run = run_packets(mesh, hardware, packets, "table");
    ASSERT_TRUE(run.measurement.drained) << "seed " << seed;
    ASSERT_EQ(run.delivered.size(), packets.size()) << "seed " << seed;
    // No flit is slower than all flits one after the other, each alone in the network.
    Cycle alone = 0;
    for (const auto& packet : packets) {
      const auto hops = static_cast<Cycle>(mesh.rows() * mesh.cols());
      const Cycle flit = hardware.router_cycles + hardware.link_cycles + hardware.credit_cycles + 8;
      alone += hops * flit + packet.bytes / 4 * (flit + 4);
    }
    std::multimap<std::pair<TileId, TileId>, Bytes> sent;
    for (const auto& packet : packets) sent.insert({{packet.source, packet.destination}, packet.bytes});
    for (const sim::DeliveredPacket& packet : run.delivered) {
      const auto [first, last] = sent.equal_range({packet.source, packet.destination});
      const auto same = std::find_if(first, last, [&](const auto& item) { return item.second == 4 * packet.flits; });
      ASSERT_NE(same, last) << "seed " << seed;
      sent.erase(same);
      ASSERT_LE(packet.arrived, packets.back().cycle + alone) << "seed " << seed;
      const auto hops = static_cast<Cycle>(mesh.distance(packet.source, packet.destination));
      const Cycle least = 1 + hardware.injection_cycles + (hops + 1) * hardware.router_cycles + hops * hardware.link_cycles +
                          hardware.ejection_cycles + packet.flits - 1;
      ASSERT_GE(packet.arrived - packet.created, least) << "seed " << seed;
    }
    if (seed % 3 != 0) continue;
    const FlitRun shuffled = run_packets(mesh, hardware, packets, "table", true);
    for (std::size_t i = 0; i < packets.size(); ++i) {
      ASSERT_EQ(run.delivered[i].arrived, shuffled.delivered[i].arrived) << "seed " << seed << ", shuffled";
    }
  }
}

/// With one virtual channel nothing overtakes within a flow.
TEST(FlitProperties, PacketsOfAFlowStayInOrderInOneVirtualChannel) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    RandomStream random(seed, "flit_order");
    const topology::Mesh mesh({{4, 4}, {}, {}});
    models::HardwareModel hardware = draw_hardware(random);
    hardware.virtual_channels = 1;
    FlitRun run = run_packets(mesh, hardware, draw_packets(random, mesh));
    std::map<std::pair<TileId, TileId>, Cycle> last;
    for (const sim::DeliveredPacket& packet : run.delivered) {
      Cycle& before = last[{packet.source, packet.destination}];
      EXPECT_GT(packet.arrived, before) << "seed " << seed;
      before = packet.arrived;
    }
  }
}

TEST(FlitProperties, OfferedIsAcceptedBelowSaturationWhateverTheProcess) {
  const topology::Mesh mesh({{6, 5}, {}, {}});
  for (const models::NicPorts ports : {models::NicPorts::single, models::NicPorts::per_direction}) {
    models::HardwareModel hardware = booksim_hardware(models::stages_of(models::PipelinePreset::p4), 4, 8);
    hardware.nic_ports = ports;
    workloads::TrafficSpec spec;
    spec.load = Rational(15, 100);
    spec.packet_flits.flits = {1, 1, 5};
    spec.measurement = Duration::of_cycles(20'000);
    for (const workloads::InjectionProcess process :
         {workloads::InjectionProcess::bernoulli, workloads::InjectionProcess::on_off}) {
      spec.injection = process;
      const MeanLoad load = run_load(mesh, hardware, spec, 2);
      EXPECT_TRUE(load.stable);
      EXPECT_NEAR(load.offered, 0.15, 0.15 * 0.03);
      EXPECT_NEAR(load.accepted, load.offered, 0.15 * 0.01);
    }
  }
}

TEST(FlitProperties, EqualSeedsGiveEqualRuns) {
  const topology::Mesh mesh({{4, 4}, {}, {}});
  const models::HardwareModel hardware = booksim_hardware(models::stages_of(models::PipelinePreset::p3), 2, 4);
  workloads::TrafficSpec spec;
  spec.load = Rational(3, 10);
  const MeanLoad one = run_load(mesh, hardware, spec, 2);
  const MeanLoad other = run_load(mesh, hardware, spec, 2);
  EXPECT_EQ(one.latency, other.latency);
  EXPECT_EQ(one.accepted, other.accepted);
}

}  // namespace
}  // namespace wafersim::test
