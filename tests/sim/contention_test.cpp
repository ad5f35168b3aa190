#include <gtest/gtest.h>

#include <algorithm>

#include "tests/models/csv_table.h"
#include "tests/sim/collective_rig.h"
#include "tests/sim/hand_trace.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"

/// tests/reference/contention_cases.csv: 1 GHz, no router cycles, 500 cycles a link, one packet per message.
/// The table leaves fractions of a cycle out, so simulated times may be later by one cycle for each
/// serialization in the chain.
namespace wafersim::test {
namespace {

constexpr Cycle kHop = 500;

models::HardwareModel table_hardware(Bytes packet_bytes) {
  return plain_hardware(packet_bytes, Rational(53687, 1000), 0, kHop);
}

CsvRow reference(const std::string& name) {
  return row_where(read_reference("contention_cases.csv"), "case", name);
}

/// `bytes` over a link, whole cycles, rounded down: what a bound may claim.
Cycle on_link(Bytes bytes) {
  return (Rational(static_cast<std::int64_t>(bytes)) / Rational(53687, 1000)).floor();
}

/// Flows between tiles of a line, or of an 8x8 mesh.
struct Case {
  std::string name;
  topology::Shape mesh;
  std::vector<std::pair<topology::Coord, topology::Coord>> flows;
};

std::vector<Flow> flows_of(const Case& entry, const topology::Mesh& mesh, Bytes bytes) {
  std::vector<Flow> flows;
  for (const auto& [from, to] : entry.flows)
    flows.push_back({mesh.tile_at(from), mesh.tile_at(to), bytes, 0});
  return flows;
}

Cycle cut_through(const Case& entry) {
  const topology::Mesh mesh({entry.mesh, {}, {}});
  const Bytes bytes = std::stoull(reference(entry.name).at("message_bytes"));
  return isolated_number([&] {
    const FlowResult result = run_flows(mesh, table_hardware(bytes), flows_of(entry, mesh, bytes));
    return result.measurements.cycles;
  });
}

/// Each hop is a message of its own, which the tile in between receives whole before it sends it on.
workloads::Trace relayed(const topology::Mesh& mesh, const std::vector<Flow>& flows) {
  const auto routing = topology::make_routing("xy", mesh);
  HandTrace trace(mesh.tile_count());
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    trace.step(tile, [&](workloads::StepBuilder& builder) {
      for (std::uint32_t flow = 0; flow < flows.size(); ++flow) {
        std::vector<workloads::OpId> ready;
        for (const topology::LinkId link :
             topology::route(*routing, mesh, flows[flow].source, flows[flow].destination)) {
          const TileId from = topology::Mesh::link_source(link);
          const TileId to = mesh.neighbour(from, topology::Mesh::link_direction(link));
          const Bytes bytes = flows[flow].bytes;
          if (to == tile) ready.push_back(builder.receive(workloads::Axis::none, from, flow, bytes, {}));
          if (from == tile) builder.send(workloads::Axis::none, to, flow, bytes, ready);
        }
      }
    });
  }
  return trace.take();
}

Cycle store_and_forward(const Case& entry) {
  const topology::Mesh mesh({entry.mesh, {}, {}});
  const Bytes bytes = std::stoull(reference(entry.name).at("message_bytes"));
  return isolated_number([&] {
    return run_trace(mesh, table_hardware(bytes), relayed(mesh, flows_of(entry, mesh, bytes))).cycles;
  });
}

void expect_later_by_at_most(Cycle simulated, Cycle expected, Cycle slack, const std::string& name) {
  EXPECT_GE(simulated, expected) << name;
  EXPECT_LE(simulated, expected + slack) << name;
}

const topology::Shape kLine{1, 64};
const topology::Shape kSquare{8, 8};

Case along_line(const std::string& name, int hops) { return {name, kLine, {{{0, 0}, {hops, 0}}}}; }

TEST(ContentionCases, SingleFlowsByCutThrough) {
  const std::vector<Case> cases = {along_line("one hop", 1),
                                   along_line("seven hops", 7),
                                   along_line("32 hops", 32),
                                   {"row", kSquare, {{{0, 0}, {4, 0}}}},
                                   {"diagonal", kSquare, {{{0, 0}, {4, 4}}}}};
  for (const Case& entry : cases) {
    const Cycle expected = std::stoull(reference(entry.name).at("cut_through_ns"));
    expect_later_by_at_most(cut_through(entry), expected, 1, entry.name);
  }
}

TEST(ContentionCases, SingleFlowsByStoreAndForward) {
  const std::vector<Case> cases = {along_line("one hop", 1),
                                   along_line("seven hops", 7),
                                   along_line("32 hops", 32),
                                   {"row", kSquare, {{{0, 0}, {4, 0}}}},
                                   {"diagonal", kSquare, {{{0, 0}, {4, 4}}}}};
  for (const Case& entry : cases) {
    const CsvRow row = reference(entry.name);
    const Cycle hops = std::stoull(row.at("hops"));
    expect_later_by_at_most(store_and_forward(entry), std::stoull(row.at("message_store_and_forward_ns")),
                            hops, entry.name);
  }
}

const Case kIncast{
    "incast of four", kLine, {{{0, 0}, {4, 0}}, {{1, 0}, {4, 0}}, {{2, 0}, {4, 0}}, {{3, 0}, {4, 0}}}};
const Case kShared{"four flows over shared links",
                   kLine,
                   {{{0, 0}, {8, 0}}, {{1, 0}, {9, 0}}, {{2, 0}, {10, 0}}, {{3, 0}, {11, 0}}}};

/// One link carries the four messages, and the last of them has at least that link's latency before it.
/// Nothing keeps the link idle, so besides serialization only the hops of one message count.
TEST(ContentionCases, SharedLinksCarryFourMessagesOneAfterTheOther) {
  const Bytes bytes = std::stoull(reference(kIncast.name).at("message_bytes"));
  expect_later_by_at_most(cut_through(kIncast), on_link(4 * bytes) + kHop, 4 + 3 * kHop, kIncast.name);
  expect_later_by_at_most(cut_through(kShared), on_link(4 * bytes) + kHop, 4 + 8 * kHop, kShared.name);
}

TEST(ContentionCases, SharedLinksByStoreAndForward) {
  for (const auto& [entry, chain] : {std::pair{kIncast, 4}, std::pair{kShared, 8}}) {
    const Cycle expected = std::stoull(reference(entry.name).at("message_store_and_forward_ns"));
    expect_later_by_at_most(store_and_forward(entry), expected, static_cast<Cycle>(chain), entry.name);
  }
}

CollectiveCase ring(const topology::Shape& mesh) {
  return {.mesh = mesh, .bytes = Bytes{64} << 20, .chunks = 4};
}

TEST(ContentionCases, RingOfEightInFourChunks) {
  const CollectiveCase collective = ring({2, 4});
  const Cycle steps = 2 * 7 * 4;
  const Bytes message = collective.bytes / (8 * 4);
  const Cycle simulated = collective_cycles(collective, table_hardware(message));
  EXPECT_EQ(simulated, steps * (on_link(message) + 1 + kHop));
  // "2215500 = ..."
  const Cycle expected =
      std::stoull(reference("ring all-reduce 64 MiB, 4 chunks, 8 ranks").at("cut_through_ns"));
  expect_later_by_at_most(simulated, expected, steps, "ring of 8");
}

TEST(ContentionCases, RingOfSixtyFourIsNotBelowTheLinkBound) {
  const CollectiveCase collective = ring({8, 8});
  const Cycle simulated = collective_cycles(collective, table_hardware(collective.bytes / (64 * 4)));
  // One way round: every link carries 2 (1 - 1/64) D.
  EXPECT_GE(simulated, on_link(2 * collective.bytes / 64 * 63));
  const CsvRow row = reference("ring all-reduce 64 MiB, 64 ranks, chunks overlap");
  EXPECT_GT(simulated, std::stoull(row.at("astra_sim_unaware_ns")));
}

/// Two messages of forty packets over one link, from different tiles: neither gets ahead by more than a
/// packet.
TEST(Contention, FlowsShareALinkPacketByPacket) {
  const topology::Mesh mesh({{1, 3}, {}, {}});
  const models::HardwareModel hardware = plain_hardware(640, Rational(16), 1, 2);
  const Bytes bytes = 40 * hardware.packet_bytes;
  const FlowResult result = run_flows(mesh, hardware, {{0, 2, bytes, 0}, {1, 2, bytes, 0}});
  const Cycle packet = 40;
  const Cycle first = std::min(result.messages[0].received, result.messages[1].received);
  const Cycle last = std::max(result.messages[0].received, result.messages[1].received);
  EXPECT_LE(last - first, packet);
  EXPECT_GE(last, 80 * packet);
  EXPECT_LE(last, 80 * packet + models::message_latency(hardware, 1, 2));
}

}  // namespace
}  // namespace wafersim::test
