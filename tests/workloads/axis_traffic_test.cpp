#include "workloads/axis_traffic.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tests/workloads/lowering_fixture.h"
#include "workloads/mapping_loads.h"
#include "workloads/trace_demands.h"

namespace wafersim::workloads {
namespace {

using topology::row_major;
using topology::Shape;
using topology::snake;

/// The closed forms laid on the mapping are the trace, pair of tiles by pair of tiles.
void expect_equal_to_trace(const LoweringFixture& fixture) {
  const topology::Mesh mesh = fixture.mesh();
  const auto xy = topology::make_routing("xy", mesh);
  const models::HardwareModel hardware = models::resolve_hardware(fixture.wafer, {}, {});
  const std::vector<AxisTraffic> traffic = plan_traffic(fixture.model, fixture.training, fixture.plan);
  MappingLoads loads(traffic, fixture.plan, hardware, *xy, mesh);
  const LoweredPlan lowered = fixture.lower();
  const topology::Demands expected = demands_of(lowered.trace);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(loads.demands(lowered.mapping), expected);
  EXPECT_EQ(loads.measure(lowered.mapping), topology::summarize(topology::link_loads(*xy, mesh, expected)));
}

TEST(PlanTraffic, EqualsTheTraceForEveryAxisAlone) {
  for (const auto& [dp, tp, pp] : {std::array{4, 1, 1}, std::array{1, 4, 1}, std::array{1, 1, 4}}) {
    SCOPED_TRACE(testing::Message() << "dp " << dp << " tp " << tp << " pp " << pp);
    LoweringFixture fixture;
    fixture.set_degrees(dp, tp, pp);
    expect_equal_to_trace(fixture);
  }
}

TEST(PlanTraffic, EqualsTheTraceWithEveryAlgorithmAndChunks) {
  for (const Collective algorithm :
       {Collective::automatic, Collective::ring, Collective::line, Collective::rows_cols, Collective::tree}) {
    for (const int chunks : {1, 3}) {
      SCOPED_TRACE(testing::Message() << to_string(algorithm) << ", chunks " << chunks);
      LoweringFixture fixture;
      fixture.set_degrees(4, 6, 2);
      fixture.plan.collectives = algorithm;
      fixture.plan.collective_chunks = chunks;
      fixture.plan.zero = 1;
      expect_equal_to_trace(fixture);
    }
  }
}

TEST(PlanTraffic, EqualsTheTraceOfRaggedPlans) {
  for (const SequenceParallel sp : {SequenceParallel::none, SequenceParallel::megatron}) {
    for (const models::Recompute recompute : {models::Recompute::none, models::Recompute::full}) {
      for (const int zero : {0, 1}) {
        SCOPED_TRACE(testing::Message() << "sp " << static_cast<int>(sp) << ", recompute "
                                        << static_cast<int>(recompute) << ", zero " << zero);
        LoweringFixture fixture;
        fixture.make_llama();
        fixture.model.layers = 5;
        fixture.model.heads = 7;
        fixture.model.vocab = 131;
        fixture.model.sequence = 31;
        fixture.training.global_batch = 12;
        fixture.training.recompute = recompute;
        fixture.set_degrees(2, 3, 3);
        fixture.plan.sp = sp;
        fixture.plan.zero = zero;
        expect_equal_to_trace(fixture);
      }
    }
  }
}

TEST(PlanTraffic, EqualsTheTraceInTheSpecialCases) {
  const std::vector<std::pair<const char*, void (*)(LoweringFixture&)>> cases = {
      {"tied embeddings", [](LoweringFixture& f) { f.model.tied_embeddings = true; }},
      {"tied embeddings, zero 1",
       [](LoweringFixture& f) {
         f.model.tied_embeddings = true;
         f.plan.zero = 1;
       }},
      {"no optimizer", [](LoweringFixture& f) { f.training.optimizer = Optimizer::none; }},
      {"no clipping", [](LoweringFixture& f) { f.training.clip_grad = false; }},
      {"layers alone", [](LoweringFixture& f) { f.layers_alone(); }},
      {"parallel residual", [](LoweringFixture& f) { f.model.parallel_residual = true; }},
      {"whole boundaries", [](LoweringFixture& f) { f.plan.pp_transfer_full = true; }},
      {"fp32", [](LoweringFixture& f) { f.training.precision = Precision::fp32; }},
      {"gpipe", [](LoweringFixture& f) { f.plan.schedule = PipelineSchedule::gpipe; }},
      {"two iterations", [](LoweringFixture& f) { f.training.iterations = 2; }},
      {"strided",
       [](LoweringFixture& f) {
         f.plan.mapping[Axis::dp] = {Placement::strided, Shape{2, 1}};
       }},
      {"selective", [](LoweringFixture& f) { f.training.recompute = models::Recompute::selective; }}};
  for (const auto& [name, change] : cases) {
    SCOPED_TRACE(name);
    LoweringFixture fixture;
    fixture.set_degrees(2, 2, 2);
    change(fixture);
    expect_equal_to_trace(fixture);
  }
}

TEST(PlanTraffic, AxesOfDegreeOneHaveNone) {
  LoweringFixture fixture;
  EXPECT_TRUE(plan_traffic(fixture.model, fixture.training, fixture.plan).empty());
}

TEST(PlanTraffic, EqualRanksShareTheirEntries) {
  LoweringFixture fixture;
  fixture.layers_alone();
  fixture.set_degrees(2, 8, 4);
  const auto traffic = plan_traffic(fixture.model, fixture.training, fixture.plan);
  for (const AxisTraffic& part : traffic) {
    EXPECT_EQ(part.tp, (RankSpan{0, 8}));
    EXPECT_EQ(part.dp, (RankSpan{0, 2}));
  }
}

/// Bytes sent along the links of a line of n by both phases: (1 - 1/n) D n / 2 each way, over all links.
TEST(GroupFlows, ALineCarriesItsShards) {
  const auto flows =
      group_flows(TrafficPattern::all_gather, 400, Shape{1, 4}, row_major({1, 4}), Collective::line, 1);
  std::map<std::pair<int, int>, Bytes> sent;
  for (const RankFlow& flow : flows) sent[{flow.from, flow.to}] += flow.bytes;
  EXPECT_EQ(sent,
            (std::map<std::pair<int, int>, Bytes>{
                {{0, 1}, 100}, {{1, 2}, 200}, {{2, 3}, 300}, {{3, 2}, 100}, {{2, 1}, 200}, {{1, 0}, 300}}));
}

TEST(GroupFlows, TransfersFollowTheRanks) {
  const auto count = [](TrafficPattern pattern) {
    return group_flows(pattern, 10, Shape{2, 2}, snake({2, 2}), Collective::automatic, 1).size();
  };
  EXPECT_EQ(count(TrafficPattern::to_next), 3u);
  EXPECT_EQ(count(TrafficPattern::to_previous), 3u);
  EXPECT_EQ(count(TrafficPattern::between_ends), 2u);
}

}  // namespace
}  // namespace wafersim::workloads
