// Packets alone in a flit network, against closed forms, to the cycle.
#include <gtest/gtest.h>

#include "tests/sim/flit_rig.h"

namespace wafersim::test {
namespace {

/// Every pair, one packet after the other.
std::vector<workloads::TracedPacket> all_pairs(const topology::Mesh& mesh, Bytes bytes, Cycle apart) {
  std::vector<workloads::TracedPacket> packets;
  for (TileId from = 0; from < mesh.tile_count(); ++from) {
    for (TileId to = 0; to < mesh.tile_count(); ++to) packets.push_back({packets.size() * apart, from, to, bytes});
  }
  return packets;
}

struct Pipeline {
  const char* name;
  Cycle per_hop;
};

class PipelineLaw : public testing::TestWithParam<Pipeline> {};

/// T = c R + 2 + (F - 1).
TEST_P(PipelineLaw, HoldsForEveryPairAndLength) {
  const topology::Mesh mesh({{5, 4}, {}, {}});
  const models::HardwareModel hardware = booksim_hardware(models::stages_of(pipeline_named(GetParam().name)), 4, 8);
  for (const Cycle flits : {1, 2, 7, 20}) {
    const auto packets = all_pairs(mesh, 4 * flits, 100);
    const FlitRun run = run_packets(mesh, hardware, packets);
    ASSERT_EQ(run.delivered.size(), packets.size());
    for (const sim::DeliveredPacket& packet : run.delivered) {
      const auto routers = static_cast<Cycle>(routers_between(mesh, packet.source, packet.destination));
      EXPECT_EQ(packet.arrived - packet.created, GetParam().per_hop * routers + 2 + flits - 1)
          << mesh.name(packet.source) << " to " << mesh.name(packet.destination);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Presets, PipelineLaw,
                         testing::Values(Pipeline{"p3", 3}, Pipeline{"p4", 4}, Pipeline{"p5", 5}),
                         [](const auto& test) { return std::string(test.param.name); });

/// Linj + 1 + (H + 1) R + H L + Leject + (F - 1), and what a turn costs, with any stages, latencies and ports.
TEST(FlitZeroLoad, StagesLatenciesAndPortsAddUp) {
  const topology::Mesh mesh({{3, 4}, {}, {}});
  for (const models::PipelineStages& stages :
       {models::PipelineStages{3, 1, 1, 1, 0, false}, models::PipelineStages{0, 2, 3, 2, 1, false},
        models::PipelineStages{1, 1, 2, 1, 0, false},
        models::PipelineStages{1, 2, 1, 0, 0, false}, models::PipelineStages{0, 1, 1, 0, 2, true}}) {
    for (const models::NicPorts ports : {models::NicPorts::single, models::NicPorts::per_direction}) {
      models::HardwareModel hardware = booksim_hardware(stages, 2, 40);
      hardware.nic_ports = ports;
      hardware.link_cycles = 3;
      hardware.credit_cycles = 2;
      hardware.injection_cycles = 4;
      hardware.ejection_cycles = 5;
      for (const Cycle turn : {0, 1, 2, 20}) {
        hardware.turn_cycles = turn;
        const FlitRun run = run_packets(mesh, hardware, all_pairs(mesh, 4, 200));
        for (const sim::DeliveredPacket& packet : run.delivered) {
          const auto hops = static_cast<Cycle>(mesh.distance(packet.source, packet.destination));
          const topology::Coord from = mesh.coord(packet.source), to = mesh.coord(packet.destination);
          const Cycle turned = from.x != to.x && from.y != to.y ? turn : 0;
          EXPECT_EQ(packet.arrived - packet.created, 4 + 1 + (hops + 1) * hardware.router_cycles + turned + 3 * hops + 5);
        }
      }
    }
  }
}

/// Flits of a packet leave a switch allocation of d cycles every d cycles.
TEST(FlitZeroLoad, ALongSwitchAllocationSpacesTheFlitsOfAPacket) {
  const topology::Mesh mesh({{1, 3}, {}, {}});
  const models::HardwareModel hardware = booksim_hardware({1, 1, 3, 1, 0, false}, 2, 40);
  const FlitRun run = run_packets(mesh, hardware, {{0, 0, 2, 4 * 9}});
  EXPECT_EQ(run.delivered.front().arrived, 1 + 1 + 3 * hardware.router_cycles + 2 + 1 + (9 - 1) * 3);
}

/// Half a flit a cycle on links and terminals: flits follow every other cycle, the head is not slower.
TEST(FlitZeroLoad, SlowLinksDelayTheTailOnly) {
  const topology::Mesh mesh({{4, 4}, {}, {}});
  models::HardwareModel hardware = booksim_hardware(models::stages_of(models::PipelinePreset::p3), 4, 8);
  hardware.link_bytes_per_cycle = hardware.injection_bytes_per_cycle = hardware.ejection_bytes_per_cycle = Rational(2);
  const FlitRun run = run_packets(mesh, hardware, all_pairs(mesh, 4 * 5, 150));
  for (const sim::DeliveredPacket& packet : run.delivered) {
    const auto routers = static_cast<Cycle>(routers_between(mesh, packet.source, packet.destination));
    EXPECT_EQ(packet.arrived - packet.created, 3 * routers + 2 + 2 * (5 - 1) + 1);
  }
}

/// Noxim's zero-load head delay of two cycles a router, with links of half a flit a cycle: the delay is 2R until the ejection
/// link; the flit's second half takes one cycle more.
TEST(FlitZeroLoad, NoximHeadDelayIsTwiceTheRouters) {
  const topology::Mesh mesh({{8, 8}, {}, {}});
  models::HardwareModel hardware = booksim_hardware({0, 1, 1, 0, 0, true}, 4, 8);
  hardware.link_bytes_per_cycle = hardware.injection_bytes_per_cycle = hardware.ejection_bytes_per_cycle = Rational(2);
  hardware.injection_cycles = hardware.ejection_cycles = 0;
  const FlitRun run = run_packets(mesh, hardware, all_pairs(mesh, 4, 60));
  for (const sim::DeliveredPacket& packet : run.delivered) {
    const auto routers = static_cast<Cycle>(routers_between(mesh, packet.source, packet.destination));
    EXPECT_EQ(packet.arrived - packet.created, 2 * routers + 1);
  }
}

}  // namespace
}  // namespace wafersim::test
