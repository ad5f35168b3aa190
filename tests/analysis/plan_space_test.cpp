#include "analysis/plan_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "analysis/plan_predictor.h"
#include "analysis/step_schedule.h"
#include "base/error.h"
#include "tests/workloads/lowering_fixture.h"

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

/// What the predictor says at once is what the lowered plan says: whether it fits, and its cycles. There is room for half of the
/// plans.
TEST(PlanPredictor, VerdictsAreThoseOfTheLoweredPlan) {
  Ground ground;
  const PlanSpace space = ground.space();
  std::vector<Bytes> peaks;
  for (std::size_t i = 0; i < space.size(); i += 47) {
    ground.fixture.training = space.at(i).training;
    ground.fixture.plan = space.at(i).plan;
    try {
      peaks.push_back(ground.fixture.lower().memory.peak_bytes);
    } catch (const PlanError&) {
      // Some plans that are valid by themselves cannot be laid out.
    }
  }
  ASSERT_FALSE(peaks.empty());
  std::nth_element(peaks.begin(), peaks.begin() + static_cast<std::ptrdiff_t>(peaks.size() / 2), peaks.end());
  ground.fixture.wafer.sram.capacity = DataSize{peaks[peaks.size() / 2]};
  const LoweringFixture& fixture = ground.fixture;
  const models::HardwareModel hardware = models::resolve_hardware(fixture.wafer, {}, {});
  const auto routes = [&](const workloads::LoweringInput&, const workloads::Trace&) {
    return topology::make_routing_policy("xy", ground.mesh);
  };
  analysis::PlanPredictor predictor(
      {fixture.model, fixture.placement, hardware, ground.mesh, models::CostModel::alpha_beta_contention, 1, routes, {}});
  std::size_t fitting = 0, too_large = 0;
  for (std::size_t i = 0; i < space.size(); i += 47) {
    PlanPoint point = space.at(i);
    point.routing = "xy";
    const analysis::PlanVerdict verdict = predictor.predict(point);
    if (verdict.outcome == analysis::PlanVerdict::Outcome::refused) continue;
    const workloads::LoweredPlan lowered =
        workloads::lower({fixture.model, point.training, point.plan, fixture.placement, hardware, ground.mesh});
    ASSERT_EQ(verdict.memory.fits, lowered.memory.fits) << plan_text(point);
    if (!lowered.memory.fits) {
      EXPECT_LE(verdict.memory.peak_bytes, lowered.memory.peak_bytes) << plan_text(point);
      EXPECT_TRUE(verdict.memory.overflow) << plan_text(point);
      ++too_large;
      continue;
    }
    EXPECT_EQ(verdict.memory.peak_bytes, lowered.memory.peak_bytes) << plan_text(point);
    const auto policy = topology::make_routing_policy("xy", ground.mesh);
    analysis::StepCosts costs({lowered.trace, lowered.mapping, point.plan, hardware, ground.mesh, *policy,
                               models::CostModel::alpha_beta_contention, 1});
    EXPECT_EQ(verdict.cycles, analysis::predict(costs, lowered.trace).cycles) << plan_text(point);
    ++fitting;
  }
  EXPECT_GT(fitting, 10u);
  EXPECT_GT(too_large, 10u);
}

}  // namespace
}  // namespace wafersim::test
