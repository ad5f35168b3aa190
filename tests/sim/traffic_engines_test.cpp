// Synthetic traffic through routers of packets and through cut-through routers of flits: one source, two engines, one result.
#include <gtest/gtest.h>

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "sim/traffic.h"
#include "tests/sim/dump.h"
#include "tests/sim/flit_rig.h"
#include "tests/sim/pick.h"

namespace wafersim::test {
namespace {

constexpr Cycle kMeasuredTo = 700;

topology::MeshSpec draw_mesh(RandomStream& random) {
  topology::MeshSpec spec;
  const int rows = 2 + static_cast<int>(random.below(4));
  spec.shape = {rows, random.below(2) == 0 ? rows : 2 + static_cast<int>(random.below(4))};
  switch (random.below(4)) {
    case 0:
      spec.reticle = topology::ReticleGrid{{2, 2}, Rational(1, 1 + static_cast<std::int64_t>(random.below(4)))};
      break;
    case 1:
      spec.dead_tiles = {{0, 0}};
      break;
    default:
      break;
  }
  return spec;
}

models::HardwareModel draw_hardware(RandomStream& random, int classes, std::uint32_t largest) {
  models::PipelineStages stages;
  models::HardwareModel hardware = booksim_hardware(stages, classes + static_cast<int>(random.below(3)),
                                                    largest * (1 + static_cast<unsigned>(random.below(3))));
  hardware.flit.switching = models::Switching::cut_through;
  hardware.router_cycles = random.below(5);
  hardware.link_cycles = 1 + random.below(4);
  hardware.credit_cycles = 1 + random.below(4);
  hardware.injection_cycles = random.below(3);
  hardware.ejection_cycles = random.below(3);
  hardware.nic_ports = pick(random, std::vector{models::NicPorts::single, models::NicPorts::per_direction});
  hardware.packet_bytes = hardware.flit.flit_bytes * largest;
  hardware.vc_buffer_bytes = hardware.flit.flit_bytes * hardware.flit.vc_buffer_flits;
  return hardware;
}

workloads::TrafficSpec draw_traffic(RandomStream& random, const topology::Mesh& mesh) {
  using enum workloads::SyntheticPattern;
  workloads::TrafficSpec spec;
  spec.pattern = pick(random, std::vector{uniform, uniform, tornado, neighbour, hotspot});
  if (mesh.rows() == mesh.cols() && random.below(3) == 0) spec.pattern = transpose;
  if (spec.pattern == hotspot) {
    spec.hotspots = {mesh.coord(mesh.tile_count() - 1)};
    spec.hotspot_share = Rational(1, 3);
  }
  spec.packet_flits.flits = pick(random, std::vector<std::vector<std::uint32_t>>{{1}, {3}, {1, 5}, {2, 9, 4}});
  spec.load = Rational(1 + static_cast<std::int64_t>(random.below(50)), 100);
  if (random.below(3) == 0) {
    spec.injection = workloads::InjectionProcess::on_off;
    spec.burst_load = Rational(9, 10);
  }
  spec.warmup = Duration::of_cycles(100);
  spec.measurement = Duration::of_cycles(kMeasuredTo - 100);
  spec.drain = Duration::of_cycles(30'000);
  return spec;
}

/// All figures that both engines have, and every packet made before the end of the measurement.
std::string text_of(const topology::Mesh& mesh, const topology::RoutingPolicy& routing, const models::HardwareModel& hardware,
                    const workloads::TrafficSpec& spec, std::uint64_t seed, bool shuffle) {
  std::vector<std::string> packets;
  sim::TrafficOptions options;
  options.seed = seed;
  options.shuffle = shuffle;
  options.on_packet = [&](const sim::DeliveredPacket& packet) {
    if (packet.created >= kMeasuredTo) return;  // the run does not wait for those
    packets.push_back(fmt::format("{} {} > {} of {}: {} {}\n", packet.created, packet.source, packet.destination, packet.flits,
                                  packet.injected, packet.arrived));
  };
  const sim::TrafficMeasurement run = sim::run_traffic(mesh, routing, hardware, spec, options);
  std::sort(packets.begin(), packets.end());
  std::string text = fmt::format("offered {} accepted {} latency {} network {} made {} drained {} stable {} least {} cycles {}\n",
                                 run.offered_load, run.accepted_load, run.latency.mean(), run.network_latency.mean(),
                                 run.packets_made, run.drained, run.stable, run.least_accepted, run.cycles);
  for (const std::string& packet : packets) text += packet;
  return text;
}

TEST(TrafficEngines, GiveEveryPacketTheSameCycles) {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    RandomStream random(seed, "traffic_engines");
    const topology::Mesh mesh(draw_mesh(random));
    std::string name = pick(random, topology::routing_policy_names());
    if (mesh.has_faults()) name = "table";
    SCOPED_TRACE(fmt::format("seed {}, {}", seed, name));
    const auto routing = topology::make_routing_policy(name, mesh);
    workloads::TrafficSpec spec = draw_traffic(random, mesh);
    const std::uint32_t largest = *std::max_element(spec.packet_flits.flits.begin(), spec.packet_flits.flits.end());
    models::HardwareModel hardware = draw_hardware(random, static_cast<int>(routing->vc_classes()), largest);
    const auto run = [&](models::Fidelity fidelity, bool shuffle) {
      hardware.fidelity = fidelity;
      return text_of(mesh, *routing, hardware, spec, seed, shuffle);
    };
    const std::string packets = run(models::Fidelity::packet, false);
    EXPECT_EQ(first_difference(packets, run(models::Fidelity::flit, false)), "");
    if (seed % 4 != 0) continue;
    EXPECT_EQ(first_difference(packets, run(models::Fidelity::packet, true)), "") << "shuffled packets";
    EXPECT_EQ(first_difference(packets, run(models::Fidelity::flit, true)), "") << "shuffled flits";
  }
}

/// What no two flits' worth of time divides: packets of 3 flits of 4 B at 8/3 B a cycle, alone in the network.
TEST(TrafficEngines, PacketsTakeExactTimesWhereLinksTakeNoWholeFlits) {
  const topology::Mesh mesh({{1, 4}, {}, {}});
  models::HardwareModel hardware = booksim_hardware({}, 1, 6);
  hardware.fidelity = models::Fidelity::packet;
  hardware.link_bytes_per_cycle = Rational(8, 3);
  hardware.packet_bytes = 12;
  hardware.vc_buffer_bytes = 24;
  const std::vector<workloads::TracedPacket> packets = {{0, 0, 3, 12}, {100, 1, 2, 12}};
  const FlitRun run = run_packets(mesh, hardware, packets);
  ASSERT_EQ(run.delivered.size(), 2U);
  // One cycle in the source, Linj, (H + 1) R + H L, Leject, and 12 / (8/3) = 4.5 cycles, of which the first is counted already.
  const auto latency = [&](Cycle hops) { return 1 + 1 + (hops + 1) * hardware.router_cycles + hops + 1 + 5 - 1; };
  EXPECT_EQ(run.delivered[0].arrived, latency(3));
  EXPECT_EQ(run.delivered[1].arrived, 100 + latency(1));
  EXPECT_TRUE(run.measurement.drained);
  EXPECT_EQ(run.measurement.flit_hops, 3U * (3 + 1));
  EXPECT_EQ(run.measurement.router_traversals, 3U * (4 + 2));
}

TEST(TrafficEngines, PacketsThatFitInNoBufferAreRefused) {
  const topology::Mesh mesh({{2, 2}, {}, {}});
  models::HardwareModel hardware = booksim_hardware({}, 1, 4);
  hardware.fidelity = models::Fidelity::packet;
  hardware.packet_bytes = hardware.vc_buffer_bytes = 16;
  try {
    run_packets(mesh, hardware, {{0, 0, 3, 20}});
    FAIL() << "accepted";
  } catch (const PlanError& error) {
    EXPECT_NE(std::string(error.what()).find("5 flits are more than a buffer of 4 flits (router.vc_buffer)"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace wafersim::test
