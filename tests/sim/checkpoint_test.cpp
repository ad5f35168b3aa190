#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/sim/dump.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/random_plan.h"

/// A run that is stopped anywhere, kept, and taken up by another process ends as if nothing had happened.
namespace wafersim::test {
namespace {

struct Plan {
  RandomPlan drawn;
  topology::Mesh mesh;
  models::HardwareModel hardware;
  workloads::LoweredPlan lowered;

  explicit Plan(std::uint64_t seed)
      : drawn(without_copies(draw_random_plan(seed))),
        mesh(drawn.fixture.mesh()),
        hardware(drawn.hardware()),
        lowered(drawn.lower(hardware, mesh)) {}

  sim::Measurements run(sim::SimulationOptions options) const {
    options.record_memory = true;
    return run_trace(mesh, hardware, lowered.trace, std::move(options), drawn.router.routing);
  }
  /// The state behind `cycle`, from the state before or the start.
  std::string state_at(Cycle cycle, bool fold, const std::string& before) const {
    return isolated_text([&] {
      std::string state;
      sim::SimulationOptions options;
      options.max_cycles = cycle;
      options.fold = options.fold_eagerly = fold;
      options.resume = before;
      options.on_checkpoint = [&](std::span<const char> bytes) { state.assign(bytes.begin(), bytes.end()); };
      run(std::move(options));
      return state;
    });
  }
  std::string finish(bool fold, const std::string& state) const {
    return isolated_text([&] {
      sim::SimulationOptions options;
      options.fold = fold;
      options.resume = state;
      return dump(run(std::move(options)));
    });
  }
};

class Checkpoints : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Checkpoints, AResumedRunEndsAsAnUndisturbedOne) {
  const Plan plan(GetParam());
  const std::string undisturbed = plan.finish(false, "");
  const Cycle length = std::stoull(undisturbed.substr(std::string("cycles ").size()));
  RandomStream random(GetParam(), "checkpoints");
  const Cycle first = random.below(length);
  const Cycle second = first + random.below(length - first);
  const bool fold = random.below(2) == 0;
  const std::string once = plan.state_at(first, fold, "");
  EXPECT_EQ(first_difference(plan.finish(fold, once), undisturbed), "") << plan.drawn.text << "cycle " << first;
  const std::string twice = plan.state_at(second, fold, once);
  EXPECT_EQ(first_difference(plan.finish(!fold, twice), undisturbed), "") << plan.drawn.text << "cycle " << second;
}

INSTANTIATE_TEST_SUITE_P(Seeds, Checkpoints, testing::Range<std::uint64_t>(1000, 1024));

}  // namespace
}  // namespace wafersim::test
