// Multicasts in the flit engine. A run itself checks that bytes, flits, credits and virtual channels are conserved, and that each
// receiver gets each flit of a packet once.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/sim/dump.h"
#include "tests/sim/isolated.h"
#include "tests/sim/multicast_rig.h"
#include "tests/sim/pick.h"

namespace wafersim::test {
namespace {

constexpr Bytes kFlit = 16;

topology::Mesh draw_mesh(RandomStream& random) {
  return topology::Mesh({{1 + static_cast<int>(random.below(5)), 2 + static_cast<int>(random.below(5))}, {}, {}});
}

/// What both kinds of switching have in common.
models::HardwareModel draw_hardware(RandomStream& random, Bytes packet, Cycle router) {
  models::HardwareModel hardware = plain_hardware(packet, Rational(kFlit), router, 1 + random.below(5));
  hardware.virtual_channels = pick(random, std::vector{1, 2, 4});
  hardware.credit_cycles = 1 + random.below(4);
  hardware.injection_cycles = random.below(3);
  hardware.ejection_cycles = random.below(3);
  hardware.nic_ports = pick(random, std::vector{models::NicPorts::single, models::NicPorts::per_direction});
  hardware.turn_cycles = pick(random, std::vector<Cycle>{0, 0, 1, 20});
  hardware.vc_buffer_bytes = packet * (1 + random.below(3));
  hardware.flit.flit_bytes = kFlit;
  return hardware;
}

models::HardwareModel draw_cut_through(RandomStream& random) {
  models::HardwareModel hardware = draw_hardware(random, kFlit * (1 + random.below(8)), random.below(5));
  hardware.flit.switching = models::Switching::cut_through;
  hardware.flit.vc_buffer_flits = static_cast<unsigned>(hardware.vc_buffer_bytes / kFlit);
  return hardware;
}

/// Buffers may hold less than a packet, and none more than two.
models::HardwareModel draw_wormhole(RandomStream& random) {
  models::PipelineStages stages{static_cast<int>(random.below(3)), 1, 1, static_cast<int>(random.below(3)),
                                static_cast<int>(random.below(3)), random.below(2) == 0};
  if (!stages.speculative) {
    stages.vc_allocation = 1 + static_cast<int>(random.below(3));
    stages.switch_allocation = 1 + static_cast<int>(random.below(3));
  }
  const Bytes flits = 1 + random.below(9);
  models::HardwareModel hardware = draw_hardware(random, kFlit * flits, static_cast<Cycle>(stages.cycles()));
  hardware.fidelity = models::Fidelity::flit;
  hardware.flit.stages = stages;
  hardware.flit.allocator = pick(random, std::vector{models::Allocator::islip, models::Allocator::round_robin});
  hardware.flit.vc_buffer_flits = 1 + static_cast<unsigned>(random.below(2 * flits));
  hardware.link_bytes_per_cycle = pick(random, std::vector{Rational(16), Rational(16), Rational(5), Rational(40, 3)});
  return hardware;
}

/// To the cycle, and to the byte of every link.
TEST(FlitMulticast, CutThroughRoutersCopyAsPacketRoutersDo) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, "flit_multicast");
    const topology::Mesh mesh = draw_mesh(random);
    models::HardwareModel hardware = draw_cut_through(random);
    const std::vector<Multicast> multicasts = random_multicasts(random, mesh, hardware.packet_bytes, kFlit);
    const std::string routing = pick(random, std::vector<std::string>{"xy", "yx"});
    const auto run = [&](models::Fidelity fidelity, bool shuffle) {
      return isolated_text([&] {
        hardware.fidelity = fidelity;
        return text_of(run_multicasts(multicasts, mesh, hardware, shuffle, routing));
      });
    };
    const std::string packets = run(models::Fidelity::packet, false);
    EXPECT_EQ(first_difference(packets, run(models::Fidelity::flit, false)), "");
    if (seed % 4 != 0) continue;
    EXPECT_EQ(first_difference(packets, run(models::Fidelity::flit, true)), "") << "shuffled";
  }
}

/// Over links that take their time, too: reticle borders of a half and a third of the rate.
TEST(FlitMulticast, CutThroughCopiesOverLinksOfDifferentPace) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, "flit_multicast.pace");
    topology::MeshSpec spec;
    spec.shape = {2 + static_cast<int>(random.below(4)), 2 + static_cast<int>(random.below(4))};
    spec.reticle = topology::ReticleGrid{{2, 2}, Rational(1, 1 + static_cast<std::int64_t>(random.below(4)))};
    const topology::Mesh mesh(spec);
    models::HardwareModel hardware = draw_cut_through(random);
    hardware.turn_cycles = 0;
    hardware.border_cycles = random.below(4);
    default_buffers(hardware);
    hardware.flit.vc_buffer_flits = static_cast<unsigned>(hardware.vc_buffer_bytes / kFlit);
    const std::vector<Multicast> multicasts = random_multicasts(random, mesh, hardware.packet_bytes, kFlit);
    const auto run = [&](models::Fidelity fidelity) {
      return isolated_text([&] {
        hardware.fidelity = fidelity;
        return text_of(run_multicasts(multicasts, mesh, hardware));
      });
    };
    EXPECT_EQ(first_difference(run(models::Fidelity::packet), run(models::Fidelity::flit)), "");
  }
}

/// With buffers of a flit upwards, under load: all arrives, and the order in which routers are visited does not matter.
TEST(FlitMulticast, WormholeRoutersCopyAllOfItInAnyOrderOfVisits) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, "flit_multicast.wormhole");
    const topology::Mesh mesh = draw_mesh(random);
    const models::HardwareModel hardware = draw_wormhole(random);
    const std::vector<Multicast> multicasts = random_multicasts(random, mesh, hardware.packet_bytes, 1);
    const std::string routing = pick(random, std::vector<std::string>{"xy", "yx"});
    const auto run = [&](bool shuffle) {
      return isolated_text([&] {
        const MulticastOutcome outcome = run_multicasts(multicasts, mesh, hardware, shuffle, routing);
        for (std::uint32_t i = 0; i < multicasts.size(); ++i) {
          for (const TileId receiver : multicasts[i].receivers) {
            const sim::MessageRecord& record = outcome.messages.at({i, receiver});
            const auto hops = static_cast<Cycle>(mesh.distance(multicasts[i].source, receiver));
            const Cycle least = hardware.injection_cycles + (hops + 1) * hardware.router_cycles +
                                hops * hardware.link_cycles + hardware.ejection_cycles +
                                (multicasts[i].bytes + kFlit - 1) / kFlit;
            if (record.received - record.posted < least) throw std::runtime_error("faster than on idle links");
          }
        }
        return text_of(outcome);
      });
    };
    const std::string straight = run(false);
    EXPECT_NE(straight, "");
    if (seed % 3 != 0) continue;
    EXPECT_EQ(first_difference(straight, run(true)), "") << "shuffled";
  }
}

/// Every tile to every other at once, again and again, with one virtual channel whose buffers hold just one packet: what
/// copies wait for has no circle (docs/model.md).
TEST(FlitMulticast, BroadcastsFromEverywhereDoNotLockEachOther) {
  const topology::Mesh mesh({{4, 4}, {}, {}});
  for (const models::Allocator allocator : {models::Allocator::islip, models::Allocator::round_robin}) {
    for (const unsigned buffer : {1U, 2U, 5U}) {
      RandomStream random(buffer, "flit_multicast.everywhere");
      models::HardwareModel hardware = draw_wormhole(random);
      hardware.virtual_channels = 1;
      hardware.packet_bytes = 5 * kFlit;
      hardware.vc_buffer_bytes = hardware.packet_bytes;
      hardware.flit.vc_buffer_flits = buffer;
      hardware.flit.allocator = allocator;
      std::vector<Multicast> multicasts;
      for (int round = 0; round < 4; ++round) {
        for (TileId source = 0; source < mesh.tile_count(); ++source) {
          std::vector<TileId> receivers(mesh.tile_count());
          std::iota(receivers.begin(), receivers.end(), TileId{0});
          receivers.erase(receivers.begin() + source);
          multicasts.push_back({source, receivers, 20 * kFlit, 0});
        }
      }
      EXPECT_EQ(isolated_number([&] { return run_multicasts(multicasts, mesh, hardware).messages.size(); }), 4U * 16 * 15);
    }
  }
}

/// On idle links a copy takes no longer than a message to that tile alone: an input sends by several outputs at once.
TEST(FlitMulticast, ReachesEachReceiverAsIfItWereTheOnlyOne) {
  const topology::Mesh mesh({{4, 5}, {}, {}});
  const std::vector<TileId> receivers = {0, 3, 4, 7, 10, 13, 15, 19};
  for (const models::PipelinePreset preset : {models::PipelinePreset::p3, models::PipelinePreset::p4, models::PipelinePreset::p5}) {
    for (const models::NicPorts ports : {models::NicPorts::single, models::NicPorts::per_direction}) {
      for (const models::Allocator allocator : {models::Allocator::islip, models::Allocator::round_robin}) {
        const models::PipelineStages stages = models::stages_of(preset);
        models::HardwareModel hardware = plain_hardware(12 * kFlit, Rational(kFlit), static_cast<Cycle>(stages.cycles()), 2);
        hardware.fidelity = models::Fidelity::flit;
        hardware.nic_ports = ports;
        hardware.vc_buffer_bytes = 2 * hardware.packet_bytes;
        hardware.flit.flit_bytes = kFlit;
        hardware.flit.stages = stages;
        hardware.flit.allocator = allocator;
        hardware.flit.vc_buffer_flits = 12;
        const auto times = [&](const std::vector<TileId>& to) {
          return isolated_text([&] {
            std::string text;
            const MulticastOutcome outcome = run_multicasts({{11, to, 12 * kFlit, 3}}, mesh, hardware);
            for (const TileId tile : to) text += std::to_string(outcome.messages.at({0, tile}).received) + " ";
            return text;
          });
        };
        std::string alone;
        for (const TileId receiver : receivers) alone += times({receiver});
        EXPECT_EQ(times(receivers), alone);
      }
    }
  }
}

}  // namespace
}  // namespace wafersim::test
