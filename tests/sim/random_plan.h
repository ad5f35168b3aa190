#pragma once

#include <string>
#include <vector>

#include "models/hardware.h"
#include "tests/workloads/lowering_fixture.h"

namespace wafersim::test {

/// A plan and a machine drawn at random, small enough to be simulated in no time.
struct RandomPlan {
  workloads::LoweringFixture fixture;
  models::RouterSpec router;
  models::NetworkSpec network;
  std::string text;  ///< what was drawn

  models::HardwareModel hardware() const;
  workloads::LoweredPlan lower(const models::HardwareModel& hardware, const topology::Mesh& mesh) const;
};

/// Of all axes, schedules, memories and networks; with one of these numbers of microbatches and iterations.
RandomPlan draw_random_plan(std::uint64_t seed, const std::vector<int>& microbatches = {1, 2, 5},
                            const std::vector<int>& iterations = {1, 2});
/// The same with network interfaces that forward where routers would copy, which not all networks can, nor checkpoints.
RandomPlan without_copies(RandomPlan plan);

}  // namespace wafersim::test
