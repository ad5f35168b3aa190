// What must hold under every routing policy, fixed, drawn or adaptive, and what each is known for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "base/random.h"
#include "tests/sim/flit_rig.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/pick.h"
#include "topology/link_loads.h"

namespace wafersim::test {
namespace {

struct Drawn {
  std::unique_ptr<topology::Mesh> mesh;
  models::HardwareModel hardware;
};

bool copes_with(const std::string& routing, const topology::Mesh& mesh) {
  try {
    const auto policy = topology::make_routing_policy(routing, mesh);
    for (TileId from = 0; from < mesh.tile_count(); ++from) {
      for (TileId to = 0; to < mesh.tile_count(); ++to) {
        if (mesh.alive(from) && mesh.alive(to)) topology::require_way(*policy, mesh, from, to);
      }
    }
    return true;
  } catch (const PlanError&) {
    return false;
  }
}

/// A mesh with a dead corner or a dead tile where the policy can do with it, and as many channels as its classes or more.
Drawn draw_network(RandomStream& random, const std::string& routing) {
  topology::MeshSpec spec;
  spec.shape = {2 + static_cast<int>(random.below(4)), 2 + static_cast<int>(random.below(4))};
  if (random.below(2) == 0) spec.dead_tiles = {{0, 0}};
  if (random.below(3) == 0 && spec.shape.rows > 2 && spec.shape.cols > 2) spec.dead_tiles = {{1, 1}};
  Drawn drawn;
  drawn.mesh = std::make_unique<topology::Mesh>(spec);
  if (!copes_with(routing, *drawn.mesh)) {
    spec.dead_tiles.clear();
    drawn.mesh = std::make_unique<topology::Mesh>(spec);
  }
  const unsigned classes = topology::make_routing_policy(routing, *drawn.mesh)->vc_classes();
  models::PipelineStages stages{static_cast<int>(random.below(3)), 1, 1, 1, 0, random.below(2) == 0};
  if (!stages.speculative) stages.vc_allocation = 1 + static_cast<int>(random.below(3));
  drawn.hardware = booksim_hardware(stages, static_cast<int>(classes + random.below(4)), 1 + static_cast<unsigned>(random.below(9)));
  drawn.hardware.flit.allocator = pick(random, std::vector{models::Allocator::islip, models::Allocator::round_robin});
  drawn.hardware.nic_ports = pick(random, std::vector{models::NicPorts::single, models::NicPorts::per_direction});
  drawn.hardware.credit_cycles = 1 + random.below(4);
  return drawn;
}

std::vector<workloads::TracedPacket> draw_packets(RandomStream& random, const topology::Mesh& mesh) {
  std::vector<TileId> live;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    if (mesh.alive(tile)) live.push_back(tile);
  }
  std::vector<workloads::TracedPacket> packets;
  for (int i = 0; i < 500; ++i) {
    packets.push_back({static_cast<Cycle>(i / 8), pick(random, live), pick(random, live), 4 * (1 + random.below(12))});
  }
  return packets;
}

// Whatever the load: no packet waits longer than all packets together would take one after the other, each alone in the network,
// on ways that pass no tile twice in a class. run_traffic() checks that flits and credits are conserved.
TEST(PolicyProperties, EveryPacketArrivesOnceInBoundedTimeInAnyOrderOfVisits) {
  for (const std::string& routing : topology::routing_policy_names()) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(routing + " " + std::to_string(seed));
      RandomStream random(seed, "policy_properties." + routing);
      const Drawn drawn = draw_network(random, routing);
      const topology::Mesh& mesh = *drawn.mesh;
      const auto packets = draw_packets(random, mesh);
      const FlitRun run = run_packets(mesh, drawn.hardware, packets, routing);
      ASSERT_TRUE(run.measurement.drained);
      ASSERT_EQ(run.delivered.size(), packets.size());
      std::multimap<std::pair<TileId, TileId>, Bytes> sent;
      Cycle alone = 0;
      const Cycle flit = drawn.hardware.router_cycles + drawn.hardware.link_cycles + drawn.hardware.credit_cycles + 8;
      for (const auto& packet : packets) {
        sent.insert({{packet.source, packet.destination}, packet.bytes});
        alone += 2 * mesh.tile_count() * flit + packet.bytes / 4 * (flit + 4);
      }
      for (const sim::DeliveredPacket& packet : run.delivered) {
        ASSERT_LE(packet.arrived, packets.back().cycle + alone);
        const auto [first, last] = sent.equal_range({packet.source, packet.destination});
        const auto same = std::find_if(first, last, [&](const auto& item) { return item.second == 4 * packet.flits; });
        ASSERT_NE(same, last);
        sent.erase(same);
      }
      const FlitRun shuffled = run_packets(mesh, drawn.hardware, packets, routing, true);
      for (std::size_t i = 0; i < packets.size(); ++i) ASSERT_EQ(run.delivered[i].arrived, shuffled.delivered[i].arrived);
    }
  }
}

TEST(PolicyProperties, MinimalPoliciesTakeMinimalWaysHoweverFullTheNetworkIs) {
  const topology::Mesh mesh({{5, 6}, {}, {}});
  for (const std::string& routing : topology::routing_policy_names()) {
    RandomStream random(1, "minimal." + routing);
    const models::HardwareModel hardware = booksim_hardware(models::stages_of(models::PipelinePreset::p4), 2, 4);
    const auto packets = draw_packets(random, mesh);
    std::uint64_t hops = 0;
    for (const auto& packet : packets) {
      hops += static_cast<std::uint64_t>(mesh.distance(packet.source, packet.destination)) * (packet.bytes / 4);
    }
    const std::uint64_t taken = run_packets(mesh, hardware, packets, routing).measurement.flit_hops;
    if (routing == "valiant") {
      EXPECT_GT(taken, hops);
    } else {
      EXPECT_EQ(taken, hops) << routing;
    }
  }
}

// A link that packets take with probability p carries n p of n in the mean, with a variance of at most n / 4.
TEST(PolicyProperties, DrawnPacketsLoadLinksAsExpected) {
  const topology::Mesh mesh({{4, 5}, {}, {}});
  models::HardwareModel hardware = plain_hardware(16, Rational(16), 1, 1);
  hardware.virtual_channels = 4;
  const std::vector<std::pair<TileId, TileId>> pairs = {{0, 19}, {4, 15}, {7, 7}, {16, 3}, {9, 8}};
  constexpr Bytes kPackets = 3000;
  for (const char* routing : {"o1turn", "valiant"}) {
    const std::string bytes = isolated_text([&] {
      std::vector<Flow> flows;
      for (const auto& [from, to] : pairs) flows.push_back({from, to, kPackets * hardware.packet_bytes, 0});
      std::string text;
      for (const sim::LinkMeasurement& link : run_flows(mesh, hardware, flows, routing).measurements.links) {
        text += std::to_string(link.link) + " " + std::to_string(link.packets) + "\n";
      }
      return text;
    });
    topology::Demands demands;
    for (const auto& [from, to] : pairs) demands.push_back({from, to, kPackets});
    const auto expected = topology::make_routing_policy(routing, mesh)->expected_loads(mesh, demands);
    std::istringstream lines(bytes);
    topology::LinkId link = 0;
    double packets = 0;
    std::size_t seen = 0;
    for (; lines >> link >> packets; ++seen) {
      const double mean = static_cast<double>(expected.parts[link]) / static_cast<double>(expected.parts_per_byte);
      EXPECT_NEAR(packets, mean, 5 * std::sqrt(static_cast<double>(pairs.size() * kPackets) / 4)) << routing << " " << mesh.link_name(link);
    }
    EXPECT_EQ(seen, 2U * (4 * 4 + 3 * 5));
  }
}

sim::TrafficMeasurement measure(const std::string& routing, workloads::SyntheticPattern pattern, const Rational& load) {
  const topology::Mesh mesh({{8, 8}, {}, {}});
  models::HardwareModel hardware = booksim_hardware(models::stages_of(models::PipelinePreset::p3), 4, 8);
  hardware.routing = routing;
  workloads::TrafficSpec spec;
  spec.pattern = pattern;
  spec.load = load;
  spec.warmup = Duration::of_cycles(1000);
  spec.measurement = Duration::of_cycles(3000);
  spec.drain = Duration::of_cycles(6000);
  return run_seeds(mesh, hardware, spec, 1).front();
}

// Glass and Ni 1992, Chiu 2000: on the transpose all packets of dimension order meet on the links round the corners. West-first
// and north-last let half of them choose. Packets that go either way by negative-first have no choice on this diagonal: it is xy.
TEST(PolicyProperties, ChoosingBeatsDimensionOrderOnTheTranspose) {
  using enum workloads::SyntheticPattern;
  const Rational load(28, 100);
  const double xy = measure("xy", transpose, load).accepted_load;
  for (const char* routing : {"west_first", "north_last", "odd_even", "o1turn"}) {
    EXPECT_GT(measure(routing, transpose, load).accepted_load, 1.1 * xy) << routing;
  }
  EXPECT_NEAR(measure("negative_first", transpose, load).accepted_load, xy, 0.02 * xy);
}

// Every packet of valiant crosses the mesh twice, so uniform traffic gets about half; of any other pattern it makes the same.
TEST(PolicyProperties, ValiantHalvesUniformTrafficAndCaresForNoPattern) {
  using enum workloads::SyntheticPattern;
  EXPECT_TRUE(measure("xy", uniform, Rational(36, 100)).stable);
  EXPECT_FALSE(measure("valiant", uniform, Rational(26, 100)).stable);
  for (const auto pattern : {uniform, transpose, bit_complement}) {
    const sim::TrafficMeasurement run = measure("valiant", pattern, Rational(17, 100));
    EXPECT_TRUE(run.stable);
  }
  EXPECT_FALSE(measure("xy", transpose, Rational(17, 100)).stable);
}

}  // namespace
}  // namespace wafersim::test
