#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/layer.h"
#include "workloads/shard.h"

/// Full recomputation with one input for every k layers: what a tile holds at most.
namespace wafersim::test {
namespace {

using workloads::LoweringFixture;

/// gpipe on one stage: all f microbatches are held when the first backward pass starts.
LoweringFixture one_stage(int layers, int every, int held) {
  LoweringFixture fixture;
  fixture.layers_alone();
  fixture.model.layers = layers;
  fixture.plan.schedule = workloads::PipelineSchedule::gpipe;
  fixture.training.recompute = models::Recompute::full;
  fixture.training.recompute_every = every;
  fixture.training.global_batch = held * fixture.training.microbatch;
  fixture.training.optimizer = workloads::Optimizer::none;
  fixture.training.clip_grad = false;
  return fixture;
}

/// Peak of the activations as simulated, and its bound.
std::vector<std::uint64_t> activations(const LoweringFixture& fixture) {
  return isolated_numbers([&] {
    const workloads::LoweredPlan lowered = fixture.lower();
    const auto index = static_cast<std::size_t>(workloads::MemoryClass::activations);
    const sim::Measurements measurements =
        run_trace(fixture.mesh(), models::resolve_hardware(fixture.wafer, {}, {}), lowered.trace);
    Bytes peak = 0;
    for (const sim::TileMeasurement& tile : measurements.tiles) peak = std::max(peak, tile.peak_by_class[index]);
    return std::vector<std::uint64_t>{peak, lowered.memory.by_class[index]};
  });
}

/// With S bytes of an input and A bytes that a layer saves without recomputation (its input included), L layers in
/// G = ceil(L / k) groups and f microbatches in flight, the backward pass of the j-th group from the end, of n_j layers,
/// starts with f G - j inputs and n_j - 1 layers made again; the rest is what one backward step needs, as with k = 1:
///   peak(k) - peak(1) = max over j of (f G - j) S + (n_j - 1) A, less f L S
TEST(RecomputeMemory, PeakIsTheInputsOfAllGroupsAndTheLayersOfOne) {
  for (const int layers : {6, 7}) {
    for (const int held : {1, 3}) {
      for (const bool tensor_parallel : {false, true}) {
        const auto setup = [&](int every) {
          LoweringFixture fixture = one_stage(layers, every, held);
          fixture.plan.tp = tensor_parallel ? 2 : 1;
          fixture.plan.sp = tensor_parallel ? workloads::SequenceParallel::megatron : workloads::SequenceParallel::none;
          return fixture;
        };
        const LoweringFixture one = setup(1);
        const workloads::Shard shard = workloads::make_shard(one.model, one.training, one.plan, {});
        const auto input = static_cast<std::int64_t>(shard.local_stream_bytes());
        const auto layer =
            static_cast<std::int64_t>(saved_bytes_per_layer(one.model, shard, models::Recompute::none));
        const auto single = static_cast<std::int64_t>(activations(one)[0]) - held * layers * input;
        for (const int every : {2, 3, 4, 7, 9}) {
          const int groups = (layers + every - 1) / every;
          std::int64_t most = 0;
          for (int j = 0; j < groups; ++j) {
            const int size = std::min(every, layers - (groups - 1 - j) * every);
            most = std::max(most, (held * groups - j) * input + (size - 1) * layer);
          }
          const std::vector<std::uint64_t> found = activations(setup(every));
          EXPECT_EQ(static_cast<std::int64_t>(found[0]), single + most)
              << layers << " layers, every " << every << ", " << held << " held, tp " << tensor_parallel;
          EXPECT_LE(found[0], found[1]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace wafersim::test
