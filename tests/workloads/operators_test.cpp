#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "tests/workloads/divisions.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/fingerprint.h"
#include "workloads/first_tiles.h"
#include "workloads/mapping_loads.h"
#include "workloads/reshard.h"
#include "workloads/stream_operand.h"
#include "workloads/trace_demands.h"

/// Operators of a layer with degrees of their own.
namespace wafersim::workloads {
namespace {

LoweringFixture split(const OperatorDegrees& plan, const OperatorDegrees& attention, const OperatorDegrees& mlp) {
  LoweringFixture setup;
  setup.model.attention_kernel = models::AttentionKernel::fused;
  setup.set_degrees(1, plan.tp, 1);
  setup.plan.tatp = plan.tatp;
  setup.plan.attention = attention;
  setup.plan.mlp = mlp;
  return setup;
}

/// Calls `visit` for all divisions of eight tiles, with and without megatron.
template <class Visit>
void for_each_division(const Visit& visit) {
  for (const SequenceParallel sp : {SequenceParallel::none, SequenceParallel::megatron}) {
    for (const OperatorDegrees& plan : divisions(8)) {
      for (const OperatorDegrees& attention : divisions(8)) {
        for (const OperatorDegrees& mlp : divisions(8)) {
          LoweringFixture setup = split(plan, attention, mlp);
          setup.plan.sp = sp;
          visit(setup);
        }
      }
    }
  }
}

topology::Demands demands_by_formula(const LoweringFixture& setup, const Mapping& mapping) {
  const topology::Mesh mesh = setup.mesh();
  const auto xy = topology::make_routing("xy", mesh);
  const models::HardwareModel hardware = models::resolve_hardware(setup.wafer, {}, {});
  const PlanCuts cuts(setup.plan, mapping, mesh);
  const auto traffic = plan_traffic(setup.model, setup.training, setup.plan, &cuts);
  return MappingLoads(traffic, setup.plan, hardware, *xy, mesh).demands(mapping);
}

void expect_traffic_of_the_trace(const LoweringFixture& setup) {
  const LoweredPlan lowered = setup.lower();
  EXPECT_EQ(demands_by_formula(setup, lowered.mapping), demands_of(lowered.trace)) << text_of_cuts(setup.plan);
}

/// The work of a layer's products, summed over tiles, is that of the model, however its operators are divided.
TEST(Operators, WorkIsConserved) {
  const std::uint64_t expected = gemm_flops(split({1, 1}, {1, 1}, {1, 1}).lower().trace);
  EXPECT_GT(expected, 0U);
  for_each_division([&](const LoweringFixture& setup) {
    EXPECT_EQ(gemm_flops(setup.lower().trace), expected) << text_of_cuts(setup.plan);
  });
}

/// Each parameter stands on some tile, and those of the four weights and column biases of a layer on one tile only: summed over
/// tiles they take the bytes of the model, and as many gradients and optimizer states belong to them.
TEST(Operators, ParametersGradientsAndStatesAreConserved) {
  const auto count = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  for_each_division([&](LoweringFixture& setup) {
    setup.layers_alone();
    const models::TransformerSpec& model = setup.model;
    const std::uint64_t common = 2 * 2 * count(model.hidden) + 2 * count(model.hidden);  // two layer norms, output biases
    const std::uint64_t layers = count(model.layers);
    const std::uint64_t whole = models::count_parameters(model).total(model.layers);
    const LoweredPlan lowered = setup.lower();
    std::array<Bytes, kMemoryClasses> held{};
    std::set<std::tuple<std::int32_t, std::uint64_t>> rows;
    for (const TileBinding& tile : lowered.trace.tiles) {
      const StaticMemory& statics = lowered.trace.statics[tile.statics];
      for (std::size_t c = 0; c < held.size(); ++c) held[c] += statics.bytes[c];
      for (const View& view : statics.holds) {
        for (std::uint64_t row = 0; row < view.region.rows; ++row) rows.emplace(view.layer, view.region.row + row);
      }
    }
    const std::uint64_t tiles = count(setup.plan.tiles_used());
    const std::uint64_t stand = whole + (tiles - 1) * layers * common;
    EXPECT_EQ(rows.size(), whole) << text_of_cuts(setup.plan);
    EXPECT_EQ(held[static_cast<std::size_t>(MemoryClass::parameters)], 2 * stand) << text_of_cuts(setup.plan);
    EXPECT_EQ(held[static_cast<std::size_t>(MemoryClass::gradients)], 2 * stand) << text_of_cuts(setup.plan);
    EXPECT_EQ(held[static_cast<std::size_t>(MemoryClass::optimizer)], 12 * stand) << text_of_cuts(setup.plan);
  });
}

TEST(Operators, MemoryReturns) {
  for_each_division([&](LoweringFixture& setup) {
    for (const auto recompute : {models::Recompute::none, models::Recompute::full}) {
      setup.training.recompute = recompute;
      EXPECT_TRUE(memory_returns(setup.lower().trace)) << text_of_cuts(setup.plan);
    }
  });
}

/// Degrees that are those of the plan say nothing: the trace, its memory and its traffic are the same.
TEST(Operators, DegreesOfThePlanChangeNothing) {
  for (const SequenceParallel sp : {SequenceParallel::none, SequenceParallel::megatron}) {
    LoweringFixture alone;
    alone.make_llama();
    alone.model.attention_kernel = models::AttentionKernel::fused;
    alone.set_degrees(2, 2, 2);
    alone.plan.tatp = 2;
    alone.plan.sp = sp;
    alone.plan.zero = 2;
    LoweringFixture same = alone;
    same.plan.attention = same.plan.mlp = OperatorDegrees{2, 2};
    EXPECT_FALSE(same.plan.splits_operators());
    EXPECT_EQ(fingerprint(same.lower().trace), fingerprint(alone.lower().trace));
    EXPECT_EQ(same.lower().memory, alone.lower().memory);
    EXPECT_EQ(plan_traffic(same.model, same.training, same.plan), plan_traffic(alone.model, alone.training, alone.plan));
    same.plan.mlp = OperatorDegrees{4, 1};
    EXPECT_NE(fingerprint(same.lower().trace), fingerprint(alone.lower().trace));
  }
}

TEST(Operators, TrafficInClosedFormIsThatOfTheTrace) {
  for_each_division([](const LoweringFixture& setup) { expect_traffic_of_the_trace(setup); });
}

TEST(Operators, TrafficOfRandomPlansIsThatOfTheTrace) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomStream random(seed, "operators");
    LoweringFixture setup = split({1, 1}, {1, 1}, {1, 1});
    const auto drawn = [&](int tiles) {
      const std::vector<OperatorDegrees> all = divisions(tiles);
      return all[random.below(all.size())];
    };
    const int tiles = std::array{4, 6, 8}[random.below(3)];
    if (random.below(2) == 1) setup.make_llama();
    PlanSpec& plan = setup.plan;
    const OperatorDegrees own = drawn(tiles);
    setup.set_degrees(std::array{1, 2}[random.below(2)], own.tp, std::array{1, 2}[random.below(2)]);
    plan.tatp = own.tatp;
    plan.attention = drawn(tiles);
    plan.mlp = drawn(tiles);
    plan.sp = std::array{SequenceParallel::none, SequenceParallel::megatron, SequenceParallel::ring}[random.below(3)];
    if (plan.sp == SequenceParallel::ring) plan.sp_degree = 2;
    plan.zero = static_cast<int>(random.below(4));
    if (random.below(2) == 1) plan.order = {Axis::tatp, Axis::tp, Axis::sp, Axis::ep, Axis::dp, Axis::pp};
    if (random.below(3) == 0) plan.mapping[Axis::tatp] = {Placement::block, {}};
    if (random.below(3) == 0) plan.mapping[Axis::tp] = {Placement::col, {}};
    if (random.below(3) == 0) setup.wafer.mesh.dead_tiles = {{0, 0}, {3, 2}};
    plan.collectives = std::array{Collective::automatic, Collective::line, Collective::rows_cols}[random.below(3)];
    plan.stream.operand = random.below(2) == 1 ? StreamOperand::automatic : StreamOperand::weights;
    if (plan.pp > 1 && random.below(2) == 1) plan.schedule = PipelineSchedule::zb_h1;
    setup.model.attention = random.below(2) == 1 ? models::AttentionMask::causal : models::AttentionMask::full;
    setup.model.sequence = setup.model.context = 33;
    setup.training.recompute = random.below(2) == 1 ? models::Recompute::full : models::Recompute::none;
    const bool full = setup.training.recompute == models::Recompute::full;
    if (full) setup.training.recompute_every = 1 + static_cast<int>(random.below(2));
    expect_traffic_of_the_trace(setup);
  }
}

/// The first tiles of stages, looked at alone, hold what they hold in the whole plan.
TEST(Operators, FirstTilesHoldWhatTheyHoldInThePlan) {
  FirstTiles first;
  LoweringFixture setup = split({2, 2}, {2, 2}, {2, 2});
  const topology::Mesh mesh = setup.mesh();
  const models::HardwareModel hardware = models::resolve_hardware(setup.wafer, {}, {});
  for (const OperatorDegrees& attention : divisions(4)) {
    for (const OperatorDegrees& mlp : divisions(4)) {
      setup.plan.attention = attention;
      setup.plan.mlp = mlp;
      const MemoryBound few = first.bound({setup.model, setup.training, setup.plan, setup.placement, hardware, mesh});
      const MemoryBound all = setup.lower().memory;
      EXPECT_LE(few.peak_bytes, all.peak_bytes) << text_of_cuts(setup.plan);
      EXPECT_GE(2 * few.peak_bytes, all.peak_bytes) << text_of_cuts(setup.plan);
    }
  }
}

/// Bytes over tatp that a plan with an MLP of its own has more than the parts of the two plans that it is made of: all of them
/// reshard.
Bytes reshard_bytes(const LoweringFixture& setup) {
  const LoweredPlan lowered = setup.lower();
  const topology::Mesh mesh = setup.mesh();
  const PlanCuts cuts(setup.plan, lowered.mapping, mesh);
  Bytes total = 0;
  for (const AxisTraffic& traffic : plan_traffic(setup.model, setup.training, setup.plan, &cuts)) {
    if (traffic.pattern == TrafficPattern::pairs) total += traffic.bytes() * traffic.times;
  }
  return total;
}

/// Volumes of docs/plans.md: n tokens of h elements of e bytes on P tiles, one layer and microbatch.
TEST(Operators, ReshardedBytesInClosedForm) {
  const auto stream = [](const LoweringFixture& setup) { return setup.stream_bytes(); };
  const auto passes = [](const LoweringFixture& setup) {
    return static_cast<Bytes>(setup.model.layers) * static_cast<Bytes>(setup.training.microbatches(1));
  };
  {
    // Attention on the sequence, the MLP on the model dimension, all tokens between layers on every tile: forward attention takes
    // its rows out of all, gathers them for the MLP, and the plan has them; backward as much: no message, one gather.
    LoweringFixture setup = split({8, 1}, {1, 8}, {8, 1});
    EXPECT_EQ(reshard_bytes(setup), 0U);
    Bytes gathers = 0;
    const LoweredPlan lowered = setup.lower();
    const topology::Mesh mesh = setup.mesh();
    const PlanCuts cuts(setup.plan, lowered.mapping, mesh);
    for (const AxisTraffic& traffic : plan_traffic(setup.model, setup.training, setup.plan, &cuts)) {
      if (traffic.axis == Axis::tatp && traffic.pattern == TrafficPattern::all_gather) gathers += traffic.bytes() * traffic.times;
    }
    EXPECT_EQ(gathers, 2 * passes(setup) * stream(setup));
  }
  {
    // Twice as many rows on half as many ranks, nested: each tile gets as many as it has from one other.
    LoweringFixture setup = split({1, 8}, {1, 8}, {2, 4});
    EXPECT_EQ(reshard_bytes(setup), 2 * passes(setup) * stream(setup));
  }
  {
    // With megatron each row is on one tile: whole rows change places, at most all of them.
    LoweringFixture setup = split({1, 8}, {1, 8}, {8, 1});
    setup.plan.sp = SequenceParallel::megatron;
    const LoweredPlan lowered = setup.lower();
    const topology::Mesh mesh = setup.mesh();
    const PlanCuts cuts(setup.plan, lowered.mapping, mesh);
    int moved = 0;
    for (int member = 0; member < 8; ++member) {
      const Ranks ranks = cuts.ranks(Cut::mlp, cuts.member_ranks(member));
      moved += cuts.member_ranks(member).tatp == ranks.tp ? 0 : 1;
    }
    EXPECT_EQ(reshard_bytes(setup), 4 * passes(setup) * stream(setup) * static_cast<Bytes>(moved) / 8);
  }
}

/// Sets of rows by member cover the block, and what is sent is exactly what is missing.
TEST(Operators, RowsThatAreSentAreThoseThatAreMissing) {
  for_each_division([](LoweringFixture& setup) {
    setup.model.attention = models::AttentionMask::causal;
    const topology::Mesh mesh = setup.mesh();
    const Mapping mapping(setup.plan, mesh);
    const PlanCuts cuts(setup.plan, mapping, mesh);
    for (const auto& [from, to] : {std::pair{Cut::plan, Cut::attention}, {Cut::attention, Cut::mlp}, {Cut::mlp, Cut::plan}}) {
      const Reshard reshard(setup.model, setup.training, cuts, from, to, 0);
      for (int member = 0; member < cuts.block(); ++member) {
        std::uint64_t received = common(reshard.held(member), reshard.wanted(member)).count();
        TokenSet missing = without(reshard.wanted(member), reshard.held(member));
        for (int other = 0; other < cuts.block(); ++other) {
          received += reshard.sent(other, member).count();
          missing = without(missing, reshard.sent(other, member));
        }
        EXPECT_EQ(received, reshard.wanted(member).count()) << text_of_cuts(setup.plan);
        EXPECT_EQ(missing.count(), 0U) << text_of_cuts(setup.plan);
      }
    }
  });
}

/// An operator's groups lie in the rectangle of the plan's, the tiles of a stream next to each other.
TEST(Operators, LieInTheRectangleOfTheModelGroup) {
  LoweringFixture setup = split({8, 1}, {1, 8}, {2, 4});
  setup.plan.dp = 4;
  const topology::Mesh mesh = setup.mesh();
  const Mapping mapping(setup.plan, mesh);
  const PlanCuts cuts(setup.plan, mapping, mesh);
  for (int replica = 0; replica < 4; ++replica) {
    Ranks ranks;
    ranks.dp = replica;
    std::set<TileId> block;
    for (const TileId tile : mapping.group(Axis::tp, ranks)) block.insert(tile);
    const std::vector<TileId> line = cuts.mapping(Cut::attention).group(Axis::tatp, ranks);
    EXPECT_EQ(std::set<TileId>(line.begin(), line.end()), block);
    for (std::size_t i = 1; i < line.size(); ++i) EXPECT_EQ(mesh.distance(line[i - 1], line[i]), 1);
  }
}

std::string refusal(const LoweringFixture& setup) {
  try {
    validate_plan(setup.plan, setup.training, setup.model, setup.mesh());
  } catch (const PlanError& error) {
    return error.what();
  }
  return "";
}

TEST(Operators, WhatCannotBeDividedIsRefusedWithWhatCan) {
  LoweringFixture setup = split({2, 4}, {1, 8}, {8, 1});
  EXPECT_EQ(refusal(setup), "");
  LoweringFixture wrong = setup;
  wrong.plan.attention = OperatorDegrees{3, 2};
  EXPECT_EQ(refusal(wrong),
            "plan.operators.attention: tp 3 * tatp 2 are 6 tiles, but a model group has plan.tp 2 * plan.tatp 4 = 8; nearest "
            "valid: tp 2 * tatp 4");
  wrong = setup;
  wrong.plan.mlp = OperatorDegrees{8, 0};
  EXPECT_EQ(refusal(wrong), "plan.operators.mlp.tatp 0 is below 1; nearest valid: 1");
  wrong = setup;
  wrong.model.parallel_residual = true;
  EXPECT_EQ(refusal(wrong),
            "plan.operators does not go with model.parallel_residual, where both operators add to one sum; nearest valid: none, "
            "one plan for both operators");
  wrong = setup;
  wrong.make_mixtral();
  EXPECT_NE(refusal(wrong).find("plan.operators does not go with a mixture of experts (model.experts)"), std::string::npos);
  wrong = setup;
  wrong.plan.mapping[Axis::tatp] = {Placement::strided, topology::Shape{1, 4}};
  EXPECT_NE(refusal(wrong).find("plan.mapping.tatp strided does not go with plan.operators"), std::string::npos);
  wrong = setup;
  wrong.plan.mapping[Axis::dp] = {Placement::optimized, {}};
  EXPECT_NE(refusal(wrong).find("plan.mapping.dp auto does not go with plan.operators"), std::string::npos);
  wrong = setup;
  wrong.plan.dp = 2;
  wrong.plan.order = {Axis::tp, Axis::dp, Axis::tatp};
  EXPECT_NE(refusal(wrong).find("an order with tp and tatp side by side"), std::string::npos);
  wrong = setup;
  wrong.plan.attention = OperatorDegrees{8, 1};
  wrong.model.heads = wrong.model.kv_heads = 4;
  wrong.model.head_dim = 16;
  EXPECT_EQ(refusal(wrong),
            "with the degrees of plan.operators.attention: plan.tp 8 is more than the 4 attention heads of the model; nearest "
            "valid: 4");
  wrong = setup;
  wrong.model.attention_kernel = models::AttentionKernel::materialized;
  EXPECT_NE(refusal(wrong).find("with the degrees of plan.operators.attention: model.attention_kernel materialized"),
            std::string::npos);
  // The MLP has no heads.
  wrong = setup;
  wrong.model.heads = wrong.model.kv_heads = 2;
  wrong.model.head_dim = 32;
  EXPECT_EQ(refusal(wrong), "");
}

}  // namespace
}  // namespace wafersim::workloads
