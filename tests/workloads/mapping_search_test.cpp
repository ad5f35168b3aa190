#include "workloads/mapping_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/mapping_candidates.h"
#include "workloads/mapping_loads.h"
#include "workloads/trace_demands.h"

namespace wafersim::workloads {
namespace {

using topology::LoadSummary;
using topology::Mesh;
using topology::Shape;

constexpr AxisMapping kAuto = {Placement::optimized, {}};

/// A plan on a mesh of its own size or larger, all axes left open.
struct Search : LoweringFixture {
  Search(int dp, int tp, int pp, const Shape& shape) {
    set_degrees(dp, tp, pp);
    wafer.mesh.shape = shape;
    model.layers = std::max(4, pp);
    model.heads = model.kv_heads = std::max(8, tp);
    plan.sp = SequenceParallel::megatron;
    plan.collectives = Collective::automatic;
    leave_open({Axis::tp, Axis::pp, Axis::dp});
  }

  void leave_open(const std::vector<Axis>& axes) {
    plan.mapping.clear();
    for (const Axis axis : axes) plan.mapping[axis] = kAuto;
  }

  MappingChoice choose(const SearchLimits& limits = {}, const std::string& routing = "xy") const {
    const Mesh tiles = mesh();
    const models::HardwareModel hardware = models::resolve_hardware(wafer, {}, {});
    const LoweringInput input{model, training, plan, placement, hardware, tiles};
    return choose_mapping(input, *topology::make_routing(routing, tiles), limits);
  }

  /// Loads of the real trace of a plan.
  LoadSummary loads_of(const PlanSpec& of, const std::string& routing = "xy") const {
    LoweringFixture fixture = *this;
    fixture.plan = of;
    const Mesh tiles = mesh();
    return topology::summarize(topology::link_loads(*topology::make_routing(routing, tiles), tiles,
                                                    demands_of(fixture.lower().trace)),
                               tiles);
  }

  std::string fault() const {
    try {
      choose();
    } catch (const PlanError& error) {
      return error.what();
    }
    return "";
  }
};

PlanSpec standard(PlanSpec plan) {
  plan.mapping.clear();
  return plan;
}

TEST(MappingSearch, NothingOpenNothingChosen) {
  Search search(2, 4, 2, {4, 4});
  search.plan.mapping = {{Axis::tp, {Placement::row, {}}}};
  const MappingChoice choice = search.choose();
  EXPECT_FALSE(choice.report.has_value());
  EXPECT_EQ(choice.plan.mapping, search.plan.mapping);
}

TEST(MappingSearch, NeverWorseThanTheStandardMappingAndReportsTheRealTrace) {
  for (const auto& [dp, tp, pp] :
       {std::array{2, 4, 2}, std::array{4, 2, 4}, std::array{3, 6, 2}, std::array{8, 4, 1}}) {
    SCOPED_TRACE(testing::Message() << "dp " << dp << " tp " << tp << " pp " << pp);
    Search search(dp, tp, pp, {8, 8});
    search.training.global_batch = 48;
    const MappingChoice choice = search.choose();
    ASSERT_TRUE(choice.report.has_value());
    ASSERT_TRUE(choice.report->before.has_value());
    EXPECT_TRUE(choice.report->exhaustive);
    EXPECT_EQ(choice.report->measured, choice.report->candidates);
    EXPECT_FALSE(*choice.report->before < choice.report->after);
    EXPECT_EQ(choice.report->after, search.loads_of(choice.plan));
    EXPECT_EQ(*choice.report->before, search.loads_of(standard(search.plan)));
  }
}

TEST(MappingSearch, PlacesStreamsAndRingsOfTheSequence) {
  for (const StreamVariant variant : {StreamVariant::flood, StreamVariant::wrapped_ring}) {
    for (const auto& [tatp, sp] : {std::pair{6, 1}, std::pair{4, 2}, std::pair{1, 4}}) {
      SCOPED_TRACE(testing::Message() << "tatp " << tatp << " sp " << sp);
      Search search(2, 2, 2, {12, 12});
      search.model.attention_kernel = models::AttentionKernel::fused;
      search.plan.tatp = tatp;
      search.plan.stream.variant = variant;
      search.plan.sp = sp > 1 ? SequenceParallel::ring : SequenceParallel::none;
      search.plan.sp_degree = sp;
      search.leave_open(default_order());
      SearchLimits limits;
      limits.tiles = 500 * static_cast<std::uint64_t>(search.plan.tiles_used());
      const MappingChoice choice = search.choose(limits);
      EXPECT_FALSE(*choice.report->before < choice.report->after);
      EXPECT_EQ(choice.report->after, search.loads_of(choice.plan));
      EXPECT_EQ(*choice.report->before, search.loads_of(standard(search.plan)));
      EXPECT_EQ(choice.plan.mapping.contains(Axis::tatp), tatp > 1);
      EXPECT_EQ(choice.plan.mapping.contains(Axis::sp), sp > 1);
    }
  }
}

/// Groups that talk the most stay inside reticles, whichever way these lie.
TEST(MappingSearch, SlowBordersKeepGroupsInsideReticles) {
  for (const Shape reticle : {Shape{2, 4}, Shape{4, 2}}) {
    Search search(2, 8, 1, {4, 4});
    search.wafer.mesh.reticle = topology::ReticleGrid{reticle, Rational(1, 16)};
    const MappingChoice choice = search.choose();
    EXPECT_EQ(Mapping(choice.plan, search.mesh()).axis_shape(Axis::tp), reticle);
    EXPECT_EQ(choice.report->after, search.loads_of(choice.plan));
  }
}

// Every candidate lowered for real: none has smaller loads than the chosen one.
TEST(MappingSearch, ExhaustiveSearchFindsTheOptimum) {
  Search search(2, 4, 2, {4, 4});
  const MappingChoice choice = search.choose();
  const MappingCandidates candidates(search.plan);
  std::size_t laid_out = 0;
  Choices choices(candidates.sizes().size(), 0);
  const auto advance = [&] {
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (++choices[i] < candidates.sizes()[i]) return true;
      choices[i] = 0;
    }
    return false;
  };
  do {
    if (!candidates.is_sensible(choices, {4, 4})) continue;
    EXPECT_FALSE(search.loads_of(candidates.plan(choices)) < choice.report->after);
    ++laid_out;
  } while (advance());
  EXPECT_EQ(laid_out, choice.report->candidates);
}

TEST(MappingSearch, AnnealingFindsTheOptimumOfSmallSpaces) {
  for (const auto& [dp, tp, pp] : {std::array{2, 4, 2}, std::array{4, 4, 4}, std::array{2, 8, 6}}) {
    SCOPED_TRACE(testing::Message() << "dp " << dp << " tp " << tp << " pp " << pp);
    Search search(dp, tp, pp, {12, 12});
    const MappingChoice all = search.choose();
    ASSERT_TRUE(all.report->exhaustive);
    SearchLimits limits;
    limits.exhaustive_candidates = 0;
    limits.tiles = 200 * static_cast<std::uint64_t>(search.plan.tiles_used());
    const MappingChoice annealed = search.choose(limits);
    EXPECT_FALSE(annealed.report->exhaustive);
    EXPECT_LT(annealed.report->measured, all.report->candidates);
    EXPECT_EQ(annealed.report->after, all.report->after);
  }
}

TEST(MappingSearch, TheSameEveryTime) {
  const Search search(4, 4, 4, {8, 8});
  SearchLimits limits;
  limits.exhaustive_candidates = 0;
  limits.tiles = 100 * 64;
  const MappingChoice first = search.choose(limits), second = search.choose(limits);
  EXPECT_EQ(first.plan.mapping, second.plan.mapping);
  EXPECT_EQ(first.plan.order, second.plan.order);
  EXPECT_EQ(first.report->measured, second.report->measured);
}

TEST(MappingSearch, KeepsWhatIsGiven) {
  Search search(2, 4, 2, {8, 8});
  search.leave_open({Axis::pp});
  search.plan.mapping[Axis::tp] = {Placement::col, {}};
  search.plan.order = {Axis::dp, Axis::tp, Axis::pp};
  search.plan.order_given = true;
  const MappingChoice choice = search.choose();
  EXPECT_EQ(choice.plan.mapping.at(Axis::tp), search.plan.mapping.at(Axis::tp));
  EXPECT_FALSE(choice.plan.mapping.contains(Axis::dp));
  EXPECT_EQ(choice.plan.order, search.plan.order);
  EXPECT_FALSE(choice.report->order_searched);
  ASSERT_EQ(choice.report->chosen.size(), 1u);
  EXPECT_EQ(choice.report->chosen.front().first, Axis::pp);
}

TEST(MappingSearch, TheChosenPlanIsWrittenOutInFull) {
  const Search search(2, 4, 2, {8, 8});
  const MappingChoice choice = search.choose();
  EXPECT_TRUE(choice.plan.order_given);
  const Mesh mesh = search.mesh();
  const Mapping mapping(choice.plan, mesh);
  for (const Axis axis : {Axis::tp, Axis::pp, Axis::dp}) {
    EXPECT_EQ(choice.plan.mapping.at(axis), mapping.laid_out(axis));
    EXPECT_NE(choice.plan.mapping.at(axis).placement, Placement::standard);
  }
}

TEST(MappingSearch, AxesOfDegreeOneNeedNoEntry) {
  const Search search(1, 4, 1, {4, 4});
  const MappingChoice choice = search.choose();
  EXPECT_TRUE(choice.plan.mapping.contains(Axis::tp));
  EXPECT_FALSE(choice.plan.mapping.contains(Axis::pp));
  EXPECT_FALSE(choice.plan.mapping.contains(Axis::dp));
}

// A ring of four tiles needs no link twice as a square; in a row its way back crosses the others.
TEST(MappingSearch, ARingBecomesASquare) {
  Search search(1, 4, 1, {4, 4});
  search.plan.collectives = Collective::ring;
  const MappingChoice choice = search.choose();
  const Shape square{2, 2};
  EXPECT_EQ(choice.plan.mapping.at(Axis::tp).shape, square);
}

TEST(MappingSearch, GoesRoundDeadTiles) {
  // The rectangle that fits the mesh from its corner on has to move.
  Search search(1, 4, 2, {4, 5});
  search.wafer.mesh.dead_tiles = {{2, 0}};
  const MappingChoice choice = search.choose();
  EXPECT_EQ(choice.report->after, search.loads_of(choice.plan));
  const Mesh mesh = search.mesh();
  const Mapping mapping(choice.plan, mesh);
  for (int pp = 0; pp < 2; ++pp) {
    for (const TileId tile : mapping.group(Axis::tp, {.pp = pp})) EXPECT_TRUE(mesh.alive(tile));
  }
}

TEST(MappingSearch, TakesWhatFitsWhereTheStandardMappingDoesNot) {
  // Live tiles of a 3x4 mesh around a hole at (1, 1): no 2x3 rectangle of six, but a column and rows of four.
  Search search(1, 4, 1, {3, 3});
  search.wafer.mesh.dead_tiles = {{1, 1}};
  EXPECT_NE(search.fault().find("no place on the mesh of 3x3 for a rectangle of 2x2 live tiles"),
            std::string::npos);
  search.wafer.mesh.shape = {3, 4};
  search.wafer.mesh.dead_tiles = {{1, 1}, {2, 1}};
  const MappingChoice choice = search.choose();
  EXPECT_FALSE(choice.report->before.has_value());
  EXPECT_EQ(choice.plan.mapping.at(Axis::tp).placement, Placement::row);
}

TEST(MappingSearch, RefusesWhatCannotRun) {
  EXPECT_NE(Search(2, 4, 8, {4, 4}).fault().find("the plan needs 64 tiles"), std::string::npos);
  EXPECT_EQ(Search(1, 7, 1, {3, 3}).fault(),
            "plan.mapping.tp: 7 copies of a rectangle of 1x1 tiles do not fit the mesh of 3x3: as 1x7 they "
            "take 1x7, and no other factorization fits");
}

TEST(MappingSearch, RefusesWhenDeadLinksCutEveryMapping) {
  Search search(1, 2, 1, {1, 3});
  search.wafer.mesh.dead_links = {{{0, 0}, {1, 0}}, {{1, 0}, {2, 0}}};
  EXPECT_EQ(search.fault(),
            "plan.mapping: dead tiles or links block some route of every mapping; 'routing: table' or "
            "'routing: balanced' would avoid them");
}

TEST(MappingSearch, MeasuresOnTheRoutesThatAreUsed) {
  const Search search(2, 4, 4, {8, 8});
  const MappingChoice choice = search.choose({}, "table");
  EXPECT_EQ(choice.report->after, search.loads_of(choice.plan, "table"));
}

}  // namespace
}  // namespace wafersim::workloads
