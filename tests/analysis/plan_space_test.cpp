#include "analysis/plan_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "analysis/plan_predictor.h"
#include "analysis/step_schedule.h"
#include "base/error.h"
#include "base/random.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/first_tiles.h"
#include "workloads/memory_bound.h"
#include "workloads/memory_plan.h"
#include "workloads/schedule.h"

namespace wafersim::test {
namespace {

using analysis::PlanFamily;
using analysis::PlanKey;
using analysis::PlanPoint;
using analysis::PlanSpace;
using workloads::LoweringFixture;
using workloads::PipelineSchedule;
using workloads::SequenceParallel;

struct Ground {
  Ground() {
    fixture.wafer.mesh.shape = {4, 4};
    fixture.model.layers = 4;
    fixture.training.global_batch = 8;
    fixture.training.microbatch = 1;
  }
  PlanSpace space(PlanFamily family = PlanFamily::all, const std::set<PlanKey>& kept = {}) {
    return PlanSpace({fixture.model, {fixture.plan, fixture.training, "xy"}, mesh, family, kept});
  }
  LoweringFixture fixture;
  topology::Mesh mesh = topology::Mesh([] {
    topology::MeshSpec spec;
    spec.shape = {4, 4};
    return spec;
  }());
};

std::set<std::string> texts_of(const PlanSpace& space) {
  std::set<std::string> texts;
  for (std::size_t i = 0; i < space.size(); ++i)
    EXPECT_TRUE(texts.insert(plan_text(space.at(i))).second) << plan_text(space.at(i));
  return texts;
}

TEST(PlanSpace, IsWhatLoopsOverAllDegreesFind) {
  Ground ground;
  const std::set<std::string> texts = texts_of(ground.space(PlanFamily::all, {PlanKey::sp}));
  std::set<std::string> expected;
  const std::int64_t batch = ground.fixture.training.global_batch;
  std::vector<PlanPoint> found;
  int most = 0;
  for (int tp = 1; tp <= 16; tp *= 2) {
    for (int tatp = 1; tatp <= 16; tatp *= 2) {
      for (int pp = 1; pp <= 16; pp *= 2) {
        // The largest batch-dividing number of replicas; on this mesh every power of two can be laid out.
        int dp = 0;
        for (int each = 1; each * tp * tatp * pp <= 16 && batch % each == 0; each *= 2) dp = each;
        if (dp == 0) continue;
        PlanPoint point{{}, ground.fixture.training, "xy"};
        point.plan.tp = tp, point.plan.tatp = tatp, point.plan.pp = pp, point.plan.dp = dp;
        for (const PipelineSchedule schedule :
             {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved, PipelineSchedule::zb_h1,
              PipelineSchedule::zb_h2}) {
          for (const int chunks : {1, 2, 4}) {
            for (const int zero : {0, 1, 2, 3}) {
              for (const auto recompute : {models::Recompute::none, models::Recompute::selective, models::Recompute::full}) {
                for (std::int64_t microbatch = 1; microbatch <= batch / dp; ++microbatch) {
                  if ((pp == 1 && schedule != PipelineSchedule::one_f_one_b) || (dp == 1 && zero > 0)) continue;
                  point.plan.schedule = schedule, point.plan.virtual_stages = chunks, point.plan.zero = zero;
                  point.training.recompute = recompute, point.training.microbatch = microbatch;
                  try {
                    workloads::validate_plan(point.plan, point.training, ground.fixture.model, ground.mesh);
                  } catch (const PlanError&) {
                    continue;
                  }
                  found.push_back(point);
                  most = std::max(most, point.plan.tiles_used());
                }
              }
            }
          }
        }
      }
    }
  }
  for (const PlanPoint& point : found) {
    if (2 * point.plan.tiles_used() >= most) expected.insert(plan_text(point));
  }
  EXPECT_GT(expected.size(), 500u);
  EXPECT_EQ(texts, expected);
}

TEST(PlanSpace, FamiliesArePartsOfTheWhole) {
  Ground ground;
  const std::set<std::string> all = texts_of(ground.space());
  for (const PlanFamily family : {PlanFamily::megatron, PlanFamily::megatron_sp, PlanFamily::fsdp}) {
    const PlanSpace space = ground.space(family);
    EXPECT_GT(space.size(), 0u);
    for (std::size_t i = 0; i < space.size(); ++i) {
      const PlanPoint point = space.at(i);
      EXPECT_TRUE(all.contains(plan_text(point))) << plan_text(point);
      EXPECT_EQ(point.plan.tatp, 1);
      EXPECT_EQ(point.plan.sp_degree, 1);
      const bool cut = family == PlanFamily::megatron_sp && point.plan.tp > 1;
      EXPECT_EQ(point.plan.sp, cut ? SequenceParallel::megatron : SequenceParallel::none);
      if (family == PlanFamily::fsdp) {
        EXPECT_EQ(point.plan.tiles_used(), point.plan.dp);
        EXPECT_EQ(point.plan.zero, 3);
      } else {
        EXPECT_LE(point.plan.zero, 1);
      }
    }
  }
}

TEST(PlanSpace, KeptKeysHaveOneValue) {
  Ground ground;
  ground.fixture.plan.tp = 2;
  ground.fixture.plan.zero = 2;
  ground.fixture.training.microbatch = 2;
  const PlanSpace space = ground.space(PlanFamily::all, {PlanKey::tp, PlanKey::zero, PlanKey::microbatch});
  EXPECT_GT(space.size(), 0u);
  for (std::size_t i = 0; i < space.size(); ++i) {
    EXPECT_EQ(space.at(i).plan.tp, 2);
    EXPECT_EQ(space.at(i).plan.zero, 2);
    EXPECT_EQ(space.at(i).training.microbatch, 2);
  }
}

TEST(PlanSpace, SaysWhyItIsEmpty) {
  Ground ground;
  ground.fixture.plan.tp = 64;
  const PlanSpace space = ground.space(PlanFamily::all, {PlanKey::tp});
  EXPECT_EQ(space.size(), 0u);
  EXPECT_NE(space.first_fault().find("plan.tp 64"), std::string::npos) << space.first_fault();
}

/// Plans are called too large at sight only when their bound does not fit either.
TEST(PlanPredictor, StaticBytesAreNoMoreThanTheBound) {
  Ground ground;
  const LoweringFixture& fixture = ground.fixture;
  const models::HardwareModel hardware = models::resolve_hardware(fixture.wafer, {}, {});
  const analysis::PlanPredictor predictor({fixture.model, fixture.placement, hardware, ground.mesh, {}, 1, {}, {}});
  const PlanSpace space = ground.space();
  std::size_t looked_at = 0;
  for (std::size_t i = 0; i < space.size(); i += 61, ++looked_at) {
    const PlanPoint point = space.at(i);
    try {
      const workloads::LoweredPlan lowered =
          workloads::lower({fixture.model, point.training, point.plan, fixture.placement, hardware, ground.mesh});
      EXPECT_LE(predictor.static_bytes(point), static_cast<double>(lowered.memory.peak_bytes)) << plan_text(point);
      EXPECT_GT(predictor.estimated_cycles(point), 0);
    } catch (const PlanError&) {
      // Some plans that are valid by themselves cannot be laid out.
    }
  }
  EXPECT_GT(looked_at, 20u);
}

/// Some plans of the space, in an order that has nothing to do with what they have in common.
std::vector<PlanPoint> shuffled_plans(const PlanSpace& space, std::size_t apart) {
  std::vector<PlanPoint> points;
  for (std::size_t i = 0; i < space.size(); i += apart) points.push_back(space.at(i));
  RandomStream random(1, "order of plans");
  for (std::size_t i = points.size(); i > 1; --i) std::swap(points[i - 1], points[random.below(i)]);
  for (PlanPoint& point : points) point.routing = "xy";
  return points;
}

/// Models and memories that differ in what a plan may cut, and in what its steps cost.
std::vector<Ground> grounds() {
  std::vector<Ground> all(4);
  all[1].fixture.make_llama();
  all[2].fixture.make_mixtral();
  all[2].fixture.training.clip_grad = false;
  all[3].fixture.model.tied_embeddings = true;
  all[3].fixture.plan.stream.operand = workloads::StreamOperand::automatic;
  for (Ground& each : all) {
    each.fixture.model.layers = 4;
    each.fixture.training.global_batch = 8;
  }
  all[1].fixture.wafer.dram = all[2].fixture.wafer.dram =
      models::DramSpec{DataSize{Bytes{1} << 30}, Bandwidth{Rational(64), true}, {2, 2}};
  all[2].fixture.wafer.dram->die = {1, 1};
  return all;
}

/// The largest bound of a lowered plan's first tiles of all stages, or of the first `stages` of them.
workloads::MemoryBound bound_of_first_tiles(const workloads::LoweringInput& input, workloads::LoweredPlan lowered, int stages) {
  workloads::Trace& trace = lowered.trace;
  std::erase_if(trace.tiles, [&](const workloads::TileBinding& tile) {
    workloads::Ranks first;
    first.pp = tile.stage;
    return tile.stage >= stages || lowered.mapping.tile(first) != tile.tile;
  });
  const std::vector<workloads::TileBound> bounds =
      bound_tiles(trace, passes_in_flight(pipeline_shape(input.plan, input.training)));
  place_memory(trace, bounds, input.placement, input.hardware);
  return memory_bound(trace, bounds, input.hardware);
}

/// Gives each tile as much SRAM as half of the plans need of memory; with DRAM, a fiftieth, and what is left as DRAM.
void make_room_for_half(Ground& ground, const std::vector<PlanPoint>& points) {
  std::vector<Bytes> peaks;
  for (std::size_t i = 0; i < points.size(); i += 5) {
    ground.fixture.training = points[i].training;
    ground.fixture.plan = points[i].plan;
    peaks.push_back(ground.fixture.lower().memory.peak_bytes);
  }
  std::nth_element(peaks.begin(), peaks.begin() + static_cast<std::ptrdiff_t>(peaks.size() / 2), peaks.end());
  const Bytes room = peaks[peaks.size() / 2];
  models::WaferSpec& wafer = ground.fixture.wafer;
  wafer.sram.capacity = DataSize{wafer.dram ? room / 50 : room};
  if (wafer.dram) {
    const auto tiles = static_cast<Bytes>(wafer.dram->die.rows) * static_cast<Bytes>(wafer.dram->die.cols);
    wafer.dram->capacity = DataSize{tiles * (room - room / 50)};
  }
}

/// What many plans share makes no difference to any of them: what the predictor and the first tiles say of each is what the plan
/// says that is lowered and played by itself. There is room for half of the plans.
TEST(PlanPredictor, VerdictsAreThoseOfTheLoweredPlan) {
  std::size_t fitting = 0, too_large = 0, by_first_tiles = 0;
  std::vector<Ground> all = grounds();
  for (Ground& ground : all) {
    const PlanSpace space = ground.space();
    const std::vector<PlanPoint> points = shuffled_plans(space, space.size() / 60);
    make_room_for_half(ground, points);
    const LoweringFixture& fixture = ground.fixture;
    const models::HardwareModel hardware = models::resolve_hardware(fixture.wafer, {}, {});
    const auto policy = topology::make_routing_policy("xy", ground.mesh);
    const auto routes = [&](const workloads::LoweringInput&, const workloads::Trace&) {
      return topology::make_routing_policy("xy", ground.mesh);
    };
    analysis::PlanPredictor predictor(
        {fixture.model, fixture.placement, hardware, ground.mesh, models::CostModel::alpha_beta_contention, 1, routes, {}});
    workloads::FirstTiles tiles;
    for (const PlanPoint& point : points) {
      const workloads::LoweringInput input{fixture.model, point.training, point.plan, fixture.placement, hardware, ground.mesh};
      const analysis::PlanVerdict verdict = predictor.predict(point);
      ASSERT_NE(verdict.outcome, analysis::PlanVerdict::Outcome::refused) << plan_text(point) << ": " << verdict.fault;
      const workloads::LoweredPlan lowered = workloads::lower(input);
      const workloads::MemoryBound one = bound_of_first_tiles(input, lowered, 1);
      const workloads::MemoryBound first = one.fits ? bound_of_first_tiles(input, lowered, point.plan.pp) : one;
      EXPECT_EQ(tiles.bound(input), first) << plan_text(point);
      const Bytes remembered = tiles.remembered();
      EXPECT_EQ(tiles.bound(input), first) << plan_text(point);
      EXPECT_EQ(tiles.remembered(), remembered);
      EXPECT_EQ(verdict.memory, first.fits ? lowered.memory : first) << plan_text(point);
      if (!lowered.memory.fits) {
        EXPECT_EQ(verdict.outcome, analysis::PlanVerdict::Outcome::does_not_fit) << plan_text(point);
        ++(first.fits ? too_large : by_first_tiles);
        continue;
      }
      analysis::StepCosts costs({lowered.trace, lowered.mapping, point.plan, hardware, ground.mesh, *policy});
      EXPECT_EQ(verdict.cycles, analysis::predict(costs, lowered.trace).cycles) << plan_text(point);
      ++fitting;
    }
  }
  RecordProperty("do_not_fit_by_other_tiles", static_cast<int>(too_large));
  EXPECT_GT(fitting, 60u);
  EXPECT_GT(by_first_tiles, 60u);
}

/// A plan that is asked for again plays nothing, and one with other chunks only what it has of its own.
TEST(PlanPredictor, StepsArePlayedOnce) {
  Ground ground;
  ground.fixture.set_degrees(2, 2, 2);
  const models::HardwareModel hardware = models::resolve_hardware(ground.fixture.wafer, {}, {});
  const auto policy = topology::make_routing_policy("xy", ground.mesh);
  analysis::ReplayMemory memory;
  const auto play = [&](analysis::ReplayMemory* plays) {
    const workloads::LoweredPlan lowered = workloads::lower({ground.fixture.model, ground.fixture.training, ground.fixture.plan,
                                                             ground.fixture.placement, hardware, ground.mesh});
    analysis::StepCosts costs({lowered.trace, lowered.mapping, ground.fixture.plan, hardware, ground.mesh, *policy,
                               models::CostModel::alpha_beta_contention, 1, plays});
    return analysis::predict(costs, lowered.trace).cycles;
  };
  EXPECT_EQ(play(&memory), play(nullptr));
  const std::size_t plays = memory.plays();
  EXPECT_GT(plays, 4u);
  play(&memory);
  EXPECT_EQ(memory.plays(), plays);
  ground.fixture.training.global_batch *= 2;
  EXPECT_EQ(play(&memory), play(nullptr));
  EXPECT_EQ(memory.plays(), plays);
  ground.fixture.plan.schedule = PipelineSchedule::interleaved;
  ground.fixture.plan.virtual_stages = 2;
  analysis::ReplayMemory alone;
  EXPECT_EQ(play(&memory), play(nullptr));
  EXPECT_EQ(play(&alone), play(nullptr));
  EXPECT_LT(memory.plays() - plays, alone.plays());
}

}  // namespace
}  // namespace wafersim::test
