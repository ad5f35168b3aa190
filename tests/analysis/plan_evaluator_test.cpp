#include "analysis/plan_evaluator.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/workloads/lowering_fixture.h"
#include "topology/routing.h"

/// Variants evaluated by slots against predictions of the variants themselves, step by step.
namespace wafersim::test {
namespace {

using analysis::CostModel;
using analysis::PlanEvaluator;
using workloads::LoweringFixture;
using workloads::PipelineSchedule;
using enum workloads::PipelineSchedule;

/// A lowered plan with all that a model needs of its machine.
struct Machine {
  explicit Machine(const LoweringFixture& the_fixture)
      : fixture(the_fixture),
        hardware(models::resolve_hardware(fixture.wafer, {}, {})),
        mesh(fixture.mesh()),
        routing(topology::make_routing("xy", mesh)),
        lowered(fixture.lower()) {}
  analysis::CostInput input(CostModel model) const {
    return {lowered.trace, lowered.mapping, fixture.plan, hardware, mesh, *routing, model, 1};
  }
  LoweringFixture fixture;
  models::HardwareModel hardware;
  topology::Mesh mesh;
  std::unique_ptr<topology::Routing> routing;
  workloads::LoweredPlan lowered;
};

LoweringFixture plan(int dp, int tp, int pp, int microbatches, PipelineSchedule schedule) {
  LoweringFixture fixture;
  fixture.model.layers = 8;
  fixture.training.microbatch = 1;
  fixture.training.global_batch = dp * microbatches;
  fixture.training.clip_grad = schedule != zb_h2;
  fixture.set_degrees(dp, tp, pp);
  fixture.plan.schedule = schedule;
  return fixture;
}

Cycle predicted(const LoweringFixture& fixture, CostModel model) {
  const Machine machine(fixture);
  analysis::StepCosts costs(machine.input(model));
  return analysis::predict(costs, machine.lowered.trace).cycles;
}

/// Where nothing but the pipeline makes a variant, to the cycle.
TEST(PlanEvaluator, EqualsPredictionsStepByStepWhereMessagesAreFree) {
  for (const PipelineSchedule schedule : {gpipe, one_f_one_b, zb_h1, zb_h2}) {
    const Machine machine(plan(1, 2, 4, 8, schedule));
    PlanEvaluator evaluator(machine.input(CostModel::roofline));
    for (const int microbatches : {4, 8, 12, 30}) {
      EXPECT_EQ(evaluator.cycles(microbatches, schedule), predicted(plan(1, 2, 4, microbatches, schedule), CostModel::roofline))
          << workloads::to_string(schedule) << ", " << microbatches;
    }
  }
}

TEST(PlanEvaluator, IsNearPredictionsStepByStepWithMessagesAndReplicas) {
  const Machine machine(plan(2, 2, 4, 8, one_f_one_b));
  PlanEvaluator evaluator(machine.input(CostModel::alpha_beta_contention));
  EXPECT_EQ(evaluator.cycles(8, one_f_one_b), predicted(machine.fixture, CostModel::alpha_beta_contention));
  for (const PipelineSchedule schedule : {gpipe, one_f_one_b}) {
    for (const int microbatches : {4, 12, 30}) {
      const auto step_by_step =
          static_cast<double>(predicted(plan(2, 2, 4, microbatches, schedule), CostModel::alpha_beta_contention));
      EXPECT_NEAR(static_cast<double>(evaluator.cycles(microbatches, schedule)), step_by_step, 0.01 * step_by_step)
          << workloads::to_string(schedule) << ", " << microbatches;
    }
  }
}

TEST(PlanEvaluator, RefusesWhatIsNoVariant) {
  const Machine machine(plan(1, 1, 4, 4, one_f_one_b));
  PlanEvaluator evaluator(machine.input(CostModel::roofline));
  EXPECT_THROW(evaluator.cycles(4, zb_h1), PlanError);
  EXPECT_THROW(evaluator.cycles(4, interleaved), PlanError);
  EXPECT_THROW(evaluator.cycles(0, gpipe), PlanError);
  const Machine few(plan(1, 1, 4, 2, one_f_one_b));
  EXPECT_THROW(PlanEvaluator(few.input(CostModel::roofline)), PlanError);
}

}  // namespace
}  // namespace wafersim::test
