#include <gtest/gtest.h>

#include "tests/sim/dump.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/random_plan.h"

/// Plans and machines drawn at random. Each runs to its end (with the checks of Simulation::run), visits in
/// another order change nothing, and no tile holds more than the bound.
namespace wafersim::test {
namespace {

/// The dump of a run, with the bound checked against it.
std::string run(const RandomPlan& scenario, bool shuffle) {
  const topology::Mesh mesh = scenario.fixture.mesh();
  const models::HardwareModel hardware = scenario.hardware();
  const workloads::LoweredPlan lowered = scenario.lower(hardware, mesh);
  sim::SimulationOptions options;
  options.shuffle = shuffle;
  const sim::Measurements result = run_trace(mesh, hardware, lowered.trace, options, scenario.router.routing);
  std::string over;
  for (const sim::TileMeasurement& tile : result.tiles) {
    bool exceeds = tile.peak_bytes > lowered.memory.peak_bytes ||
                   tile.peak_sram_bytes > lowered.memory.peak_sram_bytes ||
                   tile.peak_dram_bytes > lowered.memory.peak_dram_bytes;
    for (std::size_t i = 0; i < workloads::kMemoryClasses; ++i) {
      if (tile.peak_by_class[i] <= lowered.memory.by_class[i]) continue;
      exceeds = true;
      over += std::string(to_string(static_cast<workloads::MemoryClass>(i))) + " " +
              std::to_string(tile.peak_by_class[i]) + " > " + std::to_string(lowered.memory.by_class[i]) +
              " ";
    }
    if (exceeds) over += mesh.name(tile.tile) + " exceeds the bound\n";
  }
  return over + dump(result);
}

class RandomPlans : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomPlans, StayInTheirBoundAndDoNotDependOnOrder) {
  const RandomPlan scenario = draw_random_plan(GetParam());
  const std::string plain = isolated_text([&] { return run(scenario, false); });
  EXPECT_EQ(plain.find("exceeds the bound"), std::string::npos) << scenario.text << plain.substr(0, 400);
  EXPECT_EQ(first_difference(isolated_text([&] { return run(scenario, true); }), plain), "") << scenario.text;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlans, testing::Range<std::uint64_t>(0, 80));

}  // namespace
}  // namespace wafersim::test
