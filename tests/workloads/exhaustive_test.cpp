#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/text.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/verify.h"

/// Every way to divide up to 64 tiles among the axes, everything else by default, lowered and proven.
namespace wafersim::workloads {
namespace {

/// Degrees of dp, tp, tatp, sp, pp.
using Degrees = std::array<int, 5>;

void add_factorizations(int tiles, std::size_t axis, Degrees degrees, std::vector<Degrees>& all) {
  if (axis + 1 == degrees.size()) {
    degrees[axis] = tiles;
    all.push_back(degrees);
    return;
  }
  for (int degree = 1; degree <= tiles; ++degree) {
    if (tiles % degree != 0) continue;
    degrees[axis] = degree;
    add_factorizations(tiles / degree, axis + 1, degrees, all);
  }
}

/// As small as a model can be that 64 ranks of any axis can divide.
LoweringFixture fixture_of(const Degrees& degrees) {
  LoweringFixture setup;
  setup.make_llama();
  setup.set_degrees(degrees[0], degrees[1], degrees[4]);
  setup.plan.tatp = degrees[2];
  setup.plan.sp_degree = degrees[3];
  setup.model.heads = setup.model.kv_heads = 64;
  setup.model.head_dim = 2;
  setup.model.hidden = 128;
  setup.model.vocab = 131;
  setup.model.layers = degrees[4];
  setup.model.sequence = setup.model.context = 128;
  setup.model.attention_kernel = models::AttentionKernel::fused;
  setup.training.microbatch = 1;
  setup.training.global_batch = 2 * degrees[0];
  setup.plan.collectives = Collective::automatic;
  setup.wafer.mesh.shape = {64, 64};
  return setup;
}

class EveryDivision : public testing::TestWithParam<int> {};

TEST_P(EveryDivision, IsProven) {
  std::vector<Degrees> all;
  add_factorizations(GetParam(), 0, {}, all);
  for (const Degrees& degrees : all) {
    std::vector<SequenceParallel> kinds{SequenceParallel::none, SequenceParallel::megatron};
    if (degrees[3] > 1) kinds = {SequenceParallel::ring, SequenceParallel::ulysses};
    if (degrees[3] == 1 && degrees[1] == 1) kinds.pop_back();
    for (const SequenceParallel kind : kinds) {
      LoweringFixture setup = fixture_of(degrees);
      setup.plan.sp = kind;
      // Each tensor-parallel rank needs a head for each rank that heads are exchanged with.
      if (kind == SequenceParallel::ulysses && degrees[1] * degrees[3] > 64) continue;
      const LoweredPlan lowered = setup.lower();
      EXPECT_EQ(join(verify_trace(lowered.trace, setup.mesh()), "\n"), "")
          << fmt::format("dp {} tp {} tatp {} sp {} ({}) pp {}", degrees[0], degrees[1], degrees[2], degrees[3],
                         static_cast<int>(kind), degrees[4]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, EveryDivision, testing::Range(1, 65));

}  // namespace
}  // namespace wafersim::workloads
