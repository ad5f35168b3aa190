#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/layer.h"
#include "workloads/schedule.h"
#include "workloads/shard.h"

/// Pipelines of equal stages, layers only, on a network that costs nothing. F and B are the cycles of a
/// stage's forward and backward pass (weight gradients included) of one microbatch.
namespace wafersim::test {
namespace {

using workloads::LoweringFixture;
using workloads::Pass;
using workloads::PipelineSchedule;

LoweringFixture layers_only(int stages, int layers_per_stage, int microbatches, PipelineSchedule schedule) {
  LoweringFixture fixture;
  fixture.layers_alone();
  fixture.model.layers = stages * layers_per_stage;
  fixture.training.microbatch = 1;
  fixture.training.global_batch = microbatches;
  fixture.training.optimizer = workloads::Optimizer::none;
  fixture.training.clip_grad = false;
  fixture.set_degrees(1, 1, stages);
  fixture.plan.schedule = schedule;
  return fixture;
}

struct Outcome {
  Cycle cycles = 0;
  Cycle forward = 0;   ///< F
  Cycle backward = 0;  ///< B
  struct Stage {
    Cycle compute = 0;
    Cycle bubble = 0;
    Bytes activations = 0;
  };
  std::vector<Stage> stages;
};

/// The cycles of one pass of a stage: its layers, each as short as any microbatch went through it (others
/// waited for their input as well).
Cycle pass_cycles(const sim::Measurements& measurements, Pass pass, int stage) {
  std::map<std::int32_t, Cycle> shortest;
  for (const sim::StepMeasurement& step : measurements.steps) {
    if (step.stage != stage || step.pass != pass) continue;
    const auto entry = shortest.emplace(step.layer, step.shortest).first;
    entry->second = std::min(entry->second, step.shortest);
  }
  Cycle total = 0;
  for (const auto& [layer, cycles] : shortest) total += cycles;
  return total;
}

sim::Measurements simulate(const LoweringFixture& fixture) {
  const workloads::LoweredPlan lowered = fixture.lower();
  models::NetworkSpec network;
  network.fidelity = models::Fidelity::ideal;
  return run_trace(fixture.mesh(), models::resolve_hardware(fixture.wafer, {}, network), lowered.trace);
}

Outcome run_pipeline(const LoweringFixture& fixture) {
  const std::vector<std::uint64_t> numbers = isolated_numbers([&] {
    const sim::Measurements measurements = simulate(fixture);
    // Stage 0 waits for nobody before a forward pass, the last one for nobody before a backward pass.
    std::vector<std::uint64_t> out{measurements.cycles, pass_cycles(measurements, Pass::forward, 0),
                                   pass_cycles(measurements, Pass::backward, fixture.plan.pp - 1)};
    std::vector<sim::TileMeasurement> tiles = measurements.tiles;
    std::sort(tiles.begin(), tiles.end(), [](const auto& a, const auto& b) { return a.stage < b.stage; });
    for (const sim::TileMeasurement& tile : tiles) {
      EXPECT_EQ(tile.cycles.total(), measurements.cycles);
      const auto activations = static_cast<std::size_t>(workloads::MemoryClass::activations);
      out.insert(out.end(), {tile.cycles.compute, tile.cycles.bubble, tile.peak_by_class[activations]});
    }
    return out;
  });
  Outcome outcome{numbers[0], numbers[1], numbers[2], {}};
  for (std::size_t i = 3; i < numbers.size(); i += 3)
    outcome.stages.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
  return outcome;
}

constexpr PipelineSchedule kSchedules[] = {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b};

/// Makespan (m + p - 1)(F + B); every stage computes for m (F + B) of it, the rest is bubble.
TEST(Pipeline, MakespanAndBubbleEqualTheirFormulas) {
  for (const PipelineSchedule schedule : kSchedules) {
    for (const auto& [stages, layers, microbatches] :
         {std::array{1, 2, 3}, {2, 1, 1}, {2, 2, 4}, {3, 2, 4}, {4, 1, 2}, {4, 1, 8}, {5, 1, 5}, {8, 1, 3}}) {
      const Outcome outcome = run_pipeline(layers_only(stages, layers, microbatches, schedule));
      const auto m = static_cast<Cycle>(microbatches), p = static_cast<Cycle>(stages);
      const Cycle both = outcome.forward + outcome.backward;
      EXPECT_EQ(outcome.cycles, (m + p - 1) * both) << "p " << stages << ", m " << microbatches;
      ASSERT_EQ(outcome.stages.size(), p);
      for (const Outcome::Stage& stage : outcome.stages) {
        EXPECT_EQ(stage.compute, m * both);
        EXPECT_EQ(stage.bubble, (p - 1) * both);
      }
    }
  }
}

/// Recomputation does not wait for the gradient from the next stage, so the p - 1 backward passes that the
/// critical path enters through a stage boundary have it behind them: (m + p - 1)(F + B) - (p - 1) R with R
/// the recomputed cycles in B.
TEST(Pipeline, RecomputationHidesBehindTheWaitForTheGradient) {
  for (const PipelineSchedule schedule : kSchedules) {
    for (const auto& [stages, microbatches] : {std::array{1, 3}, {2, 4}, {3, 5}, {4, 4}}) {
      LoweringFixture fixture = layers_only(stages, 1, microbatches, schedule);
      const Outcome plain = run_pipeline(fixture);
      fixture.training.recompute = models::Recompute::full;
      const Outcome outcome = run_pipeline(fixture);
      EXPECT_EQ(outcome.forward, plain.forward);
      const Cycle recomputed = outcome.backward - plain.backward;
      EXPECT_GT(recomputed, 0U);
      const auto m = static_cast<Cycle>(microbatches), p = static_cast<Cycle>(stages);
      EXPECT_EQ(outcome.cycles, (m + p - 1) * (outcome.forward + outcome.backward) - (p - 1) * recomputed)
          << "p " << stages << ", m " << microbatches;
    }
  }
}

/// A stage holds what its layers save for each microbatch in flight: gpipe all m, 1f1b min(p - i, m) on stage
/// i. What else it holds does not depend on m.
TEST(Pipeline, ActivationsOfMicrobatchesInFlight) {
  for (const PipelineSchedule schedule : kSchedules) {
    const int stages = 4, layers = 2;
    const Outcome one = run_pipeline(layers_only(stages, layers, 1, schedule));
    for (const int microbatches : {2, 3, 7}) {
      const LoweringFixture fixture = layers_only(stages, layers, microbatches, schedule);
      const workloads::Shard shard = workloads::make_shard(fixture.model, fixture.training, fixture.plan, {});
      const Bytes saved =
          layers * workloads::saved_bytes_per_layer(fixture.model, shard, fixture.training.recompute);
      const Outcome many = run_pipeline(fixture);
      for (int stage = 0; stage < stages; ++stage) {
        const int in_flight =
            schedule == PipelineSchedule::gpipe ? microbatches : std::min(stages - stage, microbatches);
        const auto at = static_cast<std::size_t>(stage);
        EXPECT_EQ(many.stages[at].activations - one.stages[at].activations,
                  static_cast<Bytes>(in_flight - 1) * saved)
            << "stage " << stage << ", m " << microbatches;
      }
    }
  }
}

}  // namespace
}  // namespace wafersim::test
