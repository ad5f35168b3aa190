#include <gtest/gtest.h>

#include "base/random.h"
#include "models/cost.h"
#include "tests/sim/machine.h"

namespace wafersim::test {
namespace {

/// The zero-load rule of docs/model.md, written out for links of equal rate.
Cycle rule(const models::HardwareModel& hardware, int hops, int turns, Bytes bytes) {
  const auto h = static_cast<Cycle>(hops);
  return hardware.injection_cycles + (h + 1) * hardware.router_cycles + h * hardware.link_cycles +
         static_cast<Cycle>(turns) * hardware.turn_cycles + hardware.ejection_cycles + cycles_at_rate(bytes, hardware.link_bytes_per_cycle);
}

/// Messages between all pairs of an 8x8 mesh, far enough apart in time not to meet.
std::vector<Flow> all_pairs(const topology::Mesh& mesh, Bytes largest, Cycle spacing) {
  RandomStream random(7, "zero_load");
  std::vector<Flow> flows;
  for (TileId a = 0; a < mesh.tile_count(); ++a) {
    for (TileId b = 0; b < mesh.tile_count(); ++b) {
      flows.push_back({a, b, 1 + random.below(largest), flows.size() * spacing});
    }
  }
  return flows;
}

void expect_rule(const models::HardwareModel& hardware, const std::string& routing, bool compare_model) {
  const topology::Mesh mesh({{8, 8}, {}, {}});
  const std::vector<Flow> flows = all_pairs(mesh, 5 * hardware.packet_bytes, 4000);
  const FlowResult result = run_flows(mesh, hardware, flows, routing);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const sim::MessageRecord& record = result.messages[i];
    const int hops = mesh.distance(flows[i].source, flows[i].destination);
    const topology::Coord from = mesh.coord(flows[i].source), to = mesh.coord(flows[i].destination);
    const int turns = from.x != to.x && from.y != to.y ? 1 : 0;
    const Cycle expected = compare_model ? models::message_latency(hardware, flows[i].bytes, hops, turns)
                                         : rule(hardware, hops, turns, flows[i].bytes);
    ASSERT_EQ(record.posted, flows[i].start);
    ASSERT_EQ(record.received - record.posted, expected)
        << mesh.name(flows[i].source) << " to " << mesh.name(flows[i].destination) << ", " << flows[i].bytes << " B";
    ASSERT_TRUE(compare_model || record.queued == 0);  // unequal ports make packets of a message wait for each other
  }
}

TEST(ZeroLoad, EveryPairWithWholeRates) { expect_rule(plain_hardware(64, Rational(16), 2, 3), "xy", false); }

TEST(ZeroLoad, EveryPairWithFractionalRates) {
  expect_rule(plain_hardware(100, Rational(53687, 1000), 1, 5), "yx", false);
}

TEST(ZeroLoad, EveryPairWithoutRouterPipeline) { expect_rule(plain_hardware(48, Rational(7, 3), 0, 1), "xy", false); }

TEST(ZeroLoad, EveryPairWithSlowRoutersAndOnePort) {
  models::HardwareModel hardware = plain_hardware(32, Rational(8), 5, 1);
  hardware.nic_ports = models::NicPorts::single;
  hardware.injection_cycles = 1;
  hardware.ejection_cycles = 1;
  expect_rule(hardware, "xy", false);
}

TEST(ZeroLoad, ATurnCostsItsCyclesOnce) {
  models::HardwareModel hardware = plain_hardware(32, Rational(8), 1, 2);
  hardware.turn_cycles = 20;
  hardware.vc_buffer_bytes = 10 * 32;
  expect_rule(hardware, "xy", false);
}

TEST(ZeroLoad, ATurnCostsItsCyclesWithFractionalRates) {
  models::HardwareModel hardware = plain_hardware(100, Rational(53687, 1000), 0, 1);
  hardware.turn_cycles = 13;
  hardware.vc_buffer_bytes = 20 * 100;
  expect_rule(hardware, "yx", true);
}

TEST(ZeroLoad, PortsOfUnequalRatesFollowTheSlowest) {
  models::HardwareModel hardware = plain_hardware(96, Rational(16), 2, 3);
  hardware.injection_bytes_per_cycle = Rational(5);
  hardware.ejection_bytes_per_cycle = Rational(31, 2);
  hardware.vc_buffer_bytes = 8 * 96;
  expect_rule(hardware, "xy", true);
}

TEST(ZeroLoad, FastInjectionAndSlowEjection) {
  models::HardwareModel hardware = plain_hardware(96, Rational(16), 1, 2);
  hardware.injection_bytes_per_cycle = Rational(64);
  hardware.ejection_bytes_per_cycle = Rational(10, 3);
  expect_rule(hardware, "xy", true);
}

}  // namespace
}  // namespace wafersim::test
