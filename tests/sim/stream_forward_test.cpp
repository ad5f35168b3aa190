#include <gtest/gtest.h>

#include <numeric>

#include "models/cost.h"
#include "tests/sim/hand_trace.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"

/// Sends that follow what comes in (workloads::Op::follows), to the cycle.
namespace wafersim::test {
namespace {

using workloads::Axis;
using workloads::OpId;
using workloads::StepBuilder;

OpId streamed_receive(StepBuilder& builder, TileId from, std::uint32_t channel, Bytes bytes) {
  const OpId id = builder.receive(Axis::tp, from, channel, bytes, {});
  builder.stream(id);
  return id;
}

OpId streamed_send(StepBuilder& builder, TileId to, std::uint32_t channel, Bytes bytes, const std::vector<OpId>& after,
                   bool follows) {
  const OpId id = builder.send(Axis::tp, to, channel, bytes, after);
  builder.stream(id);
  if (follows) builder.follow(id);
  return id;
}

/// Tile 0 sends to stops[0], which passes it on to stops[1], and so on; each passes on what comes in, or all of it.
workloads::Trace relay_trace(const topology::Mesh& mesh, const std::vector<TileId>& stops, Bytes bytes, bool follows) {
  HandTrace trace(mesh.tile_count());
  for (std::size_t i = 0; i < stops.size(); ++i) {
    trace.step(stops[i], [&](StepBuilder& builder) {
      std::vector<OpId> received;
      if (i > 0) received.push_back(streamed_receive(builder, stops[i - 1], 0, bytes));
      if (i + 1 < stops.size()) streamed_send(builder, stops[i + 1], 0, bytes, received, follows);
    });
  }
  return trace.take();
}

/// What a message takes to be used at its receiver, but for its bytes.
Cycle head(const models::HardwareModel& hardware, int hops, int turns) {
  const auto h = static_cast<Cycle>(hops);
  return 2 * hardware.message_overhead + hardware.injection_cycles + (h + 1) * hardware.router_cycles +
         static_cast<Cycle>(turns) * hardware.turn_cycles + h * hardware.link_cycles + hardware.ejection_cycles +
         hardware.stream_cycles;
}

std::vector<models::HardwareModel> machines() {
  std::vector<models::HardwareModel> list;
  list.push_back(plain_hardware(4, Rational(4), 0, 1));
  list.back().nic_ports = models::NicPorts::single;
  list.back().injection_cycles = list.back().ejection_cycles = 2;
  list.back().vc_buffer_bytes = 16;
  list.push_back(plain_hardware(64, Rational(16), 2, 3));
  list.push_back(plain_hardware(100, Rational(53687, 1000), 1, 5));
  list.back().stream_cycles = 7;
  list.push_back(plain_hardware(64, Rational(16), 1, 2));
  list.back().turn_cycles = 20;
  list.back().vc_buffer_bytes = 1024;
  return list;
}

TEST(StreamForward, RelaysOverlapPacketByPacket) {
  const topology::Mesh mesh({{3, 4}, {}, {}});
  // Hops and turns: 1, 3 and 1, 2, 4 and 1.
  const std::vector<TileId> stops = {0, 1, 6, 4, 11};
  const std::vector<int> hops = {1, 2, 2, 4}, turns = {0, 1, 0, 1};
  for (const models::HardwareModel& hardware : machines()) {
    for (const Bytes bytes : {Bytes{1}, hardware.packet_bytes, 9 * hardware.packet_bytes + 3}) {
      Cycle way = 0;
      Cycle whole = 0;
      const Cycle serial = cycles_at_rate(bytes, hardware.link_bytes_per_cycle);
      for (std::size_t i = 0; i < hops.size(); ++i) {
        way += head(hardware, hops[i], turns[i]);
        whole += head(hardware, hops[i], turns[i]) + serial;
      }
      const auto simulated = [&](bool follows) {
        return isolated_number([&] { return run_trace(mesh, hardware, relay_trace(mesh, stops, bytes, follows)).cycles; });
      };
      EXPECT_EQ(simulated(true), way + serial) << bytes << " B in packets of " << hardware.packet_bytes;
      EXPECT_EQ(simulated(false), whole) << bytes << " B in packets of " << hardware.packet_bytes;
    }
  }
}

/// Two streams of different delay: what is passed on comes with the later one.
TEST(StreamForward, WaitsForAllThatItFollows) {
  const topology::Mesh mesh({{1, 4}, {}, {}});
  models::HardwareModel hardware = plain_hardware(16, Rational(16), 1, 1);
  const Bytes bytes = 10 * 16;
  HandTrace trace(mesh.tile_count());
  trace.step(0, [&](StepBuilder& builder) { streamed_send(builder, 1, 0, bytes, {builder.vector(vector_work(500), {})}, false); });
  trace.step(2, [&](StepBuilder& builder) { streamed_send(builder, 1, 0, bytes, {}, false); });
  trace.step(1, [&](StepBuilder& builder) {
    const OpId near = streamed_receive(builder, 0, 0, bytes);
    const OpId early = streamed_receive(builder, 2, 0, bytes);
    streamed_send(builder, 3, 0, bytes, {near, early}, true);
  });
  trace.step(3, [&](StepBuilder& builder) { streamed_receive(builder, 1, 0, bytes); });
  EXPECT_EQ(run_trace(mesh, hardware, trace.take()).cycles, 500 + head(hardware, 1, 0) + head(hardware, 2, 0) + 10);
}

/// Own values may come late: before, while or after the stream comes in.
TEST(StreamForward, StartsWithWhatIsThereWhenItsOwnOperandsAre) {
  const topology::Mesh mesh({{1, 3}, {}, {}});
  const models::HardwareModel hardware = plain_hardware(16, Rational(16), 1, 1);
  const Bytes bytes = 20 * 16;
  const Cycle first = head(hardware, 1, 0);
  for (const Cycle late : {Cycle{1}, first, first + 1, first + 10, first + 20, first + 21, first + 100}) {
    const Cycle cycles = isolated_number([&] {
      HandTrace trace(mesh.tile_count());
      trace.step(0, [&](StepBuilder& builder) { streamed_send(builder, 1, 0, bytes, {}, false); });
      trace.step(1, [&](StepBuilder& builder) {
        const OpId received = streamed_receive(builder, 0, 0, bytes);
        const OpId own = builder.vector(vector_work(late), {});
        streamed_send(builder, 2, 0, bytes, {received, own}, true);
      });
      trace.step(2, [&](StepBuilder& builder) { streamed_receive(builder, 1, 0, bytes); });
      return run_trace(mesh, hardware, trace.take()).cycles;
    });
    EXPECT_EQ(cycles, std::max(first, late) + first + 20) << late;
  }
}

/// Several sends may follow one message; the second here leaves when the first is through.
TEST(StreamForward, OneMessageCanBePassedOnTwice) {
  const topology::Mesh mesh({{1, 4}, {}, {}});
  models::HardwareModel hardware = plain_hardware(4, Rational(4), 0, 1);
  hardware.nic_ports = models::NicPorts::single;
  HandTrace trace(mesh.tile_count());
  const Bytes bytes = 4 * 50;
  trace.step(0, [&](StepBuilder& builder) { streamed_send(builder, 1, 0, bytes, {}, false); });
  trace.step(1, [&](StepBuilder& builder) {
    const OpId received = streamed_receive(builder, 0, 0, bytes);
    const OpId first = streamed_send(builder, 2, 0, bytes, {received}, true);
    streamed_send(builder, 3, 0, bytes, {received, first}, true);
  });
  for (const TileId end : {2U, 3U}) trace.step(end, [&](StepBuilder& builder) { streamed_receive(builder, 1, 0, bytes); });
  EXPECT_EQ(run_trace(mesh, hardware, trace.take()).cycles, head(hardware, 1, 0) + 50 + head(hardware, 2, 0) + 50);
}

TEST(StreamForward, CostsNothingOnTheIdealNetwork) {
  const topology::Mesh mesh({{3, 4}, {}, {}});
  models::HardwareModel hardware = plain_hardware(64, Rational(1), 3, 3);
  hardware.fidelity = models::Fidelity::ideal;
  const std::vector<TileId> stops = {0, 1, 6, 4, 11};
  EXPECT_EQ(isolated_number([&] { return run_trace(mesh, hardware, relay_trace(mesh, stops, 640, true)).cycles; }), 0U);
  EXPECT_EQ(isolated_number([&] { return run_trace(mesh, hardware, relay_trace(mesh, stops, 640, false)).cycles; }), 0U);
}

/// In whole flits and with buffers of whole packets the flit routers give the packet routers' time.
TEST(StreamForward, IsTheSameWithCutThroughFlits) {
  const topology::Mesh mesh({{3, 4}, {}, {}});
  const std::vector<TileId> stops = {0, 1, 6, 4, 11};
  models::WaferSpec wafer;
  wafer.mesh.shape = {3, 4};
  wafer.link.bandwidth = {Rational(16), true};
  wafer.link.latency = Duration::of_cycles(2);
  models::NetworkSpec network;
  network.packet_bytes = {64};
  models::RouterSpec router;
  router.flit.switching = models::Switching::cut_through;
  const auto cycles = [&](models::Fidelity fidelity, bool follows) {
    network.fidelity = fidelity;
    const models::HardwareModel hardware = models::resolve_hardware(wafer, router, network);
    return isolated_number([&] { return run_trace(mesh, hardware, relay_trace(mesh, stops, 640, follows)).cycles; });
  };
  EXPECT_EQ(cycles(models::Fidelity::flit, true), cycles(models::Fidelity::packet, true));
  EXPECT_EQ(cycles(models::Fidelity::flit, false), cycles(models::Fidelity::packet, false));
}

TEST(StreamForward, ChecksOfTheTraceFindWhatDoesNotMatch) {
  const topology::Mesh mesh({{1, 3}, {}, {}});
  const auto faults = [&](bool receiver_streams, Bytes passed_on) {
    HandTrace trace(mesh.tile_count());
    trace.step(0, [&](StepBuilder& builder) { streamed_send(builder, 1, 0, 64, {}, false); });
    trace.step(1, [&](StepBuilder& builder) {
      const OpId received = builder.receive(Axis::tp, 0, 0, 64, {});
      if (receiver_streams) builder.stream(received);
      streamed_send(builder, 2, 0, passed_on, {received}, true);
    });
    trace.step(2, [&](StepBuilder& builder) { streamed_receive(builder, 1, 0, passed_on); });
    return workloads::check_trace(trace.take(), mesh);
  };
  EXPECT_EQ(faults(true, 64), std::vector<std::string>{});
  ASSERT_EQ(faults(true, 32).size(), 1U);
  EXPECT_NE(faults(true, 32).front().find("follows a message of another size"), std::string::npos);
  ASSERT_EQ(faults(false, 64).size(), 1U);
  EXPECT_NE(faults(false, 64).front().find("streamed"), std::string::npos);
}

}  // namespace
}  // namespace wafersim::test
