#include "tests/workloads/numeric/ordering.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/workloads/lowering_fixture.h"

namespace wafersim::workloads::numeric {
namespace {

std::string faults(const LoweringFixture& setup) { return join(unordered_uses(setup.lower().trace), "\n"); }

TEST(Ordering, NothingIsChangedWhileItIsUsed) {
  using models::AttentionKernel, models::Recompute;
  for (const auto collective :
       {Collective::ring, Collective::line, Collective::rows_cols, Collective::tree, Collective::halving_doubling, Collective::direct,
        Collective::multicast, Collective::router_multicast}) {
    for (const auto recompute : {Recompute::none, Recompute::full}) {
      for (const bool sp : {false, true}) {
        for (const bool parallel : {false, true}) {
          LoweringFixture setup;
          setup.make_llama();
          setup.model.kv_heads = 2;
          setup.set_degrees(2, 4, 2);
          setup.plan.zero = sp ? 1 : 0;
          setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
          setup.plan.collectives = collective;
          setup.plan.collective_chunks = parallel ? 2 : 1;
          setup.model.parallel_residual = parallel;
          setup.model.tied_embeddings = parallel;
          setup.model.attention_kernel =
              sp == parallel ? AttentionKernel::fused : AttentionKernel::materialized;
          setup.training.recompute = recompute;
          setup.training.iterations = 2;
          EXPECT_EQ(faults(setup), "")
              << fmt::format("{} recompute {} sp {} parallel {}", to_string(collective),
                             static_cast<int>(recompute), sp, parallel);
        }
      }
    }
  }
}

/// Without dropout and gathers a block's weight gradient reads the very gradient that the residual path hands
/// on.
TEST(Ordering, OneRank) {
  for (const bool parallel : {false, true}) {
    LoweringFixture setup;
    setup.model.parallel_residual = parallel;
    setup.model.attention_kernel = models::AttentionKernel::fused;
    EXPECT_EQ(faults(setup), "") << parallel;
  }
}

TEST(Ordering, NamesWhatIsNotOrdered) {
  LoweringFixture setup;
  setup.set_degrees(1, 2, 1);
  Trace trace = setup.lower().trace;
  for (StepTemplate& step : trace.templates) {
    for (Op& op : step.ops) {
      if (op.kind == OpKind::free) op.dependency_count = 0;
    }
  }
  const std::string text = join(unordered_uses(trace), "\n");
  EXPECT_NE(text.find("(free, memory) changes it"), std::string::npos) << text;
}

TEST(Ordering, NamesStepsThatDoNotWait) {
  LoweringFixture setup;
  setup.set_degrees(2, 1, 1);
  Trace trace = setup.lower().trace;
  for (Program& program : trace.programs) {
    for (Step& step : program.steps) {
      if (step.kind == StepKind::optimizer) step.wait_count = 0;
    }
  }
  const std::string text = join(unordered_uses(trace), "\n");
  EXPECT_NE(text.find("of gradient_sync"), std::string::npos) << text;
}

}  // namespace
}  // namespace wafersim::workloads::numeric
