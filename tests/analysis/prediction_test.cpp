#include <gtest/gtest.h>

#include <cmath>

#include "analysis/model_trial.h"
#include "analysis/step_schedule.h"
#include "sim/compiled_trace.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/random_plan.h"
#include "tests/workloads/lowering_fixture.h"
#include "topology/routing_policy.h"
#include "workloads/first_tiles.h"

/// Predicted iterations against simulated ones.
namespace wafersim::test {
namespace {

using analysis::CostModel;
using analysis::Prediction;
using workloads::LoweringFixture;
using workloads::PipelineSchedule;
using enum workloads::PipelineSchedule;

Prediction predict(const workloads::LoweredPlan& lowered, const workloads::PlanSpec& plan,
                   const models::HardwareModel& hardware, const topology::Mesh& mesh, CostModel model,
                   const std::string& routing = "xy") {
  const auto policy = topology::make_routing_policy(routing, mesh);
  analysis::StepCosts costs({lowered.trace, lowered.mapping, plan, hardware, mesh, *policy, model, 1});
  return analysis::predict(costs, lowered.trace);
}

Cycle simulated(const workloads::LoweredPlan& lowered, const models::HardwareModel& hardware, const topology::Mesh& mesh,
                const std::string& routing = "xy") {
  return isolated_numbers(
             [&] { return std::vector<std::uint64_t>{run_trace(mesh, hardware, lowered.trace, {}, routing).cycles}; })
      .front();
}

models::HardwareModel hardware_of(const LoweringFixture& fixture, models::Fidelity fidelity) {
  models::NetworkSpec network;
  network.fidelity = fidelity;
  return models::resolve_hardware(fixture.wafer, {}, network);
}

TEST(Prediction, OfOneTileIsItsSimulation) {
  LoweringFixture fixture;
  fixture.set_degrees(1, 1, 1);
  const models::HardwareModel hardware = hardware_of(fixture, models::Fidelity::packet);
  const workloads::LoweredPlan lowered = fixture.lower();
  const topology::Mesh mesh = fixture.mesh();
  const Cycle cycles = simulated(lowered, hardware, mesh);
  for (const CostModel model : {CostModel::alpha_beta_contention, CostModel::alpha_beta, CostModel::roofline}) {
    const Prediction prediction = predict(lowered, fixture.plan, hardware, mesh, model);
    EXPECT_EQ(prediction.cycles, cycles) << models::to_string(model);
    EXPECT_NEAR(prediction.breakdown.total(), 1, 1e-9);
    EXPECT_NEAR(prediction.breakdown.compute + prediction.breakdown.memory_stall, 1, 1e-9);
  }
}

TEST(Prediction, OfSeveralIterationsEndsWhenTheyDo) {
  LoweringFixture fixture;
  fixture.set_degrees(1, 1, 1);
  fixture.training.iterations = 3;
  const models::HardwareModel hardware = hardware_of(fixture, models::Fidelity::packet);
  const workloads::LoweredPlan lowered = fixture.lower();
  const Prediction prediction = predict(lowered, fixture.plan, hardware, fixture.mesh(), CostModel::roofline);
  ASSERT_EQ(prediction.iteration_ends.size(), 3U);
  EXPECT_EQ(prediction.iteration_ends.back(), simulated(lowered, hardware, fixture.mesh()));
  EXPECT_EQ(prediction.iteration_ends[1], 2 * prediction.iteration_ends[0]);
}

/// Pipelines of equal stages on a network that costs nothing, under every schedule, are their formulas and their simulation.
TEST(Prediction, OfPipelinesAloneIsTheirSimulation) {
  for (const PipelineSchedule schedule : {gpipe, one_f_one_b, interleaved, zb_h1, zb_h2}) {
    for (const int microbatches : {4, 8}) {
      LoweringFixture fixture;
      fixture.layers_alone();
      fixture.model.layers = 8;
      fixture.training.microbatch = 1;
      fixture.training.global_batch = microbatches;
      fixture.training.optimizer = workloads::Optimizer::none;
      fixture.training.clip_grad = false;
      fixture.set_degrees(1, 1, 4);
      fixture.plan.schedule = schedule;
      fixture.plan.virtual_stages = schedule == interleaved ? 2 : 1;
      const models::HardwareModel hardware = hardware_of(fixture, models::Fidelity::ideal);
      const workloads::LoweredPlan lowered = fixture.lower();
      const Prediction prediction = predict(lowered, fixture.plan, hardware, fixture.mesh(), CostModel::roofline);
      EXPECT_EQ(prediction.cycles, simulated(lowered, hardware, fixture.mesh()))
          << workloads::to_string(schedule) << ", " << microbatches << " microbatches";
      if (schedule != gpipe && schedule != one_f_one_b) continue;
      LoweringFixture alone = fixture;  // (m + p - 1)(F + B + W), a stage's share of one microbatch
      alone.model.layers = 2;
      alone.training.global_batch = 1;
      alone.set_degrees(1, 1, 1);
      const Prediction share = predict(alone.lower(), alone.plan, hardware, alone.mesh(), CostModel::roofline);
      EXPECT_EQ(prediction.cycles, static_cast<Cycle>(microbatches + 3) * share.cycles);
    }
  }
}

/// Tensor-parallel rings whose messages do not meet others.
TEST(Prediction, OfTensorParallelLayersIsNearTheirSimulation) {
  for (const auto sp : {workloads::SequenceParallel::none, workloads::SequenceParallel::megatron}) {
    LoweringFixture fixture;
    fixture.set_degrees(1, 4, 1);
    fixture.plan.sp = sp;
    fixture.plan.collectives = workloads::Collective::ring;
    const models::HardwareModel hardware = hardware_of(fixture, models::Fidelity::packet);
    const workloads::LoweredPlan lowered = fixture.lower();
    const auto cycles = static_cast<double>(simulated(lowered, hardware, fixture.mesh()));
    const Prediction prediction = predict(lowered, fixture.plan, hardware, fixture.mesh(), CostModel::alpha_beta_contention);
    EXPECT_NEAR(static_cast<double>(prediction.cycles), cycles, 0.02 * cycles);
  }
}

/// Plans of all axes on machines drawn at random, tiny models whose time is mostly latency. Messages that cost less never take
/// longer.
TEST(Prediction, OrdersRandomPlansAsTheSimulationDoes) {
  std::vector<double> predicted, measured;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomPlan plan = draw_random_plan(seed);
    const topology::Mesh mesh = plan.fixture.mesh();
    models::HardwareModel hardware = plan.hardware();
    if (hardware.fidelity != models::Fidelity::packet) continue;
    const workloads::LoweredPlan lowered = plan.lower(hardware, mesh);
    const workloads::LoweringInput input{plan.fixture.model,     plan.fixture.training, plan.fixture.plan,
                                         plan.fixture.placement, hardware,              mesh};
    const workloads::MemoryBound few = workloads::FirstTiles().bound(input);
    EXPECT_LE(few.peak_bytes, lowered.memory.peak_bytes) << plan.text;
    EXPECT_TRUE(few.fits || !lowered.memory.fits) << plan.text;
    for (std::size_t c = 0; c < few.by_class.size(); ++c) EXPECT_LE(few.by_class[c], lowered.memory.by_class[c]) << plan.text;
    const Prediction prediction =
        predict(lowered, plan.fixture.plan, hardware, mesh, CostModel::alpha_beta_contention, plan.router.routing);
    const Prediction free = predict(lowered, plan.fixture.plan, hardware, mesh, CostModel::roofline, plan.router.routing);
    EXPECT_LE(free.cycles, prediction.cycles) << plan.text;
    const auto policy = topology::make_routing_policy(plan.router.routing, mesh);
    const Prediction unlowered = analysis::predict(
        {plan.fixture.model, plan.fixture.training, plan.fixture.plan, plan.fixture.placement, hardware, mesh}, lowered.mapping,
        *policy, CostModel::alpha_beta_contention);
    EXPECT_EQ(unlowered.cycles, prediction.cycles) << plan.text;
    EXPECT_EQ(unlowered.iteration_ends, prediction.iteration_ends) << plan.text;
    EXPECT_NEAR(prediction.breakdown.total(), 1, 1e-6) << plan.text;
    predicted.push_back(static_cast<double>(prediction.cycles));
    measured.push_back(static_cast<double>(simulated(lowered, hardware, mesh, plan.router.routing)));
    RecordProperty("error_" + std::to_string(seed), std::to_string(predicted.back() / measured.back() - 1));
  }
  ASSERT_GE(predicted.size(), 20U);
  const analysis::ErrorStatistics errors = analysis::error_statistics(predicted, measured);
  EXPECT_GE(errors.tau, 0.9);
  EXPECT_LE(errors.mape, 0.15);
}

Bytes sent_by(const workloads::StepTemplate& step) {
  Bytes bytes = 0;
  for (const workloads::Op& op : step.ops) bytes += op.kind == workloads::OpKind::send ? op.bytes : 0;
  return bytes;
}

/// Steps may have one key, as the sums of a stage's own parameters and of the table that it ties: each costs what it sends.
TEST(Prediction, StepsWithOneKeyCostWhatEachOfThemSends) {
  LoweringFixture fixture;
  fixture.model.tied_embeddings = true;
  fixture.set_degrees(2, 1, 2);
  const models::HardwareModel hardware = hardware_of(fixture, models::Fidelity::packet);
  const workloads::LoweredPlan lowered = fixture.lower();
  const topology::Mesh mesh = fixture.mesh();
  const auto policy = topology::make_routing_policy("xy", mesh);
  analysis::StepCosts costs({lowered.trace, lowered.mapping, fixture.plan, hardware, mesh, *policy, CostModel::alpha_beta, 1});
  const std::vector<workloads::Step>& steps = costs.program_of(0).steps;
  int pairs = 0;
  for (std::uint32_t first = 0; first < steps.size(); ++first) {
    for (std::uint32_t second = first + 1; second < steps.size(); ++second) {
      const auto key = [&](std::uint32_t step) { return sim::step_key(workloads::MatchScope::step, steps[step]); };
      const auto bytes = [&](std::uint32_t step) { return sent_by(lowered.trace.templates[steps[step].step_template]); };
      if (key(first) != key(second) || bytes(first) == bytes(second)) continue;
      ++pairs;
      EXPECT_EQ(bytes(first) < bytes(second), costs.background(0, first).alone < costs.background(0, second).alone)
          << first << ": " << bytes(first) << " B, " << costs.background(0, first).alone << " cycles; " << second << ": "
          << bytes(second) << " B, " << costs.background(0, second).alone << " cycles";
    }
  }
  EXPECT_GE(pairs, 1);
}

}  // namespace
}  // namespace wafersim::test
