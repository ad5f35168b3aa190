#include "workloads/axis_traffic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "base/error.h"
#include "base/random.h"
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
  EXPECT_EQ(loads.measure(lowered.mapping), topology::summarize(topology::link_loads(*xy, mesh, expected), mesh));
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
       {Collective::automatic, Collective::ring, Collective::line, Collective::rows_cols, Collective::tree,
        Collective::halving_doubling, Collective::direct, Collective::multicast,
        Collective::router_multicast}) {
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
      for (const int zero : {0, 1, 2, 3}) {
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
      {"experts", [](LoweringFixture& f) { f.make_mixtral(); }},
      {"experts over replicas",
       [](LoweringFixture& f) {
         f.make_mixtral();
         f.plan.ep = 2;
         f.plan.sp = SequenceParallel::megatron;
         f.model.capacity_factor = Rational(5, 4);
       }},
      {"experts over some replicas, tied, zero 3, another nesting",
       [](LoweringFixture& f) {
         f.make_mixtral();
         f.model.tied_embeddings = true;
         f.plan.dp = 8;
         f.plan.ep = 4;
         f.plan.zero = 3;
         f.plan.order = {Axis::dp, Axis::tp, Axis::ep, Axis::pp};
         f.plan.mapping[Axis::ep] = {Placement::snake, Shape{2, 2}};
         f.training.recompute = models::Recompute::full;
         f.plan.schedule = PipelineSchedule::zb_h1;
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

/// A small model whose every size is ragged over any degree, for plans that cut the sequence.
struct CutSequence : LoweringFixture {
  CutSequence() {
    model.attention_kernel = models::AttentionKernel::fused;
    model.attention = models::AttentionMask::causal;
    model.layers = 3;
    model.heads = 12;
    model.kv_heads = 6;
    model.hidden = 52;
    model.ffn = 210;
    model.vocab = 131;
    model.context = model.sequence = 37;
    plan.collectives = Collective::automatic;
  }
  void stream(int degree, StreamVariant variant = StreamVariant::flood,
              StreamRelay relay = StreamRelay::cut_through) {
    plan.tatp = degree;
    plan.stream.variant = variant;
    plan.stream.relay = relay;
  }
  void cut(SequenceParallel kind, int degree) {
    plan.sp = kind;
    plan.sp_degree = degree;
  }
};

constexpr std::array kVariants = {StreamVariant::flood, StreamVariant::wrapped_ring,
                                  StreamVariant::interleaved_ring};
constexpr std::array kRelays = {StreamRelay::cut_through, StreamRelay::store_and_forward};

TEST(PlanTraffic, EqualsTheTraceOfTensorStreams) {
  for (const StreamVariant variant : kVariants) {
    for (const StreamRelay relay : kRelays) {
      for (const StreamAttention attention : {StreamAttention::stream_kv, StreamAttention::heads}) {
        for (const int degree : {2, 5, 6}) {
          SCOPED_TRACE(testing::Message()
                       << "variant " << static_cast<int>(variant) << ", relay " << static_cast<int>(relay)
                       << ", attention " << static_cast<int>(attention) << ", tatp " << degree);
          CutSequence fixture;
          fixture.stream(degree, variant, relay);
          fixture.plan.stream.attention = attention;
          fixture.plan.mapping[Axis::tatp] = {degree == 6 ? Placement::block : Placement::snake, {}};
          expect_equal_to_trace(fixture);
        }
      }
    }
  }
}

TEST(PlanTraffic, EqualsTheTraceOfStreamsInPieces) {
  for (const int near : {1, 2, 3}) {
    for (const models::Recompute recompute : {models::Recompute::none, models::Recompute::full}) {
      SCOPED_TRACE(testing::Message() << "near " << near << ", recompute " << static_cast<int>(recompute));
      CutSequence fixture;
      fixture.set_degrees(1, 2, 1);
      fixture.stream(3);
      fixture.plan.overlap_near = near;
      fixture.training.recompute = recompute;
      expect_equal_to_trace(fixture);
    }
  }
}

TEST(PlanTraffic, EqualsTheTraceOfRingAndUlysses) {
  for (const SequenceParallel kind : {SequenceParallel::ring, SequenceParallel::ulysses}) {
    for (const int degree : {2, 3, 4, 6}) {
      for (const models::Recompute recompute : {models::Recompute::none, models::Recompute::full}) {
        SCOPED_TRACE(testing::Message() << "sp " << static_cast<int>(kind) << " " << degree << ", recompute "
                                        << static_cast<int>(recompute));
        CutSequence fixture;
        fixture.cut(kind, degree);
        fixture.training.recompute = recompute;
        expect_equal_to_trace(fixture);
      }
    }
  }
}

TEST(PlanTraffic, EqualsTheTraceWhereStreamsMeetOtherCuts) {
  const std::vector<std::pair<const char*, void (*)(CutSequence&)>> cases = {
      {"ring of lines", [](CutSequence& f) { f.cut(SequenceParallel::ring, 3); }},
      {"ring with heads over tatp",
       [](CutSequence& f) {
         f.cut(SequenceParallel::ring, 3);
         f.plan.stream.attention = StreamAttention::heads;
       }},
      {"lines after ulysses", [](CutSequence& f) { f.cut(SequenceParallel::ulysses, 3); }},
      {"megatron", [](CutSequence& f) { f.plan.sp = SequenceParallel::megatron; }},
      {"megatron, stages",
       [](CutSequence& f) {
         f.plan.sp = SequenceParallel::megatron;
         f.plan.pp = 3;
       }},
      {"parallel residual",
       [](CutSequence& f) {
         f.plan.sp = SequenceParallel::megatron;
         f.model.parallel_residual = true;
       }},
      {"shared kv heads",
       [](CutSequence& f) {
         f.plan.tp = 5;
         f.model.kv_heads = 3;
       }},
      {"kv head of all",
       [](CutSequence& f) {
         f.plan.tp = 4;
         f.model.kv_heads = 1;
       }},
      {"tied, zero 1",
       [](CutSequence& f) {
         f.model.tied_embeddings = true;
         f.plan.pp = 2;
         f.plan.dp = 4;
         f.plan.zero = 1;
       }},
      {"pieces", [](CutSequence& f) {
         f.plan.overlap_near = 2;
         f.plan.collective_chunks = 3;
       }}};
  for (const auto& [name, change] : cases) {
    SCOPED_TRACE(name);
    CutSequence fixture;
    fixture.set_degrees(1, 2, 1);
    fixture.stream(3, StreamVariant::interleaved_ring);
    change(fixture);
    expect_equal_to_trace(fixture);
  }
}

TEST(PlanTraffic, EqualsTheTraceOfStreamsOfInputs) {
  const std::vector<std::pair<const char*, void (*)(CutSequence&)>> cases = {
      {"alone", [](CutSequence& f) { f.plan.tp = 1; }},
      {"pieces", [](CutSequence& f) { f.plan.overlap_near = 5; }},
      {"full recomputation", [](CutSequence& f) { f.training.recompute = models::Recompute::full; }},
      {"weight passes",
       [](CutSequence& f) {
         f.plan.pp = 2;
         f.plan.schedule = PipelineSchedule::zb_h1;
       }},
      {"ring", [](CutSequence& f) { f.cut(SequenceParallel::ring, 3); }},
      {"ulysses",
       [](CutSequence& f) {
         f.model.kv_heads = 12;
         f.cut(SequenceParallel::ulysses, 2);
       }},
      {"megatron",
       [](CutSequence& f) {
         f.plan.sp = SequenceParallel::megatron;
         f.plan.pp = 3;
       }},
      {"parallel residual, zero 3",
       [](CutSequence& f) {
         f.model.parallel_residual = true;
         f.plan.dp = 2;
         f.plan.zero = 3;
       }},
      {"kv heads shared on a line", [](CutSequence& f) { f.model.kv_heads = 4; }},
      {"kv heads shared raggedly",
       [](CutSequence& f) {
         f.model.kv_heads = 3;
         f.plan.tatp = 4;
       }},
      {"kv heads shared on a line and over tp",
       [](CutSequence& f) {
         f.model.kv_heads = 2;
         f.plan.tp = 4;
       }},
      {"the smaller operand",
       [](CutSequence& f) {
         f.plan.stream.operand = StreamOperand::automatic;
         f.model.kv_heads = 2;
         f.training.microbatch = 2;
       }}};
  for (const auto& [name, change] : cases) {
    for (const StreamVariant variant : kVariants) {
      SCOPED_TRACE(testing::Message() << name << ", variant " << static_cast<int>(variant));
      CutSequence fixture;
      fixture.set_degrees(1, 2, 1);
      fixture.stream(3, variant, StreamRelay::store_and_forward);
      fixture.plan.stream.operand = StreamOperand::inputs;
      change(fixture);
      expect_equal_to_trace(fixture);
    }
  }
}

/// One of the choices, by a stream of random numbers.
template <class Choices>
auto draw(RandomStream& random, const Choices& choices) {
  return *(std::begin(choices) + static_cast<std::ptrdiff_t>(random.below(std::size(choices))));
}

/// Whatever a scenario may ask for; plans that validate_plan refuses are left out.
CutSequence random_plan(RandomStream& random) {
  constexpr std::array kDegrees = {1, 1, 2, 3, 4};
  constexpr std::array kFlags = {false, true};
  CutSequence f;
  f.model.layers = 6;
  f.model.kv_heads = draw(random, std::array{1, 3, 4, 6, 12});
  f.model.parallel_residual = draw(random, kFlags);
  f.model.tied_embeddings = draw(random, kFlags);
  f.model.final_norm = draw(random, kFlags);
  f.model.embedding = draw(random, std::array{true, true, false});
  f.model.head = draw(random, std::array{true, true, false});
  f.model.linear_bias = draw(random, kFlags);
  f.model.mlp = draw(random, std::array{models::Mlp::gelu, models::Mlp::swiglu});
  f.model.norm = draw(random, std::array{models::Norm::layernorm, models::Norm::rmsnorm});
  f.model.positions = draw(random, std::array{models::Positions::learned, models::Positions::rotary});
  f.model.attention = draw(random, std::array{models::AttentionMask::causal, models::AttentionMask::full});
  f.set_degrees(draw(random, std::array{1, 2, 3}), draw(random, std::array{1, 2, 3, 5}),
                draw(random, std::array{1, 1, 2, 3}));
  f.stream(draw(random, kDegrees), draw(random, kVariants), draw(random, kRelays));
  f.plan.stream.attention = draw(random, std::array{StreamAttention::stream_kv, StreamAttention::heads});
  f.plan.stream.operand =
      draw(random, std::array{StreamOperand::weights, StreamOperand::inputs, StreamOperand::automatic});
  f.plan.sp = draw(random, std::array{SequenceParallel::none, SequenceParallel::megatron,
                                      SequenceParallel::ulysses, SequenceParallel::ring});
  if (f.plan.sp == SequenceParallel::ulysses || f.plan.sp == SequenceParallel::ring) {
    f.plan.sp_degree = draw(random, kDegrees);
  }
  f.plan.overlap_near = draw(random, std::array{1, 2});
  f.plan.collective_chunks = draw(random, std::array{1, 3});
  f.plan.collectives = draw(random, std::array{Collective::automatic, Collective::ring, Collective::line,
                                               Collective::rows_cols, Collective::tree,
                                               Collective::halving_doubling, Collective::direct, Collective::multicast,
                                               Collective::router_multicast});
  f.plan.zero = draw(random, std::array{0, 1, 2, 3});
  f.plan.pp_transfer_full = draw(random, kFlags);
  f.plan.schedule = draw(
      random, std::array{PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b,
                         PipelineSchedule::interleaved, PipelineSchedule::zb_h1, PipelineSchedule::zb_h2});
  if (f.plan.schedule == PipelineSchedule::interleaved) f.plan.virtual_stages = 2;
  if (f.plan.schedule == PipelineSchedule::zb_h2) f.training.clip_grad = false;
  f.plan.embedding = draw(random, std::array{EmbeddingTable::sharded, EmbeddingTable::replicated});
  f.training.global_batch = 12;
  f.training.microbatch = draw(random, std::array{1, 2});
  f.training.precision = draw(random, std::array{Precision::bf16, Precision::fp32, Precision::fp8});
  if (draw(random, kFlags)) f.training.gradient_precision = Precision::fp32;
  f.training.recompute = draw(
      random, std::array{models::Recompute::none, models::Recompute::selective, models::Recompute::full});
  f.training.optimizer = draw(random, std::array{Optimizer::adam, Optimizer::none});
  if (f.training.recompute == models::Recompute::full) f.training.recompute_every = draw(random, std::array{1, 2, 3});
  if (draw(random, kFlags)) {
    f.model.linear_bias = false;
    f.model.experts = draw(random, std::array{1, 2, 6});
    f.model.top_k = draw(random, std::array{1, static_cast<int>(f.model.experts)});
    f.model.capacity_factor = draw(random, std::array{Rational(1), Rational(5, 4), Rational(1, 3)});
    f.plan.ep = draw(random, std::array{1, f.plan.dp});
  }
  const Axis moved = draw(random, default_order());
  f.plan.mapping[moved] = {draw(random, std::array{Placement::block, Placement::snake, Placement::strided}),
                           {}};
  std::rotate(f.plan.order.begin(), f.plan.order.begin() + static_cast<std::ptrdiff_t>(random.below(f.plan.order.size())),
              f.plan.order.end());
  return f;
}

std::string described(const LoweringFixture& f) {
  std::string text;
  for (const Axis axis : default_order()) text += fmt::format("{} {} ", to_string(axis), f.plan.degree(axis));
  return text + fmt::format(
                    "sp {} operand {} attention {} variant {} relay {} near {} zero {} {} kv {} tied {} {} embedding {}",
                    static_cast<int>(f.plan.sp), static_cast<int>(f.plan.stream.operand),
                    static_cast<int>(f.plan.stream.attention),
                    static_cast<int>(f.plan.stream.variant), static_cast<int>(f.plan.stream.relay),
                    f.plan.overlap_near, f.plan.zero, to_string(f.plan.collectives), f.model.kv_heads,
                    f.model.tied_embeddings, to_string(f.plan.schedule), static_cast<int>(f.plan.embedding));
}

TEST(PlanTraffic, EqualsTheTraceOfRandomPlans) {
  RandomStream random(1, "plans");
  int compared = 0;
  for (int i = 0; i < 120; ++i) {
    const CutSequence fixture = random_plan(random);
    try {
      validate_plan(fixture.plan, fixture.training, fixture.model, fixture.mesh());
      const Mapping laid_out(fixture.plan, fixture.mesh());
    } catch (const PlanError&) {
      continue;
    }
    if (fixture.plan.tiles_used() == 1 || fixture.plan.tiles_used() > 72) continue;
    SCOPED_TRACE(described(fixture));
    expect_equal_to_trace(fixture);
    ++compared;
  }
  EXPECT_GE(compared, 40);
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
    EXPECT_EQ(part.span(Axis::tp), (RankSpan{0, 8}));
    EXPECT_EQ(part.span(Axis::dp), (RankSpan{0, 2}));
  }
}

/// Of collectives over the four tiles of a row that is a ring, nothing goes further than to the next tile; on a mesh the
/// ring has steps of two hops.
TEST(PlanTraffic, RingsGoRoundAWholeRingOfTheMesh) {
  for (const bool ring : {false, true}) {
    LoweringFixture fixture;
    fixture.set_degrees(3, 4, 1);
    fixture.training.global_batch = 12;
    fixture.wafer.mesh.shape = {3, 4};
    if (ring) fixture.wafer.mesh.wrap = topology::Wrap::both;
    fixture.plan.collectives = Collective::ring;
    fixture.plan.mapping = {{Axis::tp, {Placement::row, {}}}, {Axis::dp, {Placement::col, {}}}};
    expect_equal_to_trace(fixture);
    const topology::Mesh mesh = fixture.mesh();
    const LoweredPlan lowered = fixture.lower();
    EXPECT_EQ(lowered.mapping.axis_closed(Axis::tp), ring);
    EXPECT_EQ(lowered.mapping.axis_closed(Axis::dp), ring);
    int farthest = 0;
    for (const topology::Demand& demand : demands_of(lowered.trace)) {
      farthest = std::max(farthest, mesh.distance(demand.source, demand.destination));
    }
    EXPECT_EQ(farthest, ring ? 1 : 2);
  }
  // Half a ring is none.
  LoweringFixture half;
  half.set_degrees(1, 4, 1);
  half.wafer.mesh.shape = {1, 8};
  half.wafer.mesh.wrap = topology::Wrap::x;
  half.plan.mapping = {{Axis::tp, {Placement::row, {}}}};
  EXPECT_FALSE(half.lower().mapping.axis_closed(Axis::tp));
}

using Sent = std::map<std::pair<int, int>, Bytes>;

/// What the members of a group in `shape` send each other.
Sent sent(const AxisTraffic& traffic, const Shape& shape, const std::vector<topology::Coord>& positions,
          const StreamSpec& stream = {}) {
  Sent sums;
  for (const RankFlow& flow : group_flows(traffic, shape, positions, Collective::line, stream)) {
    sums[{flow.from, flow.to}] += flow.bytes;
  }
  return sums;
}

/// Bytes sent along the links of a line of n by both phases: (1 - 1/n) D n / 2 each way, over all links.
TEST(GroupFlows, ALineCarriesItsShards) {
  const AxisTraffic traffic{.pattern = TrafficPattern::all_gather, .rows = 400};
  EXPECT_EQ(sent(traffic, {1, 4}, row_major({1, 4})),
            (Sent{{{0, 1}, 100}, {{1, 2}, 200}, {{2, 3}, 300}, {{3, 2}, 100}, {{2, 1}, 200}, {{1, 0}, 300}}));
}

TEST(GroupFlows, TransfersFollowTheRanks) {
  const auto count = [](TrafficPattern pattern) {
    return sent({.pattern = pattern, .rows = 10}, {2, 2}, snake({2, 2})).size();
  };
  EXPECT_EQ(count(TrafficPattern::to_next), 3u);
  EXPECT_EQ(count(TrafficPattern::to_previous), 3u);
  EXPECT_EQ(count(TrafficPattern::between_ends), 2u);
}

/// Blocks of 1, 10 and 100 rows of two bytes.
AxisTraffic blocks(TrafficPattern pattern) {
  return {.pattern = pattern, .rows = 111, .row_bytes = 2, .parts = {1, 10, 100}};
}

TEST(GroupFlows, AFloodGoesOutwardFromTheOwners) {
  EXPECT_EQ(sent(blocks(TrafficPattern::stream_outward), {1, 3}, row_major({1, 3})),
            (Sent{{{0, 1}, 2}, {{1, 2}, 22}, {{2, 1}, 200}, {{1, 0}, 220}}));
  EXPECT_EQ(sent(blocks(TrafficPattern::stream_inward), {1, 3}, row_major({1, 3})),
            (Sent{{{1, 0}, 2}, {{2, 1}, 22}, {{1, 2}, 200}, {{0, 1}, 220}}));
}

TEST(GroupFlows, AWrappedRingGoesBackAcrossTheLine) {
  const StreamSpec direct{.variant = StreamVariant::wrapped_ring, .relay = StreamRelay::cut_through};
  EXPECT_EQ(sent(blocks(TrafficPattern::stream_outward), {1, 3}, row_major({1, 3}), direct),
            (Sent{{{0, 1}, 202}, {{1, 2}, 22}, {{2, 0}, 220}}));
  const StreamSpec relayed{.variant = StreamVariant::wrapped_ring, .relay = StreamRelay::store_and_forward};
  EXPECT_EQ(sent(blocks(TrafficPattern::stream_outward), {1, 3}, row_major({1, 3}), relayed),
            (Sent{{{0, 1}, 202}, {{1, 2}, 22}, {{2, 1}, 220}, {{1, 0}, 220}}));
}

TEST(GroupFlows, AnExchangeIsAProduct) {
  AxisTraffic traffic = blocks(TrafficPattern::exchange);
  traffic.factors = {1, 2, 3};
  EXPECT_EQ(sent(traffic, {1, 3}, row_major({1, 3})),
            (Sent{{{0, 1}, 4}, {{0, 2}, 6}, {{1, 0}, 20}, {{1, 2}, 60}, {{2, 0}, 200}, {{2, 1}, 400}}));
}

}  // namespace
}  // namespace wafersim::workloads
