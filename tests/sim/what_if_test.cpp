#include <gtest/gtest.h>

#include "analysis/critical_path.h"
#include "base/error.h"
#include "tests/sim/hand_trace.h"
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

struct Case {
  std::uint64_t seed;
};

class WhatIf : public testing::TestWithParam<std::uint64_t> {};

TEST_P(WhatIf, NoChangedRunIsShorterThanTheBound) {
  const RandomPlan scenario = draw_random_plan(GetParam());
  const topology::Mesh mesh = scenario.fixture.mesh();
  const models::HardwareModel hardware = scenario.hardware();
  const workloads::LoweredPlan lowered = scenario.lower(hardware, mesh);
  std::vector<MachineChange> changes = analysis::usual_changes();
  changes.push_back(analysis::parse_change("links 0.5x"));
  changes.push_back(analysis::parse_change("compute 3x"));
  const std::vector<std::uint64_t> bounds = isolated_numbers([&] {
    sim::SimulationOptions options;
    options.record_path = true;
    const sim::Measurements run = run_trace(mesh, hardware, lowered.trace, options, scenario.router.routing);
    std::vector<std::uint64_t> numbers;
    for (const MachineChange& change : changes) numbers.push_back(analysis::what_if(run.critical_path->segments, change).at_least);
    return numbers;
  });
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::uint64_t simulated = isolated_number([&] {
      return run_trace(mesh, changed(hardware, changes[i]), lowered.trace, {}, scenario.router.routing).cycles;
    });
    EXPECT_GE(simulated, bounds[i]) << changes[i].name << ": " << scenario.text;
    EXPECT_GT(bounds[i], 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, WhatIf, testing::Range<std::uint64_t>(200, 260));

}  // namespace
}  // namespace wafersim::test
