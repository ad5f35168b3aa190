#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/workloads/lowering_fixture.h"
#include "tests/workloads/schedule_player.h"
#include "workloads/layer.h"
#include "workloads/shard.h"

/// Schedules on the simulator. Pipelines of equal stages, layers only, on a network that costs nothing: the idle
/// cycles of each stage are those of the formulas and of the schedule played by hand.
namespace wafersim::test {
namespace {

using namespace workloads;
using enum PipelineSchedule;

constexpr PipelineSchedule kAll[] = {gpipe, one_f_one_b, interleaved, zb_h1, zb_h2};

LoweringFixture pipeline(const PipelineShape& shape, int layers_per_chunk) {
  LoweringFixture fixture;
  fixture.layers_alone();
  fixture.model.layers = shape.stages * shape.chunks * layers_per_chunk;
  fixture.training.microbatch = 1;
  fixture.training.global_batch = shape.microbatches;
  fixture.training.optimizer = Optimizer::none;
  fixture.training.clip_grad = false;
  fixture.set_degrees(1, 1, shape.stages);
  fixture.plan.schedule = shape.schedule;
  fixture.plan.virtual_stages = shape.chunks;
  return fixture;
}

/// Models with other ratios of F, B and W.
std::vector<LoweringFixture> with_models(const PipelineShape& shape) {
  LoweringFixture plain = pipeline(shape, 2), attention = pipeline(shape, 1), wide = pipeline(shape, 1);
  attention.model.attention_kernel = models::AttentionKernel::fused;
  attention.model.context = attention.model.sequence = 256;
  wide.make_llama();
  wide.model.ffn = 1024;
  return {plain, attention, wide};
}

struct Outcome {
  Cycle forward = 0, backward = 0, weight = 0;  ///< of a stage for one microbatch
  std::vector<Cycle> idle;                      ///< of each stage between its own first start and last end
  std::vector<Bytes> activations;
};

Outcome run(const LoweringFixture& fixture) {
  const auto numbers = isolated_numbers([&] {
    const LoweredPlan lowered = fixture.lower();
    models::NetworkSpec network;
    network.fidelity = models::Fidelity::ideal;
    const auto result =
        run_trace(fixture.mesh(), models::resolve_hardware(fixture.wafer, {}, network), lowered.trace);
    // Of one layer, as short as it ever was: others waited for their input as well.
    std::map<Pass, Cycle> shortest;
    for (const auto& step : result.steps) {
      const auto entry = shortest.emplace(step.pass, step.shortest).first;
      entry->second = std::min(entry->second, step.shortest);
    }
    const auto layers = static_cast<Cycle>(fixture.model.layers / fixture.plan.pp);
    std::vector<std::uint64_t> out{shortest[Pass::forward] * layers, shortest[Pass::backward] * layers,
                                   shortest[Pass::weight] * layers};
    const Cycle busy = (out[0] + out[1] + out[2]) * static_cast<Cycle>(fixture.training.microbatches(1));
    for (const auto& tile : result.tiles) EXPECT_EQ(tile.cycles.compute, busy);
    for (int stage = 0; stage < fixture.plan.pp; ++stage) {
      Cycle start = result.cycles, end = 0;
      for (const auto& step : result.steps) {
        if (step.stage != stage) continue;
        start = std::min(start, step.end - shortest[Pass::forward]);
        end = std::max(end, step.end);
      }
      out.push_back(end - start - busy);
    }
    for (int stage = 0; stage < fixture.plan.pp; ++stage) {
      for (const auto& tile : result.tiles) {
        if (tile.stage != stage) continue;
        out.push_back(tile.peak_by_class[static_cast<std::size_t>(MemoryClass::activations)]);
      }
    }
    return out;
  });
  const auto first = numbers.begin() + 3, middle = first + fixture.plan.pp;
  return {numbers[0], numbers[1], numbers[2], {first, middle}, {middle, numbers.end()}};
}

Cycle formula(const PipelineShape& shape, const Outcome& t) {
  const auto others = static_cast<Cycle>(shape.stages - 1);
  if (shape.schedule == zb_h1) return others * (t.forward + t.backward - t.weight);
  if (shape.schedule == zb_h2) return others * (t.forward + t.backward - 2 * t.weight);
  return others * (t.forward + t.backward) / static_cast<Cycle>(shape.chunks);
}

std::vector<PipelineShape> shapes(bool of_formulas) {
  std::vector<PipelineShape> result;
  for (const PipelineSchedule schedule : kAll) {
    for (const int p : {1, 2, 3, 4}) {
      for (const int chunks : {2, 3}) {
        if (schedule != interleaved && chunks > 2) continue;
        const int v = schedule == interleaved ? chunks : 1;
        if (of_formulas) {
          for (const int m : {2 * p, 3 * p}) result.push_back({schedule, p, m, v});
        } else {
          for (const int m : {1, p + 1, 2 * p + 1}) result.push_back({schedule, p, m, v});
        }
      }
    }
  }
  return result;
}

TEST(ScheduleCycles, BubblesEqualTheirFormulasToTheCycle) {
  for (const PipelineShape& shape : shapes(true)) {
    for (const LoweringFixture& fixture : with_models(shape)) {
      const Outcome outcome = run(fixture);
      if (splits_backward(shape.schedule)) {
        EXPECT_GT(outcome.weight, 0U);
        EXPECT_LE(outcome.weight, std::min(outcome.forward, outcome.backward));
      }
      EXPECT_EQ(outcome.idle.front(), formula(shape, outcome)) << describe(shape);
      EXPECT_EQ(*std::max_element(outcome.idle.begin(), outcome.idle.end()), outcome.idle.front()) << describe(shape);
    }
  }
}

TEST(ScheduleCycles, EveryStageIdlesAsTheScheduleSays) {
  for (const PipelineShape& shape : shapes(false)) {
    const Outcome outcome = run(pipeline(shape, 1));
    const Played played = play(shape, {outcome.forward, outcome.backward, outcome.weight});
    EXPECT_EQ(outcome.idle, played.idle) << describe(shape);
  }
}

/// A stage holds what its layers save for each pass in flight; the first stage's weight passes follow their backward
/// passes at once. What else it holds does not depend on m.
TEST(ScheduleCycles, ActivationsOfPassesInFlight) {
  for (const PipelineSchedule schedule : kAll) {
    const int p = 4;
    const PipelineShape one{schedule, p, 1, schedule == interleaved ? 2 : 1};
    const Outcome base = run(pipeline(one, 1));
    for (const int microbatches : {3, 4, 12}) {
      PipelineShape shape = one;
      shape.microbatches = microbatches;
      const LoweringFixture fixture = pipeline(shape, 1);
      const Shard shard = make_shard(fixture.model, fixture.training, fixture.plan, {});
      const Bytes saved = saved_bytes_per_layer(fixture.model, shard, fixture.training.recompute);
      const Bytes kept = weight_bytes_per_layer(fixture.model, shard);
      EXPECT_LE(kept, saved);
      const Outcome many = run(fixture);
      for (int stage = 0; stage < p; ++stage) {
        const auto at = static_cast<std::size_t>(stage);
        const Bytes grown = many.activations[at] - base.activations[at];
        using Count = std::int32_t (&)(const PipelineShape&, int);
        const auto more = [&](Count count) { return static_cast<Bytes>(count(shape, stage) - count(one, stage)); };
        if (stage == 0 || !splits_backward(schedule)) {
          EXPECT_EQ(grown, more(passes_in_flight) * saved) << describe(shape) << stage;
        } else {
          EXPECT_GE(grown, more(passes_in_flight) * saved) << describe(shape) << stage;
          EXPECT_LE(grown, more(passes_held) * saved) << describe(shape) << stage;
        }
      }
    }
  }
}

/// On the packet network, with all axes and both ends of the model: every layer and microbatch has its rows in each
/// direction, on the stage that holds it, and no tile holds more than the bound.
TEST(ScheduleCycles, EverySchedulesRunsOnThePacketNetwork) {
  for (const PipelineSchedule schedule : kAll) {
    LoweringFixture fixture;
    fixture.wafer.mesh.shape = {4, 4};
    fixture.set_degrees(2, 2, 2);
    fixture.plan.schedule = schedule;
    fixture.plan.virtual_stages = schedule == interleaved ? 2 : 1;
    fixture.plan.sp = SequenceParallel::megatron;
    fixture.plan.layers_per_stage = schedule == interleaved ? std::vector{1, 2, 1, 1} : std::vector{2, 3};
    fixture.model.layers = 5;
    fixture.training.clip_grad = schedule != zb_h2;
    const std::string missing = isolated_text([&]() -> std::string {
      const topology::Mesh mesh = fixture.mesh();
      const models::HardwareModel hardware = models::resolve_hardware(fixture.wafer, {}, {});
      const LoweredPlan lowered =
          lower({fixture.model, fixture.training, fixture.plan, fixture.placement, hardware, mesh});
      const auto result = run_trace(mesh, hardware, lowered.trace);
      for (const auto& tile : result.tiles) {
        if (tile.peak_bytes > lowered.memory.peak_bytes) return "a tile exceeds the bound";
      }
      std::set<std::tuple<int, Pass, int, int>> rows;
      for (const auto& step : result.steps) {
        if (step.kind == StepKind::layer) rows.emplace(step.stage, step.pass, step.layer, step.microbatch);
      }
      std::size_t expected = 0;
      for (int at = 0; at < 2 * fixture.plan.virtual_stages; ++at) {
        const LayerRange range = virtual_stage_layers(fixture.plan, fixture.model.layers, at);
        for (std::int32_t layer = range.first; layer <= range.last(); ++layer) {
          for (int microbatch = 0; microbatch < 4; ++microbatch) {
            for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight}) {
              if (pass == Pass::weight && !splits_backward(schedule)) continue;
              ++expected;
              if (!rows.contains({at % 2, pass, layer, microbatch})) return "a row is missing";
            }
          }
        }
      }
      return rows.size() == expected ? "" : "there are other rows";
    });
    EXPECT_EQ(missing, "") << to_string(schedule);
  }
}

}  // namespace
}  // namespace wafersim::test
