#include <gtest/gtest.h>

#include "tests/sim/machine.h"
#include "tests/sim/router_rig.h"

/// One router, cycle by cycle. R = 2, L = 3, Lc = 5; packets of 64 B take S = 4 cycles; a VC buffer holds two
/// of them. Equality of the cycle in which something happens says that nothing happened in the cycle before.
namespace wafersim::test {
namespace {

using Cycles = std::vector<Cycle>;
using Packets = std::vector<std::uint32_t>;

constexpr Cycle kRouter = 2, kLink = 3, kCredit = 5, kSerialization = 4;
constexpr TileId kNorth = RouterRig::kNeighbours[north], kEast = RouterRig::kNeighbours[east],
                 kSouth = RouterRig::kNeighbours[south], kHere = RouterRig::kHere;

models::HardwareModel machine(Bytes buffer_packets = 2) {
  models::HardwareModel hardware = plain_hardware(64, Rational(16), kRouter, kLink);
  hardware.credit_cycles = kCredit;
  hardware.vc_buffer_bytes = buffer_packets * 64;
  return hardware;
}

TEST(Router, BidsAfterItsPipelineAndForwardsAtOnce) {
  RouterRig rig(machine());
  rig.arrive(10, 14, west, 1, kEast);
  rig.run();
  ASSERT_EQ(rig.sent().size(), 1U);
  const RouterRig::Sent& sent = rig.sent()[0];
  const Cycle grant = 10 + kRouter;
  EXPECT_EQ(sent.port, unsigned{east});
  EXPECT_EQ(sent.at, grant);
  EXPECT_EQ(sent.head_at, grant + kLink);
  EXPECT_EQ(sent.tail_at, (sim::ExactTime{grant + kSerialization + kLink, 0}));
  ASSERT_EQ(rig.credits().size(), 1U);
  const RouterRig::Credit& credit = rig.credits()[0];
  EXPECT_EQ(credit.input, unsigned{west});
  EXPECT_EQ(credit.vc, 1U);
  EXPECT_EQ(credit.bytes, 64U);
  EXPECT_EQ(credit.told_at, grant);
  EXPECT_EQ(credit.at, grant + kSerialization + kCredit);
  const sim::PortStatistics& statistics = rig.engine().statistics(topology::Direction::east);
  EXPECT_EQ(statistics.packets, 1U);
  EXPECT_EQ(statistics.busy, kSerialization);
  EXPECT_EQ(statistics.queued, 0U);
}

TEST(Router, WithoutPipelineBidsInTheCycleOfArrival) {
  models::HardwareModel hardware = machine();
  hardware.router_cycles = 0;
  RouterRig rig(hardware);
  rig.arrive(10, 14, north, 0, kSouth);
  rig.run();
  EXPECT_EQ(rig.grants(), Cycles{10});
}

TEST(Router, EjectsAndInjects) {
  RouterRig rig(machine());
  rig.arrive(10, 14, west, 0, kHere);
  rig.arrive(10, 14, local + north, 0, kNorth);
  rig.run();
  EXPECT_EQ(rig.grants(), (Cycles{12, 12}));
  for (const RouterRig::Sent& sent : rig.sent()) {
    EXPECT_EQ(sent.port, sent.packet == 0 ? unsigned{local} : unsigned{north});
    EXPECT_EQ(sent.tail_at.whole, 12 + kSerialization + (sent.packet == 0 ? 0 : kLink));
  }
}

TEST(Router, ThirdPacketWaitsForTheCreditOfTheFirst) {
  RouterRig rig(machine());
  for (Cycle i = 0; i < 4; ++i) rig.arrive(10 + 4 * i, 14 + 4 * i, west, 0, kEast);
  rig.credit(30, east, 0, 64, 45);
  rig.credit(60, east, 0, 64, 61);
  rig.run();
  EXPECT_EQ(rig.order(), (Packets{0, 1, 2, 3}));
  EXPECT_EQ(rig.grants(), (Cycles{12, 16, 45, 61}));
  EXPECT_EQ(rig.engine().statistics(topology::Direction::east).queued, 45 - 20 + 61 - 49U);
}

TEST(Router, CreditKnownLongBeforeCountsWhenItArrives) {
  RouterRig rig(machine());
  for (Cycle i = 0; i < 3; ++i) rig.arrive(10 + 4 * i, 14 + 4 * i, west, 0, kEast);
  rig.credit(15, east, 0, 64, 50);
  rig.run();
  EXPECT_EQ(rig.grants(), (Cycles{12, 16, 50}));
}

TEST(Router, VirtualChannelsHaveCreditsOfTheirOwn) {
  RouterRig rig(machine(1));
  rig.arrive(10, 14, west, 0, kEast);
  rig.arrive(10, 14, north, 0, kEast);
  rig.arrive(11, 15, north, 1, kEast);  // passes the one without a credit
  rig.credit(20, east, 0, 64, 30);
  rig.run();
  EXPECT_EQ(rig.order(), (Packets{1, 2, 0}));
  EXPECT_EQ(rig.grants(), (Cycles{12, 16, 30}));
}

TEST(Router, ServesInputsInTheOrderOfPortsThenChannels) {
  RouterRig rig(machine(10));
  // Given in the opposite order.
  for (const unsigned input :
       {local + south, unsigned{west}, unsigned{south}, unsigned{east}, unsigned{north}}) {
    for (const unsigned vc : {1U, 0U}) rig.arrive(10, 14, input, vc, kSouth);
  }
  rig.run();
  EXPECT_EQ(rig.order(), (Packets{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}));
  Cycles every_fourth;
  for (Cycle i = 0; i < 10; ++i) every_fourth.push_back(12 + kSerialization * i);
  EXPECT_EQ(rig.grants(), every_fourth);
}

TEST(Router, TwoInputsTakeTurns) {
  RouterRig rig(machine(10));
  for (Cycle i = 0; i < 3; ++i) rig.arrive(10 + i, 14 + i, north, 0, kEast);  // 0, 1, 2
  for (Cycle i = 0; i < 3; ++i) rig.arrive(10 + i, 14 + i, west, 0, kEast);   // 3, 4, 5
  rig.run();
  EXPECT_EQ(rig.order(), (Packets{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(rig.grants(), (Cycles{12, 16, 20, 24, 28, 32}));
}

/// Half a credit wakes the arbiter, which can grant nothing; the turn stays with the input after the last
/// winner.
TEST(Router, TurnMovesAtGrantsOnly) {
  RouterRig rig(machine(1));
  rig.arrive(10, 14, north, 0, kEast);  // 0: the turn is west's from now on
  rig.arrive(14, 18, north, 0, kEast);  // 1
  rig.arrive(14, 18, west, 0, kEast);   // 2
  rig.credit(20, east, 0, 32, 30);
  rig.credit(21, east, 0, 32, 40);
  rig.credit(41, east, 0, 64, 50);
  rig.run();
  EXPECT_EQ(rig.order(), (Packets{0, 2, 1}));
  EXPECT_EQ(rig.grants(), (Cycles{12, 40, 50}));
}

TEST(Router, IdleArbiterWithAllCreditsIsBackInItsFirstPosition) {
  RouterRig rig(machine());
  rig.arrive(10, 14, north, 0, kEast);
  rig.credit(20, east, 0, 64, 30);
  rig.arrive(98, 102, north, 0, kEast);  // 1: first in order
  rig.arrive(98, 102, west, 0, kEast);   // 2: next in turn if the arbiter still remembered
  rig.credit(110, east, 0, 64, 120);
  rig.credit(110, east, 0, 64, 120);
  rig.run();
  EXPECT_EQ(rig.order(), (Packets{0, 1, 2}));
}

TEST(Router, IdleArbiterThatMissesACreditKeepsItsTurn) {
  RouterRig rig(machine(4));
  rig.arrive(10, 14, north, 0, kEast);
  rig.arrive(98, 102, north, 0, kEast);
  rig.arrive(98, 102, west, 0, kEast);
  rig.run();
  EXPECT_EQ(rig.order(), (Packets{0, 2, 1}));
}

TEST(Router, PacketBehindAnotherBidsWhenThatHasLeft) {
  RouterRig rig(machine(1));
  rig.arrive(10, 14, west, 0, kEast);
  rig.arrive(14, 18, west, 0, kEast);   // waits for a credit until 45, leaves at 49
  rig.arrive(18, 22, west, 0, kSouth);  // its output is free all the time
  rig.arrive(18, 22, west, 1, kSouth);  // another channel is not held up
  rig.credit(30, east, 0, 64, 45);
  rig.run();
  EXPECT_EQ(rig.order(), (Packets{0, 3, 1, 2}));
  EXPECT_EQ(rig.grants(), (Cycles{12, 20, 45, 49}));
  EXPECT_EQ(rig.engine().statistics(topology::Direction::south).queued, 0U);
}

/// The tail comes at 40 through a slow port: it leaves at 42, and port and buffer are held until then.
TEST(Router, SlowerPortUpstreamIsNotOvertaken) {
  RouterRig rig(machine());
  rig.arrive(10, 40, west, 0, kEast);
  rig.arrive(10, 14, local + east, 0, kEast);
  rig.run();
  EXPECT_EQ(rig.order(), (Packets{0, 1}));
  EXPECT_EQ(rig.grants(), (Cycles{12, 42}));
  EXPECT_EQ(rig.sent()[0].head_at, 12 + kLink);
  EXPECT_EQ(rig.sent()[0].tail_at.whole, 42 + kLink);
  EXPECT_EQ(rig.credits()[0].at, 42 + kCredit);
  EXPECT_EQ(rig.engine().statistics(topology::Direction::east).busy, 30 + kSerialization);
}

/// 64 B at 3 B a cycle: 21 1/3 cycles. The second packet is granted in the cycle in which the first ends and
/// starts where it ended.
TEST(Router, CarriesRemaindersOfACycle) {
  models::HardwareModel hardware = machine();
  hardware.link_bytes_per_cycle = Rational(3);
  RouterRig rig(hardware);
  rig.arrive(10, 14, west, 0, kEast);
  rig.arrive(10, 14, north, 1, kEast);
  rig.run();
  const std::uint64_t third = rig.scale() / 3;
  EXPECT_EQ(rig.order(), (Packets{1, 0}));
  EXPECT_EQ(rig.grants(), (Cycles{12, 33}));
  EXPECT_EQ(rig.sent()[0].tail_at, (sim::ExactTime{33 + kLink, third}));
  EXPECT_EQ(rig.sent()[1].tail_at, (sim::ExactTime{54 + kLink, 2 * third}));
  EXPECT_EQ(rig.credits()[0].at, 34 + kCredit);
  EXPECT_EQ(rig.credits()[1].at, 55 + kCredit);
}

/// Packets that take less than a cycle leave one a cycle.
TEST(Router, GrantsOnePacketACycle) {
  RouterRig rig(machine());
  for (const unsigned input : {unsigned{north}, unsigned{south}, unsigned{west}})
    rig.arrive(10, 11, input, 0, kEast, 4);
  rig.run();
  EXPECT_EQ(rig.grants(), (Cycles{12, 13, 14}));
}

TEST(Router, EjectionPortsOfDirectionsAreIndependent) {
  RouterRig rig(machine());
  for (const unsigned input : {unsigned{north}, unsigned{east}, unsigned{west}})
    rig.arrive(10, 14, input, 0, kHere);
  rig.run();
  EXPECT_EQ(rig.grants(), (Cycles{12, 12, 12}));
}

TEST(Router, SingleEjectionPortIsShared) {
  models::HardwareModel hardware = machine();
  hardware.nic_ports = models::NicPorts::single;
  RouterRig rig(hardware);
  for (const unsigned input : {unsigned{north}, unsigned{east}, unsigned{west}})
    rig.arrive(10, 14, input, 0, kHere);
  rig.run();
  EXPECT_EQ(rig.order(), (Packets{0, 1, 2}));
  EXPECT_EQ(rig.grants(), (Cycles{12, 16, 20}));
}

TEST(Router, TellsWhichPacketsAreStuck) {
  RouterRig rig(machine(1));
  rig.arrive(10, 14, west, 0, kEast);
  EXPECT_EQ(rig.engine().describe_stall("middle"), "");
  rig.arrive(14, 18, west, 0, kEast);
  rig.run();
  const std::string text = rig.engine().describe_stall("middle");
  EXPECT_NE(text.find("middle: input port 3 VC 0 holds a packet of 64 B"), std::string::npos) << text;
}

}  // namespace
}  // namespace wafersim::test
