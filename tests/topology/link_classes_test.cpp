// Links that are not all alike: over reticle borders, and of rings.
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "base/random.h"
#include "topology/balanced_routing.h"
#include "topology/mesh_metrics.h"
#include "topology/network_facts.h"
#include "topology/routing.h"

namespace wafersim::topology {
namespace {

MeshSpec with_reticles(const Shape& shape, const Shape& every, const Rational& rate) {
  MeshSpec spec;
  spec.shape = shape;
  spec.reticle = ReticleGrid{every, rate};
  return spec;
}

MeshSpec with_rings(const Shape& shape, Wrap wrap, WrapLayout layout) {
  MeshSpec spec;
  spec.shape = shape;
  spec.wrap = wrap;
  spec.wrap_layout = layout;
  return spec;
}

/// Live links by kind and borders.
std::map<std::pair<LinkKind, int>, int> counts(const Mesh& mesh) {
  std::map<std::pair<LinkKind, int>, int> result;
  for (LinkId link = 0; link < mesh.link_slots(); ++link) {
    if (!mesh.link_alive(link)) continue;
    const LinkClass& found = mesh.link_classes()[mesh.link_class(link)];
    ++result[{found.kind, found.borders}];
  }
  return result;
}

Demands random_demands(RandomStream& random, const Mesh& mesh, int count) {
  Demands demands;
  for (int i = 0; i < count; ++i) {
    demands.push_back({static_cast<TileId>(random.below(mesh.tile_count())),
                       static_cast<TileId>(random.below(mesh.tile_count())), 1 + random.below(1000)});
  }
  return merged(demands);
}

TEST(LinkClasses, APlainMeshHasOne) {
  const Mesh mesh(MeshSpec{{4, 5}, {}, {}});
  EXPECT_TRUE(mesh.uniform());
  EXPECT_EQ(mesh.link_classes(), std::vector<LinkClass>{LinkClass{}});
  EXPECT_EQ(mesh.plain_bytes(3, 77), 77u);
  EXPECT_TRUE(Mesh(with_reticles({4, 5}, {4, 5}, Rational(1, 2))).uniform()) << "one reticle has no borders";
}

TEST(LinkClasses, LinksOverBordersOfReticlesAreSlower) {
  // Borders behind rows 1 and 3 (of 5) and behind column 2 (of 6).
  const Mesh mesh(with_reticles({5, 6}, {2, 3}, Rational(2, 5)));
  const auto found = counts(mesh);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_EQ(found.at({LinkKind::plain, 1}), 2 * (2 * 6 + 5));
  EXPECT_EQ(found.at({LinkKind::plain, 0}), 2 * (2 * 6 + 4 * 5));
  for (const auto& [from, to] : {std::pair{Coord{2, 0}, Coord{3, 0}}, std::pair{Coord{5, 3}, Coord{5, 4}}}) {
    for (const auto& [a, b] : {std::pair{from, to}, std::pair{to, from}}) {
      const LinkId link = Mesh::link(mesh.tile_at(a), *mesh.direction_to(mesh.tile_at(a), mesh.tile_at(b)));
      EXPECT_EQ(mesh.link_class(link), 1u);
      EXPECT_EQ(mesh.plain_bytes(link, 4), 10u);
      EXPECT_EQ(mesh.plain_bytes(link, 5), 13u) << "12.5, rounded up";
    }
  }
  EXPECT_EQ(mesh.plain_bytes(Mesh::link(0, Direction::east), 5), 5u);
}

TEST(LinkClasses, WhatIsNoReticleIsRefused) {
  EXPECT_THROW(Mesh(with_reticles({4, 4}, {0, 2}, Rational(1))), PlanError);
  MeshSpec wafers{{4, 6}, {}, {}};
  for (const WaferGrid& grid : {WaferGrid{{3, 3}}, WaferGrid{{4, 0}}, WaferGrid{{2, 3}, Rational(0)}}) {
    wafers.wafers = grid;
    EXPECT_THROW(Mesh{wafers}, PlanError);
  }
  wafers.wafers = WaferGrid{{2, 3}};
  const Mesh four(wafers);
  EXPECT_EQ(four.wafer_grid(), (Shape{2, 2}));
  EXPECT_EQ(four.wafer(four.tile_at({2, 1})), 0);
  EXPECT_EQ(four.wafer(four.tile_at({3, 1})), 1);
  EXPECT_EQ(four.wafer(four.tile_at({2, 2})), 2);
  EXPECT_EQ(four.wafer(four.tile_at({5, 3})), 3);
  wafers.wrap = Wrap::both;
  EXPECT_THROW(Mesh{wafers}, PlanError);
  EXPECT_THROW(Mesh(with_reticles({4, 4}, {2, 2}, Rational(0))), PlanError);
}

TEST(LinkClasses, FoldedRingsHaveLinksOfOneLength) {
  const auto found = counts(Mesh(with_rings({4, 5}, Wrap::x, WrapLayout::folded)));
  EXPECT_EQ(found.at({LinkKind::folded, 0}), 2 * 4 * 5);
  EXPECT_EQ(found.at({LinkKind::plain, 0}), 2 * 3 * 5);
}

TEST(LinkClasses, StraightRingsHaveOneLongLink) {
  const auto found = counts(Mesh(with_rings({3, 5}, Wrap::both, WrapLayout::straight)));
  EXPECT_EQ(found.at({LinkKind::wrap, 0}), 2 * (3 + 5));
  EXPECT_EQ(found.at({LinkKind::plain, 0}), 2 * (3 * 4 + 2 * 5));
}

/// 0 2 4 5 3 1 out and back over borders behind places 1 and 3: steps 0-2, 2-4 and 5-3, 3-1 cross one; 4-5 and 1-0 none.
TEST(LinkClasses, FoldedRingsCrossBordersWhereTheirTilesLie) {
  MeshSpec spec = with_rings({1, 6}, Wrap::x, WrapLayout::folded);
  spec.reticle = ReticleGrid{{1, 2}, Rational(1, 3)};
  const Mesh mesh(spec);
  const std::vector<int> borders = {1, 1, 0, 1, 1, 0};
  for (TileId tile = 0; tile < 6; ++tile) {
    EXPECT_EQ(mesh.link_classes()[mesh.link_class(Mesh::link(tile, Direction::east))].borders, borders[tile]) << tile;
  }
  // Straight, the way back crosses both.
  spec.wrap_layout = WrapLayout::straight;
  const Mesh straight(spec);
  EXPECT_EQ(straight.link_classes()[straight.link_class(Mesh::link(5, Direction::east))],
            (LinkClass{LinkKind::wrap, 2, Rational(1, 3)}));
}

TEST(LinkClasses, BisectionAndUniformSaturationCountBandwidth) {
  // The middle between columns 1 and 2 is no border, that between rows 1 and 2 is one of a quarter of the bandwidth.
  const Mesh mesh(with_reticles({4, 4}, {2, 4}, Rational(1, 4)));
  const auto cut = bisection(mesh);
  EXPECT_FALSE(cut->between_columns);
  EXPECT_EQ(cut->links, 4u);
  EXPECT_EQ(cut->rate, Rational(1));
  std::string why;
  // A quarter of what a plain 4x4 mesh takes, whose middle links carry one of 16 destinations' shares each.
  const auto plain = uniform_saturation(*make_routing("xy", Mesh(MeshSpec{{4, 4}, {}, {}})), Mesh(MeshSpec{{4, 4}, {}, {}}), why);
  const auto slow = uniform_saturation(*make_routing("xy", mesh), mesh, why);
  EXPECT_EQ(slow->with_self, plain->with_self * Rational(1, 4));
}

TEST(LinkClasses, TheSlowLinkIsTheHottest) {
  const Mesh mesh(with_reticles({1, 4}, {1, 2}, Rational(1, 3)));
  const auto xy = make_routing("xy", mesh);
  // 100 B over the border, 250 B behind it: 300 against 250 plain ones.
  const TrafficFacts facts = traffic_facts(*xy, mesh, {{1, 2, 100}, {2, 3, 250}});
  EXPECT_EQ(facts.largest, Rational(300));
  EXPECT_EQ(facts.hottest.front().link, Mesh::link(1, Direction::east));
  EXPECT_EQ(facts.hottest.front().bytes, Rational(100));
  EXPECT_EQ(facts.bound, 300u);
  EXPECT_EQ(facts.byte_hops, Rational(350));
}

TEST(LinkClasses, NoRoutesBeatTheBoundAndBalancedOnesKeepTheirPromise) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    RandomStream random(seed, "reticles");
    const auto side = [&random](int most) { return 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(most))); };
    const Mesh mesh(with_reticles({1 + side(5), 1 + side(6)}, {side(3), side(3)},
                                  Rational(side(5), side(5))));
    const Demands demands = random_demands(random, mesh, 40);
    const Bytes bound = cut_bound(mesh, demands);
    const BalancedRoutes routes = balance_routes(mesh, demands);
    const LoadSummary xy = summarize(link_loads(*make_routing("xy", mesh), mesh, demands), mesh);
    EXPECT_EQ(routes.report.before, xy);
    EXPECT_EQ(routes.report.after, summarize(link_loads(*routes.routing, mesh, demands), mesh));
    EXPECT_LE(routes.report.after.largest, xy.largest) << "seed " << seed;
    EXPECT_GE(routes.report.after.largest, bound) << "seed " << seed;
    EXPECT_TRUE(check_dependencies(*routes.routing, mesh, 1).acyclic());
  }
}

}  // namespace
}  // namespace wafersim::topology
