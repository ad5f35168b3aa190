#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "analysis/critical_path.h"
#include "base/error.h"
#include "base/random.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/random_plan.h"

/// What a critical path says of other machines, against runs of the same trace on them.
namespace wafersim::test {
namespace {

using analysis::MachineChange;
using sim::PathKind;
using sim::PathSegment;

models::HardwareModel changed(models::HardwareModel hardware, const MachineChange& change) {
  const auto faster = [](Rational& rate, const Rational& factor) { rate = rate * factor; };
  faster(hardware.link_bytes_per_cycle, change.links);
  faster(hardware.injection_bytes_per_cycle, change.links);
  faster(hardware.ejection_bytes_per_cycle, change.links);
  faster(hardware.arrays, change.compute);
  faster(hardware.matrix_flops_per_cycle, change.compute);
  faster(hardware.vector_flops_per_cycle, change.compute);
  if (hardware.sram_bytes_per_cycle) faster(*hardware.sram_bytes_per_cycle, change.memory);
  faster(hardware.dram_bytes_per_cycle, change.memory);
  if (change.instant_routers) hardware.router_cycles = hardware.turn_cycles = 0;
  if (change.ideal_network) hardware.fidelity = models::Fidelity::ideal;
  return hardware;
}

/// What each engine did, in its order. The bound is of runs that keep it: reductions take the vector engine
/// as their operands come.
using EngineOrder = std::map<std::pair<TileId, bool>, std::vector<std::uint64_t>>;

std::uint64_t order_hash(const EngineOrder& order) {
  std::uint64_t hash = 0;
  for (const auto& [engine, operations] : order) {
    hash = mix_bits(hash ^ (std::uint64_t{engine.first} << 1 | (engine.second ? 1U : 0U)));
    for (const std::uint64_t operation : operations) hash = mix_bits(hash ^ operation);
  }
  return hash;
}

/// Cycles, the hash of the order, then the bounds.
std::vector<std::uint64_t> run(const RandomPlan& scenario, const models::HardwareModel& hardware,
                               const workloads::Trace& trace, const topology::Mesh& mesh,
                               const std::vector<MachineChange>& changes) {
  EngineOrder order;
  sim::SimulationOptions options;
  options.record_path = !changes.empty();
  for (const workloads::TileBinding& binding : trace.tiles) options.observer.tiles.push_back(binding.tile);
  options.observer.on_operation = [&](const sim::OperationRecord& record) {
    order[{record.tile, record.kind == workloads::OpKind::matrix}].push_back(
        std::uint64_t{record.step} << 16 | static_cast<std::uint64_t>(record.kind) << 8 |
        static_cast<std::uint64_t>(record.axis));
  };
  const sim::Measurements result =
      run_trace(mesh, hardware, trace, std::move(options), scenario.router.routing);
  std::vector<std::uint64_t> numbers = {result.cycles, order_hash(order)};
  for (const MachineChange& change : changes) {
    numbers.push_back(analysis::what_if(result.critical_path->segments, change).at_least);
  }
  return numbers;
}

class WhatIf : public testing::TestWithParam<std::uint64_t> {};

TEST_P(WhatIf, NoChangedRunIsShorterThanTheBound) {
  const RandomPlan scenario = draw_random_plan(GetParam());
  const topology::Mesh mesh = scenario.fixture.mesh();
  const models::HardwareModel hardware = scenario.hardware();
  const workloads::LoweredPlan lowered = scenario.lower(hardware, mesh);
  std::vector<MachineChange> changes = analysis::usual_changes();
  changes.push_back(analysis::parse_change("links 0.5x"));
  changes.push_back(analysis::parse_change("compute 3x"));
  const auto base = isolated_numbers([&] { return run(scenario, hardware, lowered.trace, mesh, changes); });
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const auto simulated = isolated_numbers(
        [&] { return run(scenario, changed(hardware, changes[i]), lowered.trace, mesh, {}); });
    const std::uint64_t bound = base[2 + i];
    EXPECT_GT(bound, 0U);
    EXPECT_LE(bound, changes[i].name == "links 0.5x" ? 2 * base[0] : base[0]);
    if (simulated[1] == base[1]) {
      EXPECT_GE(simulated[0], bound) << changes[i].name << ": " << scenario.text;
    }
    // Another order may gain what it reorders, which is little.
    EXPECT_GE(simulated[0] * 100, bound * 99) << changes[i].name << ": " << scenario.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, WhatIf, testing::Range<std::uint64_t>(200, 260));

PathSegment segment(PathKind kind, Cycle from, Cycle to) {
  PathSegment result;
  result.kind = kind;
  result.from = from;
  result.to = to;
  return result;
}

/// A path made by hand: 100 of matrix, whose last operation of 40 stalls 30 for its own bytes and 5 for
/// others; a message of 6 in routers, 8 on links and 36 of serialization that waits 20 at a link; 11 of a
/// reduction.
std::vector<PathSegment> hand_made() {
  std::vector<PathSegment> path = {
      segment(PathKind::matrix, 0, 100),        segment(PathKind::memory_stall, 100, 130),
      segment(PathKind::memory_wait, 130, 135), segment(PathKind::wire, 135, 185),
      segment(PathKind::link_queue, 185, 205),  segment(PathKind::reduce, 205, 216)};
  path[1].computed = 40;
  path[3].router_cycles = 6;
  path[3].link_cycles = 8;
  return path;
}

TEST(WhatIfBound, TakesOutOfThePathWhatTheChangeShortens) {
  const auto bound = [](const char* change) {
    return analysis::what_if(hand_made(), analysis::parse_change(change));
  };
  // Without a change only waits go: 216 - 5 - 20.
  EXPECT_EQ(bound("links 1x").at_least, 191U);
  EXPECT_EQ(bound("links 1x").with_waits, 216U);
  EXPECT_EQ(bound("links 2x").at_least, 191U - 18);
  EXPECT_EQ(bound("links 2x").with_waits, 191U - 18 + 5 + 10);
  // 111 / 2 of operations; the memory cycles of the stalled one stay: 40 + 30 of them hide 20 (rounded up 21)
  // of computation.
  EXPECT_EQ(bound("compute 2x").at_least, 55U + (70 - 21) + 50);
  // Its 70 memory cycles become 35, below what it computes.
  EXPECT_EQ(bound("memory 2x").at_least, 191U - 30);
  EXPECT_EQ(bound("memory 2x").with_waits, 191U - 30 + 2 + 20);
  EXPECT_EQ(bound("routers instant").at_least, 191U - 6);
  EXPECT_EQ(bound("network ideal").at_least, 191U - 50);
  EXPECT_EQ(bound("network ideal").with_waits, 191U - 50 + 5);
  EXPECT_EQ(bound("links 0.5x").at_least, 191U + 36);
}

TEST(WhatIfBound, RefusesOtherChanges) {
  for (const char* text : {"", "links", "links 2", "links 0x", "links -1x", "wires 2x", "routers 2x",
                           "network fast", "links 2x "}) {
    EXPECT_THROW(analysis::parse_change(text), Error) << text;
  }
  EXPECT_EQ(analysis::parse_change("links 1.5x").links, Rational(3, 2));
}

}  // namespace
}  // namespace wafersim::test
