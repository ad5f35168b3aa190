#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/verify.h"

/// A pairwise covering array over all that a plan may say: every two choices of different kinds come together in some
/// plan that is lowered and proven, unless no valid plan has both.
namespace wafersim::workloads {
namespace {

/// One thing that is chosen, and what each choice does.
struct Factor {
  std::string name;
  std::vector<std::function<void(LoweringFixture&)>> choices;
};

std::vector<Factor> factors() {
  using F = LoweringFixture;
  const auto tatp = [](int degree) { return [degree](F& f) { f.plan.tatp = degree; }; };
  const auto sequence = [](SequenceParallel kind, int degree) {
    return [=](F& f) {
      f.plan.sp = kind;
      f.plan.sp_degree = degree;
    };
  };
  const auto schedule = [](PipelineSchedule which, int chunks) {
    return [=](F& f) {
      f.plan.schedule = which;
      f.plan.virtual_stages = chunks;
      f.training.clip_grad = which != PipelineSchedule::zb_h2;
    };
  };
  const auto mixture = [](int experts, int top_k, const Rational& factor) {
    return [=](F& f) {
      f.model.linear_bias = false;
      f.model.experts = experts;
      f.model.top_k = top_k;
      f.model.capacity_factor = factor;
    };
  };
  return {
      {"dp", {[](F& f) { f.plan.dp = 1; }, [](F& f) { f.plan.dp = 2; }, [](F& f) { f.plan.dp = 4; }}},
      {"tp", {[](F& f) { f.plan.tp = 1; }, [](F& f) { f.plan.tp = 2; }, [](F& f) { f.plan.tp = 3; }}},
      {"tatp", {tatp(1), tatp(2), tatp(4)}},
      {"sp",
       {sequence(SequenceParallel::none, 1), sequence(SequenceParallel::megatron, 1),
        sequence(SequenceParallel::ring, 2), sequence(SequenceParallel::ulysses, 2)}},
      {"pp", {[](F& f) { f.plan.pp = 1; }, [](F& f) { f.plan.pp = 2; }, [](F& f) { f.plan.pp = 4; }}},
      {"schedule",
       {schedule(PipelineSchedule::gpipe, 1), schedule(PipelineSchedule::one_f_one_b, 1),
        schedule(PipelineSchedule::interleaved, 2), schedule(PipelineSchedule::zb_h1, 1),
        schedule(PipelineSchedule::zb_h2, 1)}},
      {"zero",
       {[](F& f) { f.plan.zero = 0; }, [](F& f) { f.plan.zero = 1; }, [](F& f) { f.plan.zero = 2; },
        [](F& f) { f.plan.zero = 3; }}},
      {"stream",
       {[](F& f) { f.plan.stream.operand = StreamOperand::weights; },
        [](F& f) { f.plan.stream.operand = StreamOperand::inputs; },
        [](F& f) { f.plan.stream.operand = StreamOperand::automatic; }}},
      {"attention",
       {[](F& f) { f.plan.stream.attention = StreamAttention::stream_kv; },
        [](F& f) { f.plan.stream.attention = StreamAttention::heads; }}},
      {"variant",
       {[](F& f) { f.plan.stream.variant = StreamVariant::flood; },
        [](F& f) { f.plan.stream.variant = StreamVariant::wrapped_ring; },
        [](F& f) { f.plan.stream.variant = StreamVariant::interleaved_ring; }}},
      {"relay",
       {[](F& f) { f.plan.stream.relay = StreamRelay::cut_through; },
        [](F& f) { f.plan.stream.relay = StreamRelay::store_and_forward; }}},
      {"near", {[](F& f) { f.plan.overlap_near = 1; }, [](F& f) { f.plan.overlap_near = 3; }}},
      {"far", {[](F& f) { f.plan.overlap_far = 0; }, [](F& f) { f.plan.overlap_far = 2; }}},
      {"recompute",
       {[](F& f) { f.training.recompute = models::Recompute::none; },
        [](F& f) { f.training.recompute = models::Recompute::selective; },
        [](F& f) { f.training.recompute = models::Recompute::full; },
        [](F& f) {
          f.training.recompute = models::Recompute::full;
          f.training.recompute_every = 3;
        }}},
      {"kernel",
       {[](F& f) { f.model.attention_kernel = models::AttentionKernel::fused; },
        [](F& f) { f.model.attention_kernel = models::AttentionKernel::materialized; }}},
      {"model", {[](F&) {}, [](F& f) { f.make_llama(); }, [](F& f) { f.model.parallel_residual = true; }}},
      {"experts",
       {[](F&) {}, mixture(4, 2, Rational(1)), mixture(4, 1, Rational(5, 4)), mixture(6, 4, Rational(1, 2))}},
      {"ep", {[](F& f) { f.plan.ep = 1; }, [](F& f) { f.plan.ep = 2; }}},
      {"ends",
       {[](F&) {}, [](F& f) { f.model.tied_embeddings = true; }, [](F& f) { f.layers_alone(); },
        [](F& f) { f.plan.embedding = EmbeddingTable::replicated; }}},
      {"transfer", {[](F& f) { f.plan.pp_transfer_full = false; }, [](F& f) { f.plan.pp_transfer_full = true; }}},
      {"collective",
       {[](F& f) { f.plan.collectives = Collective::ring; }, [](F& f) { f.plan.collectives = Collective::line; },
        [](F& f) { f.plan.collectives = Collective::rows_cols; },
        [](F& f) { f.plan.collectives = Collective::tree; },
        [](F& f) { f.plan.collectives = Collective::halving_doubling; },
        [](F& f) { f.plan.collectives = Collective::direct; },
        [](F& f) { f.plan.collectives = Collective::multicast; },
        [](F& f) { f.plan.collectives = Collective::router_multicast; }}},
      {"iterations", {[](F& f) { f.training.iterations = 1; }, [](F& f) { f.training.iterations = 2; }}},
  };
}

using Plan = std::vector<std::size_t>;  ///< a choice for each factor
using Pair = std::array<std::size_t, 4>;  ///< factor, choice, factor, choice

LoweringFixture fixture_of(const std::vector<Factor>& all, const Plan& plan) {
  LoweringFixture setup;
  setup.model.layers = 8;
  setup.model.sequence = setup.model.context = 24;
  setup.model.attention = models::AttentionMask::causal;
  setup.training.global_batch = 8;
  setup.training.microbatch = 1;
  for (std::size_t i = 0; i < all.size(); ++i) all[i].choices[plan[i]](setup);
  return setup;
}

std::string text_of(const std::vector<Factor>& all, const Plan& plan) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < all.size(); ++i) parts.push_back(fmt::format("{} #{}", all[i].name, plan[i]));
  return join(parts);
}

bool valid(const LoweringFixture& setup) {
  try {
    validate_plan(setup.plan, setup.training, setup.model, setup.mesh());
    Mapping(setup.plan, setup.mesh());
    return setup.plan.tiles_used() <= 64;
  } catch (const PlanError&) {
    return false;
  }
}

TEST(Covering, EveryPairOfChoicesIsProvenTogether) {
  const std::vector<Factor> all = factors();
  std::set<Pair> missing;
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = a + 1; b < all.size(); ++b) {
      for (std::size_t i = 0; i < all[a].choices.size(); ++i) {
        for (std::size_t j = 0; j < all[b].choices.size(); ++j) missing.insert({a, i, b, j});
      }
    }
  }
  RandomStream random(1, "covering array");
  std::size_t proven = 0;
  std::vector<std::string> without_plan;
  while (!missing.empty()) {
    // The first pair that is missing, completed at random: the valid plan with the most missing pairs of some tries.
    const Pair wanted = *missing.begin();
    Plan best;
    std::size_t most = 0;
    for (int attempt = 0; attempt < 400 && (attempt < 60 || best.empty()); ++attempt) {
      Plan plan;
      for (const Factor& factor : all) plan.push_back(random.below(factor.choices.size()));
      plan[wanted[0]] = wanted[1];
      plan[wanted[2]] = wanted[3];
      std::size_t news = 0;
      for (const Pair& pair : missing) news += plan[pair[0]] == pair[1] && plan[pair[2]] == pair[3] ? 1 : 0;
      if (news <= most || !valid(fixture_of(all, plan))) continue;
      most = news;
      best = plan;
    }
    if (best.empty()) {
      without_plan.push_back(fmt::format("{} #{} with {} #{}", all[wanted[0]].name, wanted[1], all[wanted[2]].name,
                                         wanted[3]));
      missing.erase(wanted);
      continue;
    }
    std::erase_if(missing, [&](const Pair& pair) { return best[pair[0]] == pair[1] && best[pair[2]] == pair[3]; });
    const LoweringFixture setup = fixture_of(all, best);
    const LoweredPlan lowered = setup.lower();
    EXPECT_EQ(join(verify_trace(lowered.trace, setup.mesh()), "\n"), "") << text_of(all, best);
    ++proven;
  }
  EXPECT_GT(proven, 20U);
  EXPECT_EQ(join(without_plan, "; "), "dp #0 with ep #1; sp #2 with kernel #1; experts #0 with ep #1")
      << "only a ring excludes materialized attention, and only experts on several replicas can be shared out";
}

}  // namespace
}  // namespace wafersim::workloads
