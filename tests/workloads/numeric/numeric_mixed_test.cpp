#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "tests/workloads/numeric/numeric_case.h"

namespace wafersim::workloads::numeric {
namespace {

template <class T, std::size_t n>
T draw(RandomStream& random, const std::array<T, n>& from) {
  return from[random.below(n)];
}

bool coin(RandomStream& random) { return random.below(2) == 1; }

/// Tensor streams and ranks that cut the sequence, as far as the model's heads permit.
void draw_streams(RandomStream& random, NumericCase& setup) {
  models::TransformerSpec& model = setup.model;
  PlanSpec& plan = setup.plan;
  const int kv_heads = std::max(1, static_cast<int>(model.kv_heads) / plan.tp);  // of a rank
  plan.tatp = draw(random, std::array{1, 1, 2, 3});
  plan.overlap_near = draw(random, std::array{1, 2});
  plan.stream.variant = draw(
      random, std::array{StreamVariant::flood, StreamVariant::wrapped_ring, StreamVariant::interleaved_ring});
  plan.stream.relay = draw(random, std::array{StreamRelay::cut_through, StreamRelay::store_and_forward});
  plan.stream.operand =
      draw(random, std::array{StreamOperand::weights, StreamOperand::inputs, StreamOperand::automatic});
  if (plan.stream.operand == StreamOperand::inputs && plan.tatp > 1) {
    const bool possible = stream_inputs_fault(model, plan, 0).empty() && stream_inputs_fault(model, plan, 1).empty();
    if (!possible) plan.stream.operand = StreamOperand::automatic;
  }
  const auto own = draw(random, std::array{SequenceParallel::none, SequenceParallel::none,
                                           SequenceParallel::ring, SequenceParallel::ulysses});
  if (own != SequenceParallel::none) {
    // Inner ranks have fewer heads to exchange.
    const int exchanged = plan.stream.operand == StreamOperand::weights ? kv_heads : kv_heads / plan.tatp;
    plan.sp = exchanged < 2 ? SequenceParallel::ring : own;
    plan.sp_degree = plan.sp == SequenceParallel::ring ? draw(random, std::array{2, 3}) : 2;
  }
  const bool ulysses = plan.sp == SequenceParallel::ulysses;
  if (coin(random) && plan.tatp <= kv_heads && !ulysses) plan.stream.attention = StreamAttention::heads;
  const bool streams = (plan.tatp > 1 && plan.stream.attention == StreamAttention::stream_kv) ||
                       plan.sp == SequenceParallel::ring;
  if (streams) model.attention_kernel = models::AttentionKernel::fused;
  model.sequence =
      std::max<std::int64_t>(model.sequence, 2 * plan.tatp * plan.sp_degree + (coin(random) ? 1 : 0));
  model.context = std::max(model.context, model.sequence);
}

/// Experts in place of the MLP, shared out among the replicas or not.
void draw_experts(RandomStream& random, NumericCase& setup) {
  if (coin(random)) return;
  models::TransformerSpec& model = setup.model;
  model.linear_bias = false;
  model.experts = draw(random, std::array{2, 4, 6});
  model.top_k = draw(random, std::array{1, 2});
  model.capacity_factor = draw(random, std::array{Rational(1), Rational(1), Rational(5, 8)});
  if (model.experts > 2 && coin(random)) model.capacity_factor = Rational(5, 4);
  setup.plan.ep = coin(random) ? setup.plan.dp : 1;
}

/// Any model under any plan.
NumericCase drawn(std::uint64_t seed) {
  RandomStream random(seed, "mixed");
  NumericCase setup;
  models::TransformerSpec& model = setup.model;
  model.kv_heads = draw(random, std::array{1, 2, 4});
  model.mlp = draw(random, std::array{models::Mlp::gelu, models::Mlp::swiglu});
  model.norm = draw(random, std::array{models::Norm::layernorm, models::Norm::rmsnorm});
  model.positions = draw(random, std::array{models::Positions::learned, models::Positions::rotary});
  model.attention = draw(random, std::array{models::AttentionMask::causal, models::AttentionMask::full});
  model.attention_kernel =
      draw(random, std::array{models::AttentionKernel::fused, models::AttentionKernel::materialized});
  model.linear_bias = coin(random);
  if (coin(random)) model.qkv_bias = coin(random);
  model.parallel_residual = coin(random);
  model.tied_embeddings = coin(random);
  model.final_norm = coin(random);
  model.layers = draw(random, std::array{2, 3});
  model.sequence = draw(random, std::array{7, 8});

  TrainingSpec& training = setup.training;
  training.microbatch = draw(random, std::array{1, 2});
  training.recompute = draw(
      random, std::array{models::Recompute::none, models::Recompute::selective, models::Recompute::full});
  training.iterations = draw(random, std::array{1, 2});
  setup.largest_norm = draw(random, std::array{0.0, 0.7});

  PlanSpec& plan = setup.plan;
  setup.set_degrees(draw(random, std::array{1, 2}), draw(random, std::array{1, 2, 3, 4}),
                    draw(random, std::array{1, 2}));
  training.global_batch = 2 * plan.dp * training.microbatch;
  plan.sp = draw(random, std::array{SequenceParallel::none, SequenceParallel::megatron});
  plan.zero = draw(random, std::array{0, 1, 2, 3});
  plan.overlap_far = draw(random, std::array{0, 1, 2});
  plan.pp_transfer_full = coin(random);
  plan.schedule = draw(random, std::array{PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b});
  plan.collectives = draw(random, std::array{Collective::automatic, Collective::ring, Collective::line,
                                             Collective::rows_cols, Collective::tree,
                                             Collective::halving_doubling, Collective::direct, Collective::multicast,
                                             Collective::router_multicast});
  plan.collective_chunks = draw(random, std::array{1, 2});
  draw_streams(random, setup);
  if (training.recompute == models::Recompute::full) training.recompute_every = draw(random, std::array{1, 2, 3});
  draw_experts(random, setup);
  return setup;
}

TEST(NumericMixed, AnyModelUnderAnyPlan) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    EXPECT_EQ(faults(drawn(seed)), "") << seed;
  }
}

}  // namespace
}  // namespace wafersim::workloads::numeric
