#include "models/energy.h"

#include <gtest/gtest.h>

#include "models/hardware.h"

namespace wafersim::models {
namespace {

EnergyPerBit pj_per_bit(std::int64_t tenths) { return {Rational(tenths, 10'000'000'000'000)}; }

/// Tenths of a pJ that a bit costs over the link from a tile in a direction; its length in tiles.
double tenths(const WaferSpec& wafer, topology::Coord from, topology::Direction direction, int tiles) {
  const topology::Mesh mesh(mesh_spec(wafer));
  const topology::LinkId link = topology::Mesh::link(mesh.tile_at(from), direction);
  EXPECT_TRUE(mesh.link_alive(link));
  return wafer.energy.link_joules_per_bit(mesh.link_classes()[mesh.link_class(link)], tiles) * 1e13;
}

WaferSpec wafer_of(topology::Shape shape) {
  WaferSpec wafer;
  wafer.mesh.shape = shape;
  wafer.energy.link = pj_per_bit(8);
  return wafer;
}

TEST(Energy, PlainLinksCostTheFigure) { EXPECT_DOUBLE_EQ(tenths(wafer_of({4, 4}), {1, 1}, topology::Direction::east, 1), 8); }

TEST(Energy, LinksAcrossReticlesCostTheirOwnFigureOrTheLinks) {
  WaferSpec wafer = wafer_of({4, 4});
  wafer.reticle = ReticleSpec{{2, 2}, {}, {}};
  EXPECT_DOUBLE_EQ(tenths(wafer, {1, 1}, topology::Direction::east, 1), 8);
  wafer.energy.reticle_link = pj_per_bit(20);
  EXPECT_DOUBLE_EQ(tenths(wafer, {1, 1}, topology::Direction::east, 1), 20);
  EXPECT_DOUBLE_EQ(tenths(wafer, {0, 1}, topology::Direction::east, 1), 8);
}

TEST(Energy, ExpressLinksCostTheirLengthOrTheirOwnFigure) {
  WaferSpec wafer = wafer_of({4, 8});
  wafer.express = ExpressSpec{{1, 4}, {1, 1}, {}, {}};
  EXPECT_DOUBLE_EQ(tenths(wafer, {0, 0}, topology::Direction::express_east, 4), 32);
  wafer.energy.express_link = pj_per_bit(11);
  EXPECT_DOUBLE_EQ(tenths(wafer, {0, 0}, topology::Direction::express_east, 4), 11);
  // Two borders on the way.
  wafer.reticle = ReticleSpec{{2, 2}, {}, {}};
  wafer.energy.reticle_link = pj_per_bit(10);
  EXPECT_DOUBLE_EQ(tenths(wafer, {0, 0}, topology::Direction::express_east, 4), 11 + 2 * 2);
}

TEST(Energy, RingsFoldedAndStraight) {
  WaferSpec wafer = wafer_of({4, 8});
  wafer.mesh.wrap = topology::Wrap::both;
  EXPECT_DOUBLE_EQ(tenths(wafer, {0, 0}, topology::Direction::east, 1), 16) << "links of folded rings are two tiles long";
  wafer.wrap_latency = Duration::of_cycles(8);
  EXPECT_DOUBLE_EQ(tenths(wafer, {0, 0}, topology::Direction::east, 1), 8);
  EXPECT_DOUBLE_EQ(tenths(wafer, {7, 0}, topology::Direction::east, 7), 56) << "the link back is as long as the row";
}

TEST(Energy, PartsHaveFiguresOrNot) {
  EnergySpec energy;
  EXPECT_FALSE(energy.any());
  energy.standing = Power{Rational(3, 2)};
  EXPECT_TRUE(energy.any());
  for (std::size_t i = 0; i < kEnergyParts; ++i) {
    const auto part = static_cast<EnergyPart>(i);
    EXPECT_EQ(energy.has(part), part == EnergyPart::standing) << to_string(part);
    EXPECT_EQ(energy.figure(part), part == EnergyPart::standing ? 1.5 : 0.0) << to_string(part);
  }
}

}  // namespace
}  // namespace wafersim::models
