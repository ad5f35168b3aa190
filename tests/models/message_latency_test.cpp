#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "models/cost.h"
#include "tests/models/csv_table.h"
#include "tests/models/test_models.h"

namespace wafersim::models {
namespace {

/// A port of a message's path: its rate and the latency of the wire behind it.
struct Port {
  Rational rate;
  Cycle latency = 0;
};

std::vector<Port> path(const HardwareModel& hardware, int hops) {
  std::vector<Port> ports{{hardware.injection_bytes_per_cycle, hardware.injection_cycles}};
  for (int hop = 0; hop < hops; ++hop) ports.push_back({hardware.link_bytes_per_cycle, hardware.link_cycles});
  ports.push_back({hardware.ejection_bytes_per_cycle, hardware.ejection_cycles});
  return ports;
}

std::vector<Bytes> packets_of(Bytes message, Bytes packet) {
  std::vector<Bytes> sizes(message / packet, packet);
  if (message % packet != 0) sizes.push_back(message % packet);
  return sizes;
}

Rational exact(std::uint64_t value) { return Rational(static_cast<std::int64_t>(value)); }

/// The packet network's rules, packet by packet and port by port, for one flow on idle links: when a packet
/// bids, is granted with a credit and leaves, the end of a port's work being a fraction.
Cycle replay(const HardwareModel& hardware, Bytes message, int hops) {
  const std::vector<Port> ports = path(hardware, hops);
  const std::vector<Bytes> packets = packets_of(message, hardware.packet_bytes);
  const std::size_t slots = hardware.vc_buffer_bytes / hardware.packet_bytes;
  std::vector<std::vector<Rational>> left(packets.size(), std::vector<Rational>(ports.size()));
  for (std::size_t i = 0; i < packets.size(); ++i) {
    Cycle arrival = 0;
    for (std::size_t p = 0; p < ports.size(); ++p) {
      Cycle grant = arrival;
      Rational start = exact(grant);
      if (i > 0) {
        grant = std::max(grant, left[i - 1][p].floor());
        start = left[i - 1][p];
      }
      if (i >= slots && p + 1 < ports.size()) {
        grant = std::max(grant, left[i - slots][p + 1].ceil() + hardware.credit_cycles);
      }
      left[i][p] = std::max(start, exact(grant)) + exact(packets[i]) / ports[p].rate;
      if (p > 0) {
        const Rational upstream_tail = left[i][p - 1] + exact(ports[p - 1].latency + hardware.router_cycles);
        left[i][p] = std::max(left[i][p], upstream_tail);
      }
      arrival = grant + ports[p].latency + hardware.router_cycles;
    }
  }
  return left.back().back().ceil() + ports.back().latency;
}

Rational any_rate() { return Rational(*rc::gen::inRange(1, 40), *rc::gen::inRange(1, 12)); }

HardwareModel any_network() {
  HardwareModel hardware = test::plain_hardware();
  hardware.link_bytes_per_cycle = any_rate();
  hardware.injection_bytes_per_cycle = any_rate();
  hardware.ejection_bytes_per_cycle = any_rate();
  hardware.router_cycles = *rc::gen::inRange<Cycle>(0, 8);
  hardware.link_cycles = *rc::gen::inRange<Cycle>(1, 20);
  hardware.credit_cycles = *rc::gen::inRange<Cycle>(1, 20);
  hardware.injection_cycles = *rc::gen::inRange<Cycle>(0, 20);
  hardware.ejection_cycles = *rc::gen::inRange<Cycle>(0, 5);
  hardware.packet_bytes = *rc::gen::inRange<Bytes>(1, 64);
  return hardware;
}

RC_GTEST_PROP(MessageLatency, EqualsTheRulesPacketByPacket, ()) {
  HardwareModel hardware = any_network();
  const auto bytes = *rc::gen::inRange<Bytes>(1, 4000);
  const auto hops = *rc::gen::inRange(0, 12);
  // A message to its own tile passes no mesh link, whose rate sets the default buffer.
  const Rational rate = hops > 0
                            ? hardware.link_bytes_per_cycle
                            : std::min(hardware.injection_bytes_per_cycle, hardware.ejection_bytes_per_cycle);
  hardware.vc_buffer_bytes =
      default_vc_buffer(hardware.packet_bytes, rate, hardware.router_cycles,
                        std::max(hardware.link_cycles, hardware.injection_cycles), hardware.credit_cycles);
  RC_ASSERT(message_latency(hardware, bytes, hops) == replay(hardware, bytes, hops));
}

TEST(MessageLatency, OnePacketByHand) {
  const HardwareModel hardware = test::plain_hardware();  // R = 2, L = 4, 256 B/cycle
  EXPECT_EQ(message_latency(hardware, 65'536, 1), 2u * 2 + 4 + 256);
  EXPECT_EQ(message_latency(hardware, 65'536, 5), 6u * 2 + 5 * 4 + 256);
  EXPECT_EQ(message_latency(hardware, 1, 5), 6u * 2 + 5 * 4 + 1);
}

TEST(MessageLatency, OwnTileCostsRouterAndSerialization) {
  HardwareModel hardware = test::plain_hardware();
  EXPECT_EQ(message_latency(hardware, 65'536, 0), 2u + 256);
  hardware.link_bytes_per_cycle = Rational(1);
  EXPECT_EQ(message_latency(hardware, 65'536, 0), 2u + 256) << "no mesh link is passed";
}

TEST(MessageLatency, PacketsOfAMessageShareOneRounding) {
  HardwareModel hardware = test::plain_hardware();
  hardware.packet_bytes = 10;
  for (Rational* rate : {&hardware.link_bytes_per_cycle, &hardware.injection_bytes_per_cycle,
                         &hardware.ejection_bytes_per_cycle}) {
    *rate = Rational(3);
  }
  EXPECT_EQ(message_latency(hardware, 30, 1), 8u + 10) << "not three times ceil(10 / 3)";
  EXPECT_EQ(message_latency(hardware, 31, 1), 8u + 11);
}

TEST(MessageLatency, SlowestPortDecides) {
  HardwareModel hardware = test::plain_hardware();
  hardware.injection_bytes_per_cycle = Rational(128);
  EXPECT_EQ(message_latency(hardware, 65'536, 3), 4u * 2 + 3 * 4 + 512);
  hardware.ejection_bytes_per_cycle = Rational(64);
  EXPECT_EQ(message_latency(hardware, 65'536, 3), 4u * 2 + 3 * 4 + 1024);
  hardware.link_bytes_per_cycle = Rational(32);
  EXPECT_EQ(message_latency(hardware, 65'536, 3), 4u * 2 + 3 * 4 + 2048);
}

TEST(MessageLatency, NicLatenciesAndOverheads) {
  HardwareModel hardware = test::plain_hardware();
  hardware.injection_cycles = 10;
  hardware.ejection_cycles = 100;
  hardware.message_overhead = 1000;
  EXPECT_EQ(message_latency(hardware, 256, 1), 10u + 100 + 2 * 1000 + 2 * 2 + 4 + 1);
}

TEST(MessageLatency, IdealNetworkCostsNothing) {
  HardwareModel hardware = test::plain_hardware();
  hardware.fidelity = Fidelity::ideal;
  EXPECT_EQ(message_latency(hardware, 1 << 20, 30), 0u);
}

TEST(MessageLatency, RefusesNegativeHops) {
  EXPECT_THROW(message_latency(test::plain_hardware(), 1, -1), InternalError);
}

TEST(MessageLatency, PlainCreditRuleWouldLoseACycleWhenSerializationIsFractional) {
  // S = 10.5 and a loop of 21 = 2 S: three packets satisfy (k - 1) S >= L + R + Lc, yet a credit that is back
  // at the ceil of a tail's time misses the grant at the floor of the port's.
  HardwareModel hardware = test::plain_hardware();
  for (Rational* rate : {&hardware.link_bytes_per_cycle, &hardware.injection_bytes_per_cycle,
                         &hardware.ejection_bytes_per_cycle}) {
    *rate = Rational(2);
  }
  hardware.packet_bytes = 21;
  hardware.router_cycles = 1;
  hardware.link_cycles = 10;
  hardware.credit_cycles = 10;
  const Bytes message = 21 * 40;
  hardware.vc_buffer_bytes = 3 * 21;
  EXPECT_GT(replay(hardware, message, 4), message_latency(hardware, message, 4));
  hardware.vc_buffer_bytes = default_vc_buffer(21, Rational(2), 1, 10, 10);
  EXPECT_EQ(hardware.vc_buffer_bytes, 4u * 21);
  EXPECT_EQ(replay(hardware, message, 4), message_latency(hardware, message, 4));
}

/// The machine of tests/reference/contention_cases.csv: 1 GHz, R = 0, one packet per message.
HardwareModel contention_machine(const test::CsvRow& row) {
  WaferSpec wafer;
  wafer.mesh.shape = {1, 64};
  Rational bytes_per_ns;
  EXPECT_TRUE(Rational::parse_decimal(row.at("link_bytes_per_ns"), bytes_per_ns));
  wafer.link.bandwidth = Bandwidth::per_second(bytes_per_ns * Rational(1'000'000'000));
  wafer.link.latency = {Rational(std::stoll(row.at("hop_latency_ns")), 1'000'000'000), false};
  RouterSpec router;
  router.pipeline = Duration::of_cycles(0);
  NetworkSpec network;
  network.packet_bytes = {std::stoull(row.at("message_bytes"))};
  return resolve_hardware(wafer, router, network);
}

class ContentionTable : public testing::TestWithParam<const char*> {};

TEST_P(ContentionTable, CutThroughOfOneMessage) {
  const auto rows = test::read_reference("contention_cases.csv");
  const test::CsvRow& row = test::row_where(rows, "case", GetParam());
  const Cycle cycles = message_latency(contention_machine(row), std::stoull(row.at("message_bytes")),
                                       std::stoi(row.at("hops")));
  EXPECT_NEAR(static_cast<double>(cycles), std::stod(row.at("cut_through_ns")), 1.0);
}

INSTANTIATE_TEST_SUITE_P(SingleMessages, ContentionTable,
                         testing::Values("one hop", "seven hops", "32 hops", "row", "diagonal"));

}  // namespace
}  // namespace wafersim::models
