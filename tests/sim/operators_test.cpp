#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/step_schedule.h"
#include "tests/sim/dump.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/workloads/lowering_fixture.h"
#include "topology/routing_policy.h"
#include "workloads/mapping_loads.h"
#include "workloads/plan_cuts.h"

/// Plans whose operators have degrees of their own, simulated and predicted.
namespace wafersim::test {
namespace {

using workloads::Axis;
using workloads::Cut;
using workloads::LoweringFixture;
using workloads::OperatorDegrees;
using workloads::SequenceParallel;

struct Case {
  OperatorDegrees plan, attention, mlp;
  SequenceParallel sp = SequenceParallel::none;
};

std::string text(const Case& wanted) {
  return fmt::format("plan {} x {}, attention {} x {}, mlp {} x {}, sp {}", wanted.plan.tp, wanted.plan.tatp, wanted.attention.tp,
                     wanted.attention.tatp, wanted.mlp.tp, wanted.mlp.tatp, static_cast<int>(wanted.sp));
}

/// Eight tiles a model group.
const std::vector<Case> kCases = {{{8, 1}, {1, 8}, {8, 1}},
                                  {{1, 8}, {1, 8}, {8, 1}},
                                  {{2, 4}, {2, 4}, {8, 1}, SequenceParallel::megatron},
                                  {{4, 2}, {1, 8}, {2, 4}, SequenceParallel::megatron},
                                  {{2, 4}, {4, 2}, {1, 8}}};

LoweringFixture fixture_of(const Case& wanted) {
  LoweringFixture setup;
  setup.wafer.mesh.shape = {8, 8};
  setup.model.attention_kernel = models::AttentionKernel::fused;
  setup.set_degrees(2, wanted.plan.tp, 2);
  setup.plan.tatp = wanted.plan.tatp;
  setup.plan.attention = wanted.attention;
  setup.plan.mlp = wanted.mlp;
  setup.plan.sp = wanted.sp;
  setup.plan.zero = 1;
  setup.training.microbatch = 1;
  setup.training.global_batch = 40;
  return setup;
}

models::HardwareModel hardware_of(const LoweringFixture& setup) { return models::resolve_hardware(setup.wafer, {}, {}); }

std::string run(const LoweringFixture& setup, bool fold, bool trains) {
  return isolated_text([&] {
    sim::SimulationOptions options;
    options.fold = options.fold_eagerly = fold;
    options.trains = trains;
    const sim::Measurements result = run_trace(setup.mesh(), hardware_of(setup), setup.lower().trace, options);
    return fmt::format("{}\n", fold && result.engine.fold.fraction > 0) + dump(result);
  });
}

/// Folded periods and replicas, and messages as trains, are what each packet of each of them is.
TEST(OperatorSimulation, FoldedAndInTrainsEqualsEveryPacket) {
  for (const Case& each : kCases) {
    const LoweringFixture setup = fixture_of(each);
    const std::string full = run(setup, false, false), trains = run(setup, false, true), folded = run(setup, true, true);
    EXPECT_EQ(first_difference(trains, full), "") << text(each);
    const auto measured = [](const std::string& all) { return all.substr(all.find('\n') + 1); };
    EXPECT_EQ(first_difference(measured(folded), measured(full)), "") << text(each);
    EXPECT_EQ(folded.substr(0, 4), "true") << text(each);
  }
}

/// What tiles hold in a run stays below the bound, class by class; what is resident is known exactly.
TEST(OperatorSimulation, MemoryStaysBelowItsBound) {
  for (const Case& each : kCases) {
    for (const auto recompute : {models::Recompute::none, models::Recompute::full}) {
      LoweringFixture setup = fixture_of(each);
      setup.training.global_batch = 8;
      setup.training.recompute = recompute;
      const workloads::LoweredPlan lowered = setup.lower();
      const std::vector<std::uint64_t> peaks = isolated_numbers([&] {
        std::vector<std::uint64_t> largest(workloads::kMemoryClasses + 1, 0);
        for (const sim::TileMeasurement& tile : run_trace(setup.mesh(), hardware_of(setup), lowered.trace).tiles) {
          for (std::size_t i = 0; i + 1 < largest.size(); ++i) largest[i] = std::max(largest[i], tile.peak_by_class[i]);
          largest.back() = std::max(largest.back(), tile.peak_bytes);
        }
        return largest;
      });
      for (std::size_t i = 0; i + 1 < peaks.size(); ++i) EXPECT_LE(peaks[i], lowered.memory.by_class[i]) << text(each) << i;
      EXPECT_LE(peaks.back(), lowered.memory.peak_bytes) << text(each);
      const auto at = [](workloads::MemoryClass of) { return static_cast<std::size_t>(of); };
      for (const auto of : {workloads::MemoryClass::parameters, workloads::MemoryClass::optimizer}) {
        EXPECT_EQ(peaks[at(of)], lowered.memory.by_class[at(of)]) << text(each);
      }
    }
  }
}

/// A row of tiles whose attention works on the sequence and whose MLP on the model dimension: what links carry beside streams and
/// sums, which have tests of their own, is the gather of the MLP's input in each forward pass and of the gradient of attention's
/// output in each backward pass. On a line a link carries the shards of all tiles behind it.
TEST(OperatorSimulation, LinksCarryReshardedRowsInClosedForm) {
  LoweringFixture setup;
  setup.wafer.mesh.shape = {1, 4};
  setup.model.attention_kernel = models::AttentionKernel::fused;
  setup.set_degrees(1, 1, 1);
  setup.plan.tatp = 4;
  setup.plan.mlp = OperatorDegrees{4, 1};
  setup.plan.collectives = workloads::Collective::line;
  const topology::Mesh mesh = setup.mesh();
  const models::HardwareModel hardware = hardware_of(setup);
  const workloads::LoweredPlan lowered = setup.lower();
  const workloads::PlanCuts cuts(setup.plan, lowered.mapping, mesh);
  std::vector<workloads::AxisTraffic> others = workloads::plan_traffic(setup.model, setup.training, setup.plan, &cuts);
  const auto is_gather = [](const workloads::AxisTraffic& each) {
    return each.axis == Axis::tatp && each.cut != Cut::mlp && each.pattern == workloads::TrafficPattern::all_gather &&
           each.row_bytes > 4 && each.times > 8;  // that of the embedding's gradients is once a microbatch
  };
  ASSERT_EQ(std::erase_if(others, is_gather), 2);  // from attention's cut, and of the gradient from the plan's
  const auto xy = topology::make_routing("xy", mesh);
  workloads::MappingLoads loads(others, setup.plan, hardware, *xy, mesh);
  topology::LinkBytes expected = topology::link_loads(*xy, mesh, loads.demands(lowered.mapping));
  const std::uint64_t passes = 4 * 8;  // layers and microbatches
  const Bytes shard = setup.stream_bytes() / 4;
  for (int x = 0; x + 1 < 4; ++x) {
    const TileId left = mesh.tile_at({x, 0}), right = mesh.tile_at({x + 1, 0});
    const auto behind = static_cast<Bytes>(x + 1);
    expected[mesh.link(left, topology::Direction::east)] += 2 * passes * behind * shard;
    expected[mesh.link(right, topology::Direction::west)] += 2 * passes * (4 - behind) * shard;
  }
  const std::vector<std::uint64_t> measured = isolated_numbers([&] {
    std::vector<std::uint64_t> bytes(expected.size(), 0);
    for (const sim::LinkMeasurement& link : run_trace(mesh, hardware, lowered.trace).links) bytes[link.link] = link.bytes;
    return bytes;
  });
  EXPECT_EQ(measured, expected);
}

/// The analytic model plays the same operations and messages; on slow links, too, whose messages take most of the time.
TEST(OperatorSimulation, IsPredicted) {
  for (const Case& each : kCases) {
    LoweringFixture setup = fixture_of(each);
    setup.training.global_batch = 8;
    const topology::Mesh mesh = setup.mesh();
    models::HardwareModel hardware = hardware_of(setup);
    hardware.link_bytes_per_cycle = hardware.injection_bytes_per_cycle = hardware.ejection_bytes_per_cycle = Rational(1, 8);
    const workloads::LoweredPlan lowered = setup.lower();
    const auto cycles = static_cast<double>(
        isolated_number([&] { return run_trace(mesh, hardware, lowered.trace).cycles; }));
    const auto policy = topology::make_routing_policy("xy", mesh);
    analysis::StepCosts costs(
        {lowered.trace, lowered.mapping, setup.plan, hardware, mesh, *policy, analysis::CostModel::alpha_beta_contention, 1});
    const auto predicted = static_cast<double>(analysis::predict(costs, lowered.trace).cycles);
    analysis::StepCosts free(
        {lowered.trace, lowered.mapping, setup.plan, hardware, mesh, *policy, analysis::CostModel::roofline, 1});
    const auto alone = static_cast<double>(analysis::predict(free, lowered.trace).cycles);
    RecordProperty(text(each),
                   fmt::format("{:+.2f} %, {:.0f} % without messages", 100 * (predicted / cycles - 1), 100 * alone / cycles));
    EXPECT_NEAR(predicted, cycles, 0.1 * cycles) << text(each);
  }
}

}  // namespace
}  // namespace wafersim::test
