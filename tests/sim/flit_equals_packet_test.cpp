// Two engines of the same router: packets moved whole, and their flits one by one. With cut-through switching they agree to the
// cycle, on random traffic and on real traces.
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/text.h"
#include "tests/sim/dump.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/pick.h"
#include "tests/topology/dateline_ring.h"
#include "tests/workloads/lowering_fixture.h"

namespace wafersim::test {
namespace {

constexpr Bytes kFlit = 16;

struct Drawn {
  topology::MeshSpec mesh;
  models::HardwareModel hardware;
  std::string routing;
};

/// A machine whose ports take a flit a cycle.
Drawn draw_machine(RandomStream& random) {
  Drawn drawn;
  drawn.mesh.shape = {1 + static_cast<int>(random.below(5)), 1 + static_cast<int>(random.below(6))};
  const auto packet_flits = 1 + random.below(8);
  models::HardwareModel& hardware = drawn.hardware;
  hardware = plain_hardware(packet_flits * kFlit, Rational(kFlit), random.below(5), 1 + random.below(6));
  hardware.virtual_channels = pick(random, std::vector{1, 2, 4});
  hardware.credit_cycles = 1 + random.below(4);
  hardware.injection_cycles = random.below(3);
  hardware.ejection_cycles = random.below(3);
  hardware.nic_ports = pick(random, std::vector{models::NicPorts::single, models::NicPorts::per_direction});
  hardware.vc_buffer_bytes = hardware.packet_bytes * (1 + random.below(4));
  hardware.flit.flit_bytes = kFlit;
  hardware.flit.switching = models::Switching::cut_through;
  hardware.flit.vc_buffer_flits = static_cast<unsigned>(hardware.vc_buffer_bytes / kFlit);
  drawn.routing = pick(random, std::vector<std::string>{"xy", "yx", "table"});
  hardware.turn_cycles = pick(random, std::vector<Cycle>{0, 0, 1, 20});
  return drawn;
}

std::vector<Flow> draw_flows(RandomStream& random, const topology::Mesh& mesh) {
  std::vector<Flow> flows;
  const std::uint64_t span = pick(random, std::vector<std::uint64_t>{1, 50, 2000});
  const auto count = 1 + random.below(150);
  for (std::uint64_t i = 0; i < count; ++i) {
    flows.push_back({static_cast<TileId>(random.below(mesh.tile_count())), static_cast<TileId>(random.below(mesh.tile_count())),
                     kFlit * (1 + random.below(40)), random.below(span)});
  }
  return flows;
}

std::string text_of(const FlowResult& result) {
  std::string text = dump(result.measurements);
  for (const sim::MessageRecord& message : result.messages) {
    text += std::to_string(message.posted) + " " + std::to_string(message.injected) + " " +
            std::to_string(message.received) + " " + std::to_string(message.queued) + "\n";
  }
  return text;
}

/// Both engines, and now and then each of them with its routers in another order.
void expect_equal_engines(Drawn drawn, const std::vector<Flow>& flows, bool shuffled) {
  const topology::Mesh mesh(drawn.mesh);
  const auto run = [&](models::Fidelity fidelity, bool shuffle) {
    return isolated_text([&] {
      drawn.hardware.fidelity = fidelity;
      return text_of(run_flows(mesh, drawn.hardware, flows, drawn.routing, shuffle));
    });
  };
  const std::string packets = run(models::Fidelity::packet, false);
  EXPECT_EQ(first_difference(packets, run(models::Fidelity::flit, false)), "");
  if (!shuffled) return;
  EXPECT_EQ(first_difference(packets, run(models::Fidelity::flit, true)), "") << "shuffled flits";
  EXPECT_EQ(first_difference(packets, run(models::Fidelity::packet, true)), "") << "shuffled packets";
}

TEST(FlitEqualsPacket, OnRandomTraffic) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, "flit_equals_packet");
    const Drawn drawn = draw_machine(random);
    expect_equal_engines(drawn, draw_flows(random, topology::Mesh(drawn.mesh)), seed % 4 == 0);
  }
}

/// The choices of adaptive policies, too: both engines see the same credits in the cycle in which a packet first bids.
TEST(FlitEqualsPacket, UnderEveryRoutingPolicy) {
  for (const std::string& routing : topology::routing_policy_names()) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE(routing + " " + std::to_string(seed));
      RandomStream random(seed, "flit_equals_packet." + routing);
      Drawn drawn = draw_machine(random);
      drawn.routing = routing;
      const topology::Mesh mesh(drawn.mesh);
      const auto classes = static_cast<int>(topology::make_routing_policy(routing, mesh)->vc_classes());
      drawn.hardware.virtual_channels = classes + static_cast<int>(random.below(4));
      expect_equal_engines(drawn, draw_flows(random, mesh), seed % 4 == 0);
    }
  }
}

/// A policy that restates the class of a packet on its way: on a ring that no one class keeps free of deadlock.
TEST(FlitEqualsPacket, WhereTheClassChangesOnTheWay) {
  const topology::Mesh mesh({{2, 2}, {}, {}});
  const topology::DatelineRing ring;
  for (const int channels : {2, 3, 4}) {
    for (const models::NicPorts ports : {models::NicPorts::single, models::NicPorts::per_direction}) {
      models::HardwareModel hardware = plain_hardware(4 * kFlit, Rational(kFlit), 1, 2);
      hardware.virtual_channels = channels;
      hardware.nic_ports = ports;
      hardware.vc_buffer_bytes = hardware.packet_bytes;
      hardware.flit.flit_bytes = kFlit;
      hardware.flit.vc_buffer_flits = 4;
      std::vector<Flow> flows;
      for (TileId from = 0; from < 4; ++from) {
        for (TileId to = 0; to < 4; ++to) flows.push_back({from, to, 100 * kFlit, 0});
      }
      const auto run = [&](models::Fidelity fidelity, models::Switching switching) {
        return isolated_text([&] {
          hardware.fidelity = fidelity;
          hardware.flit.switching = switching;
          return text_of(run_flows(mesh, ring, hardware, flows));
        });
      };
      const std::string packets = run(models::Fidelity::packet, models::Switching::cut_through);
      EXPECT_EQ(first_difference(packets, run(models::Fidelity::flit, models::Switching::cut_through)), "");
      EXPECT_NE(run(models::Fidelity::flit, models::Switching::wormhole), "");
    }
  }
}

/// Whole iterations of training, whose messages are whole flits because the link is narrow.
TEST(FlitEqualsPacket, OnTrainingPlans) {
  struct Plan {
    int dp, tp, pp;
    workloads::Collective collectives;
    models::NicPorts ports;
    bool narrow_sram;
  };
  for (const Plan& plan : {Plan{4, 1, 1, workloads::Collective::ring, models::NicPorts::per_direction, false},
                           Plan{1, 4, 1, workloads::Collective::rows_cols, models::NicPorts::single, false},
                           Plan{2, 2, 2, workloads::Collective::tree, models::NicPorts::per_direction, true},
                           Plan{2, 2, 4, workloads::Collective::line, models::NicPorts::single, true}}) {
    workloads::LoweringFixture fixture;
    fixture.set_degrees(plan.dp, plan.tp, plan.pp);
    fixture.training.global_batch = 8;
    fixture.training.microbatch = 1;
    fixture.plan.collectives = plan.collectives;
    fixture.wafer.mesh.shape = {4, 4};
    fixture.wafer.link.bandwidth = {Rational(2), true};
    fixture.wafer.nic.ports = plan.ports;
    if (plan.narrow_sram) fixture.wafer.sram.bandwidth = Bandwidth{Rational(64), true};
    models::RouterSpec router;
    router.flit.switching = models::Switching::cut_through;
    const auto run = [&](models::Fidelity fidelity) {
      return isolated_text([&] {
        models::NetworkSpec network;
        network.packet_bytes = {512};
        network.fidelity = fidelity;
        const models::HardwareModel hardware = models::resolve_hardware(fixture.wafer, router, network);
        return dump(run_trace(fixture.mesh(), hardware, fixture.lower().trace));
      });
    };
    EXPECT_EQ(first_difference(run(models::Fidelity::packet), run(models::Fidelity::flit)), "")
        << plan.dp << " x " << plan.tp << " x " << plan.pp;
  }
}

/// Wormhole routers run the same plans; what is sent arrives, whatever the order in which routers are visited.
TEST(FlitFidelity, WormholeRunsPlansInAnyOrderOfVisits) {
  for (const bool llama : {false, true}) {
    workloads::LoweringFixture fixture;
    fixture.set_degrees(2, 2, 2);
    if (llama) fixture.make_llama();
    fixture.training.global_batch = 8;
    fixture.training.microbatch = 1;
    fixture.wafer.mesh.shape = {4, 4};
    fixture.wafer.link.bandwidth = {Rational(100, 3), true};
    models::RouterSpec router;
    router.virtual_channels = 3;
    const auto run = [&](bool shuffle) {
      return isolated_text([&] {
        models::NetworkSpec network;
        network.packet_bytes = {1000};
        network.fidelity = models::Fidelity::flit;
        const models::HardwareModel hardware = models::resolve_hardware(fixture.wafer, router, network);
        sim::SimulationOptions options;
        options.shuffle = shuffle;
        return dump(run_trace(fixture.mesh(), hardware, fixture.lower().trace, options));
      });
    };
    EXPECT_EQ(first_difference(run(false), run(true)), "");
  }
}

/// A packet takes whole flits of buffers and links.
TEST(FlitFidelity, PacketsMayBeSmallerThanAFlit) {
  models::WaferSpec wafer;
  wafer.mesh.shape = {1, 3};
  wafer.link.bandwidth = {Rational(64), true};
  models::NetworkSpec network;
  network.packet_bytes = {10};
  network.fidelity = models::Fidelity::flit;
  for (const models::Switching switching : {models::Switching::wormhole, models::Switching::cut_through}) {
    models::RouterSpec router;
    router.flit.switching = switching;
    router.pipeline = Duration::of_cycles(2);
    const models::HardwareModel hardware = models::resolve_hardware(wafer, router, network);
    EXPECT_EQ(hardware.flit.flit_bytes, 64U);
    const std::uint64_t received = isolated_number(
        [&] { return run_flows(topology::Mesh(wafer.mesh), hardware, {{0, 2, 30, 0}}).messages.front().received; });
    // (H + 1) R + H L and three flits, of a packet each; heads of packets of one flow follow each other in one VC.
    EXPECT_GE(received, 3 * 2 + 2 + 3U);
    EXPECT_LE(received, 3 * 2 + 2 + 3U * 3);
  }
}

}  // namespace
}  // namespace wafersim::test
