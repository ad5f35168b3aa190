// Reticles, several wafers, rings, shared routers and express links in both engines: closed forms, equality, saturation, datelines.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/ideal_saturation.h"
#include "base/error.h"
#include "base/random.h"
#include "tests/sim/dump.h"
#include "tests/sim/flit_rig.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/pick.h"

namespace wafersim::test {
namespace {

using topology::Coord;
using topology::Direction;
using topology::Mesh;
using topology::Shape;
using topology::Wrap;

/// A wafer whose links take 16 B a cycle and 3 cycles, those over reticle borders 7 cycles (and fewer bytes), those between
/// wafers 25 cycles (likewise).
struct Variant {
  const char* name;
  Shape shape;
  Wrap wrap = Wrap::none;
  std::optional<Cycle> wrap_cycles = {};
  std::optional<Shape> reticle = {};
  Rational border_rate = Rational(16);
  Shape concentration = {1, 1};
  std::optional<Shape> span = {};  ///< of express links
  Shape every = {1, 1};
  std::optional<Cycle> express_cycles = {};
  Shape wafers = {1, 1};  ///< `shape` is that of all

  models::WaferSpec wafer() const {
    models::WaferSpec wafer;
    wafer.mesh.shape = {shape.rows / wafers.rows, shape.cols / wafers.cols};
    if (wafers.size() > 1) wafer.wafers = models::WafersSpec{wafers, Bandwidth::per_clock(border_rate), Duration::of_cycles(25)};
    wafer.mesh.wrap = wrap;
    wafer.link = {Bandwidth::per_clock(Rational(16)), Duration::of_cycles(3)};
    if (wrap_cycles) wafer.wrap_latency = Duration::of_cycles(static_cast<std::int64_t>(*wrap_cycles));
    if (reticle) wafer.reticle = models::ReticleSpec{*reticle, Bandwidth::per_clock(border_rate), Duration::of_cycles(7)};
    wafer.mesh.concentration = concentration;
    if (span) wafer.express = models::ExpressSpec{*span, every, {}, {}};
    if (express_cycles) wafer.express->latency = Duration::of_cycles(static_cast<std::int64_t>(*express_cycles));
    if (concentration.size() > 1) wafer.nic.ports = models::NicPorts::single;
    wafer.nic.injection_latency = Duration::of_cycles(1);
    wafer.nic.ejection_latency = Duration::of_cycles(2);
    return wafer;
  }
  Mesh mesh() const { return Mesh(models::mesh_spec(wafer())); }
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

std::vector<Variant> variants() {
  return {{"reticles", {5, 7}, Wrap::none, {}, Shape{2, 3}, Rational(16)},
          {"slow_reticles", {4, 6}, Wrap::none, {}, Shape{3, 2}, Rational(5)},
          {"folded_torus", {4, 5}, Wrap::both},
          {"straight_torus", {5, 4}, Wrap::both, 11},
          {"half_torus_x", {2, 6}, Wrap::x, 4},
          {"half_torus_y", {7, 1}, Wrap::y},
          {"folded_torus_with_reticles", {6, 5}, Wrap::both, {}, Shape{2, 2}, Rational(16)},
          {"straight_torus_with_slow_reticles", {3, 8}, Wrap::both, 20, Shape{3, 2}, Rational(16, 3)},
          {"shared_routers", {4, 6}, Wrap::none, {}, {}, Rational(16), {2, 2}},
          {"shared_routers_with_slow_reticles", {6, 6}, Wrap::none, {}, Shape{4, 3}, Rational(5), {2, 1}},
          {"shared_routers_on_a_straight_torus", {6, 8}, Wrap::both, 13, {}, Rational(16), {2, 2}},
          {"express_links", {5, 8}, Wrap::none, {}, {}, Rational(16), {1, 1}, Shape{2, 3}},
          {"fast_express_cube", {3, 9}, Wrap::none, {}, {}, Rational(16), {1, 1}, Shape{1, 4}, {1, 4}, 2},
          {"express_links_over_reticles", {4, 7}, Wrap::none, {}, Shape{2, 2}, Rational(16), {1, 1}, Shape{1, 3}, {1, 1}, 5},
          {"express_links_of_shared_routers", {4, 12}, Wrap::none, {}, {}, Rational(16), {2, 2}, Shape{1, 3}},
          {"wafers", {4, 6}, Wrap::none, {}, {}, Rational(16), {1, 1}, {}, {1, 1}, {}, {2, 2}},
          {"wafers_of_reticles_with_slow_links", {5, 9}, Wrap::none, {}, Shape{2, 2}, Rational(5), {1, 1}, {}, {1, 1}, {}, {1, 3}},
          {"wafers_of_shared_routers", {4, 8}, Wrap::none, {}, {}, Rational(16), {2, 1}, {}, {1, 1}, {}, {1, 2}}};
}

/// Where the tiles of a folded ring lie, in the order of the ring: 0 2 4 .. 5 3 1.
std::vector<int> folded(int length) {
  std::vector<int> places;
  for (int place = 0; place < length; place += 2) places.push_back(place);
  for (int place = length - 1 - length % 2; place > 0; place -= 2) places.push_back(place);
  return places;
}

/// Latency and borders of a link, from the coordinates of its ends.
struct Wire {
  Cycle cycles;
  bool slow;
};
Wire wire(const Variant& variant, Coord from, Coord to) {
  const bool along_x = from.y == to.y;
  const int shared = along_x ? variant.concentration.cols : variant.concentration.rows;
  const int length = (along_x ? variant.shape.cols : variant.shape.rows) / shared;
  int a = along_x ? from.x : from.y, b = along_x ? to.x : to.y;
  const int wafer = along_x ? variant.shape.cols / variant.wafers.cols : variant.shape.rows / variant.wafers.rows;
  if (a / wafer != b / wafer) return {25, true};
  const bool ring = length > 2 && (variant.wrap == Wrap::both || variant.wrap == (along_x ? Wrap::x : Wrap::y));
  Cycle cycles = 3;
  if (ring && !variant.wrap_cycles) {
    cycles = 6;
    const std::vector<int> places = folded(length);
    a = places[static_cast<std::size_t>(a)];
    b = places[static_cast<std::size_t>(b)];
  } else if (ring && std::abs(a - b) > shared) {
    cycles = *variant.wrap_cycles;
  } else {
    const bool skips = std::abs(a - b) > shared;
    cycles = skips && variant.express_cycles ? *variant.express_cycles : 3 * static_cast<Cycle>(std::abs(a - b));
  }
  if (!variant.reticle) return {cycles, false};
  const int every = along_x ? variant.reticle->cols : variant.reticle->rows;
  if (variant.wafers.size() > 1) a %= wafer, b %= wafer;
  const auto borders = static_cast<Cycle>(std::abs(a / every - b / every));
  return {cycles + 4 * borders, borders > 0};
}

struct Way {
  Cycle hops = 0;
  Cycle wires = 0;
  bool slow = false;
};
Way way(const Variant& variant, const Mesh& mesh, TileId from, TileId to, const std::string& routing) {
  Way result;
  const auto made = topology::make_routing(routing, mesh);
  for (const topology::LinkId link : topology::route(*made, mesh, from, to)) {
    const TileId source = Mesh::link_source(link);
    const Wire one = wire(variant, mesh.coord(source), mesh.coord(mesh.neighbour(source, Mesh::link_direction(link))));
    ++result.hops;
    result.wires += one.cycles;
    result.slow = result.slow || one.slow;
  }
  return result;
}

class ZeroLoadOf : public testing::TestWithParam<Variant> {};

TEST_P(ZeroLoadOf, PacketsIsTheSumOfItsLinks) {
  const Variant& variant = GetParam();
  const Mesh mesh = variant.mesh();
  models::RouterSpec router;
  router.pipeline = Duration::of_cycles(2);
  models::NetworkSpec network;
  network.packet_bytes = {100};
  models::HardwareModel hardware = models::resolve_hardware(variant.wafer(), router, network);
  hardware.vector_flops_per_cycle = Rational(1);  // by which flows wait for their start
  RandomStream random(11, variant.name);
  std::vector<Flow> flows;
  for (TileId a = 0; a < mesh.tile_count(); ++a) {
    for (TileId b = 0; b < mesh.tile_count(); ++b) flows.push_back({a, b, 1 + random.below(500), flows.size() * 1000});
  }
  const FlowResult result = run_flows(mesh, hardware, flows, "xy");
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const Way expected = way(variant, mesh, flows[i].source, flows[i].destination, "xy");
    const Rational rate = expected.slow ? variant.border_rate : Rational(16);
    ASSERT_EQ(static_cast<int>(expected.hops), mesh.distance(flows[i].source, flows[i].destination));
    ASSERT_EQ(result.messages[i].received - result.messages[i].posted,
              1 + (expected.hops + 1) * 2 + expected.wires + 2 + cycles_at_rate(flows[i].bytes, rate))
        << mesh.name(flows[i].source) << " to " << mesh.name(flows[i].destination) << ", " << flows[i].bytes << " B";
  }
}

/// With p3 a head is as fast as the flits behind it; else these catch up behind a slow link.
TEST_P(ZeroLoadOf, FlitsIsTheSumOfItsLinks) {
  Variant variant = GetParam();
  if (variant.border_rate != Rational(16)) variant.border_rate = Rational(8);
  const Mesh mesh = variant.mesh();
  models::RouterSpec router;
  router.flit.preset = models::PipelinePreset::p3;
  models::NetworkSpec network;
  network.fidelity = models::Fidelity::flit;
  const models::HardwareModel hardware = models::resolve_hardware(variant.wafer(), router, network);
  ASSERT_EQ(hardware.flit.flit_bytes, 16u);
  for (const Cycle flits : {1, 6}) {
    std::vector<workloads::TracedPacket> packets;
    for (TileId a = 0; a < mesh.tile_count(); ++a) {
      for (TileId b = 0; b < mesh.tile_count(); ++b) packets.push_back({packets.size() * 400, a, b, 16 * flits});
    }
    for (const char* routing : {"xy", "yx"}) {
      const FlitRun run = run_packets(mesh, hardware, packets, routing);
      ASSERT_EQ(run.delivered.size(), packets.size());
      for (const sim::DeliveredPacket& packet : run.delivered) {
        const Way expected = way(variant, mesh, packet.source, packet.destination, routing);
        const Cycle apart = expected.slow && variant.border_rate == Rational(8) ? 2 : 1;
        ASSERT_EQ(packet.arrived - packet.created,
                  1 + 1 + (expected.hops + 1) * hardware.router_cycles + expected.wires + 2 + (flits - 1) * apart)
            << mesh.name(packet.source) << " to " << mesh.name(packet.destination) << " by " << routing;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Variants, ZeroLoadOf, testing::ValuesIn(variants()),
                         [](const auto& test) { return std::string(test.param.name); });

std::string text_of(const FlowResult& result) {
  std::string text = dump(result.measurements);
  for (const sim::MessageRecord& message : result.messages) {
    text += std::to_string(message.injected) + " " + std::to_string(message.received) + " " + std::to_string(message.queued) + "\n";
  }
  return text;
}

/// Random rings, layouts, borders, shared routers, express links and faults.
topology::MeshSpec draw_mesh(RandomStream& random, bool faults) {
  const auto below = [&random](int bound) { return static_cast<int>(random.below(static_cast<std::uint64_t>(bound))); };
  topology::MeshSpec spec;
  spec.shape = {1 + below(6), 1 + below(7)};
  spec.wrap = pick(random, std::vector{Wrap::none, Wrap::x, Wrap::y, Wrap::both});
  spec.wrap_layout = pick(random, std::vector{topology::WrapLayout::folded, topology::WrapLayout::straight});
  if (below(2) == 0) spec.reticle = topology::ReticleGrid{{1 + below(3), 1 + below(3)}, Rational(1, 1 + below(4))};
  const int grid = below(3);
  if (grid == 0) {
    spec.concentration = pick(random, std::vector<Shape>{{2, 2}, {1, 2}, {2, 1}, {2, 3}, {2, 4}});
    spec.shape = {spec.shape.rows * spec.concentration.rows, spec.shape.cols * spec.concentration.cols};
  }
  if (below(3) == 0) {
    spec.wrap = Wrap::none;
    spec.express = topology::ExpressGrid{{1 + below(3), 2 + below(3)}, {1, 1}, Rational(1, 1 + below(2))};
    if (below(2) == 0) spec.express->every = spec.express->span;
  }
  if (!faults || spec.shape.rows <= 2 * spec.concentration.rows || spec.shape.cols <= 2 * spec.concentration.cols) return spec;
  for (int y = 0; y < spec.concentration.rows; ++y) {
    for (int x = 0; x < spec.concentration.cols; ++x) {
      spec.dead_tiles.push_back({spec.concentration.cols + x, spec.concentration.rows + y});
    }
  }
  return spec;
}

/// Borders and rings may be longer than links, and borders slower.
TEST(FlitEqualsPacket, OnMeshVariants) {
  constexpr Bytes kFlit = 16;
  int on_rings = 0, shared = 0, express = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    RandomStream random(seed, "mesh_variants");
    const Mesh mesh(draw_mesh(random, seed % 4 == 0));
    models::HardwareModel hardware = plain_hardware((1 + random.below(8)) * kFlit, Rational(kFlit), random.below(4), 1 + random.below(4));
    hardware.virtual_channels = pick(random, std::vector{2, 3, 4});
    hardware.credits_take_link = random.below(2) == 0;
    hardware.border_cycles = random.below(9);
    hardware.wrap_cycles = 1 + random.below(20);
    hardware.nic_ports = pick(random, std::vector{models::NicPorts::single, models::NicPorts::per_direction});
    if (mesh.concentrated()) hardware.nic_ports = models::NicPorts::single;
    hardware.express_cycles = 1 + random.below(12);
    shared += mesh.concentrated() ? 1 : 0;
    express += mesh.express() ? 1 : 0;
    hardware.vc_buffer_bytes = hardware.packet_bytes * (1 + random.below(4));
    hardware.flit.flit_bytes = kFlit;
    hardware.flit.switching = models::Switching::cut_through;
    hardware.flit.vc_buffer_flits = static_cast<unsigned>(hardware.vc_buffer_bytes / kFlit);
    const std::string routing = mesh.has_faults() ? "table" : pick(random, std::vector<std::string>{"xy", "yx", "table"});
    if (mesh.wraps() && routing != "table") ++on_rings;
    std::vector<Flow> flows;
    const std::uint64_t span = pick(random, std::vector<std::uint64_t>{1, 50, 1000});
    for (int i = 0; i < 120; ++i) {
      const auto from = static_cast<TileId>(random.below(mesh.tile_count())), to = static_cast<TileId>(random.below(mesh.tile_count()));
      if (mesh.alive(from) && mesh.alive(to)) flows.push_back({from, to, kFlit * (1 + random.below(40)), random.below(span)});
    }
    if (flows.empty()) continue;
    const auto run = [&](models::Fidelity fidelity, bool shuffle) {
      return isolated_text([&] {
        hardware.fidelity = fidelity;
        return text_of(run_flows(mesh, hardware, flows, routing, shuffle));
      });
    };
    const std::string packets = run(models::Fidelity::packet, false);
    EXPECT_EQ(first_difference(packets, run(models::Fidelity::flit, false)), "") << "seed " << seed;
    if (seed % 4 == 0) {
      EXPECT_EQ(first_difference(packets, run(models::Fidelity::packet, true)), "") << "seed " << seed << ", shuffled";
    }
  }
  EXPECT_GE(on_rings, 8);
  EXPECT_GE(shared, 16);
  EXPECT_GE(express, 16);
}

/// What is sent over a border of half a link's bandwidth by everyone takes twice as long.
TEST(Reticles, ABorderIsBusyForTheBytesThatCrossIt) {
  const Variant variant{"border", {1, 6}, Wrap::none, {}, Shape{1, 3}, Rational(8)};
  const Mesh mesh = variant.mesh();
  models::NetworkSpec network;
  network.packet_bytes = {64};
  const models::HardwareModel hardware = models::resolve_hardware(variant.wafer(), {}, network);
  std::vector<Flow> flows;
  for (TileId from = 0; from < 3; ++from) flows.push_back({from, from + 3, 64 * 100, 0});
  const FlowResult result = run_flows(mesh, hardware, flows);
  Cycle last = 0;
  for (const sim::MessageRecord& message : result.messages) last = std::max(last, message.received);
  const Cycle border = 3 * 64 * 100 / 8;
  EXPECT_GE(last, border);
  EXPECT_LE(last, border + 200) << "the border never waits";
  for (const auto& link : result.measurements.links) {
    const bool crosses = link.link == Mesh::link(2, Direction::east);
    if (crosses) {
      EXPECT_EQ(link.busy, border);
    } else if (link.bytes > 0) {
      EXPECT_LT(link.busy, border) << "a link on the way is not slower than the border";
    }
  }
}

models::HardwareModel torus_hardware(int virtual_channels, unsigned buffer) {
  return booksim_hardware(models::stages_of(models::PipelinePreset::p3), virtual_channels, buffer);
}

Mesh torus(int k) {
  topology::MeshSpec spec;
  spec.shape = {k, k};
  spec.wrap = Wrap::both;
  return Mesh(spec);
}

/// A k-ary torus takes 8/k flits per tile and cycle of uniform traffic (Dally and Towles), twice what a mesh takes.
TEST(Torus, SaturationIsBoundedByTheIdealAndAboveSixtyPercentOfIt) {
  const Mesh mesh = torus(12);
  models::HardwareModel hardware = torus_hardware(4, 16);
  workloads::TrafficSpec spec;
  spec.warmup = Duration::of_cycles(1000);
  spec.measurement = Duration::of_cycles(2000);
  spec.drain = Duration::of_cycles(3000);
  const auto routing = topology::make_routing("xy", mesh);
  const auto ideal = analysis::ideal_saturation(workloads::Destinations(spec, mesh), *routing, mesh, hardware);
  EXPECT_EQ(ideal.load, Rational(2, 3));
  EXPECT_EQ(ideal.hops, Rational(6));
  spec.load = ideal.load * Rational(6, 10);
  const MeanLoad below = run_load(mesh, hardware, spec, 1);
  EXPECT_TRUE(below.stable);
  EXPECT_NEAR(below.accepted, below.offered, 0.01 * below.offered);
  spec.load = ideal.load * Rational(104, 100);
  spec.drain = Duration::of_cycles(0);
  EXPECT_FALSE(run_load(mesh, hardware, spec, 1).stable);
}

/// Everyone sends three tiles on along a ring of eight: with both classes all arrives; in one, which the deadlock check
/// refuses, the packets wait for each other.
TEST(Torus, WithoutDatelinesARingDeadlocks) {
  topology::MeshSpec spec;
  spec.shape = {1, 8};
  spec.wrap = Wrap::x;
  const Mesh mesh(spec);
  std::vector<workloads::TracedPacket> packets;
  for (Cycle round = 0; round < 40; ++round) {
    for (TileId from = 0; from < 8; ++from) packets.push_back({round, from, (from + 3) % 8, 4 * 12});
  }
  workloads::TrafficSpec traffic;
  traffic.drain = Duration::of_cycles(20'000);
  const auto xy = topology::make_routing("xy", mesh);
  for (const int channels : {1, 2}) {
    sim::TrafficOptions options;
    options.packets = &packets;
    const auto run = [&] { return sim::run_traffic(mesh, *xy, torus_hardware(channels, 2), traffic, options).drained; };
    if (channels == 2) {
      EXPECT_TRUE(run());
      continue;
    }
    try {
      run();
      FAIL() << "one class of virtual channels goes round a ring";
    } catch (const InternalError& stall) {
      EXPECT_NE(std::string(stall.what()).find("flits wait for each other in a circle"), std::string::npos) << stall.what();
    }
  }
}

TEST(FlitProperties, EveryPacketArrivesOnRandomVariants) {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    RandomStream random(seed, "variant_properties");
    const Mesh mesh(draw_mesh(random, seed % 2 == 0));
    models::HardwareModel hardware = torus_hardware(pick(random, std::vector{2, 3, 5}), 1 + static_cast<unsigned>(random.below(6)));
    hardware.border_cycles = random.below(5);
    hardware.wrap_cycles = 1 + random.below(9);
    hardware.credits_take_link = true;
    const std::string routing = mesh.has_faults() ? "table" : pick(random, std::vector<std::string>{"xy", "yx"});
    std::vector<workloads::TracedPacket> packets;
    for (Cycle i = 0; i < 500; ++i) {
      const auto from = static_cast<TileId>(random.below(mesh.tile_count())), to = static_cast<TileId>(random.below(mesh.tile_count()));
      if (mesh.alive(from) && mesh.alive(to)) packets.push_back({i / 4, from, to, 4 * (1 + random.below(9))});
    }
    const FlitRun run = run_packets(mesh, hardware, packets, routing, seed % 3 == 0);
    EXPECT_TRUE(run.measurement.drained) << "seed " << seed;
    EXPECT_EQ(run.delivered.size(), packets.size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace wafersim::test
