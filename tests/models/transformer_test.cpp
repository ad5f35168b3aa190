#include "models/transformer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "tests/models/test_models.h"

namespace wafersim::models {
namespace {

using test::gpt;
using test::llama;

std::uint64_t total(const TransformerSpec& model) { return count_parameters(model).total(model.layers); }

TEST(Parameters, Gpt2) {
  EXPECT_EQ(total(gpt(12, 768, 12, 50257, 1024)), 124'439'808u);
  EXPECT_EQ(total(gpt(24, 1024, 16, 50257, 1024)), 354'823'168u);
  EXPECT_EQ(total(gpt(36, 1280, 20, 50257, 1024)), 774'030'080u);
  EXPECT_EQ(total(gpt(48, 1600, 25, 50257, 1024)), 1'557'611'200u);
}

TEST(Parameters, Opt) {
  // The position table has two rows more than positions.
  EXPECT_EQ(total(gpt(12, 768, 12, 50272, 2048 + 2)), 125'239'296u);
  EXPECT_EQ(total(gpt(24, 2048, 32, 50272, 2048 + 2)), 1'315'758'080u);
  EXPECT_EQ(total(gpt(32, 4096, 32, 50272, 2048 + 2)), 6'658'473'984u);
}

TEST(Parameters, GptNeoX20B) {
  TransformerSpec model = gpt(44, 6144, 64, 50432, 2048);
  model.positions = Positions::rotary;
  model.parallel_residual = true;
  model.tied_embeddings = false;
  EXPECT_EQ(total(model), 20'554'567'680u);
}

TEST(Parameters, Qwen2HasBiasesAtQkvOnly) {
  TransformerSpec large = llama(28, 3584, 28, 4, 18944, 152064);
  large.qkv_bias = true;
  EXPECT_EQ(total(large), 7'615'616'512u);
  TransformerSpec small = llama(24, 896, 14, 2, 4864, 151936);
  small.qkv_bias = true;
  small.tied_embeddings = true;
  EXPECT_EQ(total(small), 494'032'768u);
}

TEST(Parameters, HeadsWiderThanTheHiddenSize) {
  TransformerSpec gemma = llama(28, 3072, 16, 16, 24576, 256000);
  gemma.head_dim = 256;
  gemma.tied_embeddings = true;
  EXPECT_EQ(total(gemma), 8'537'680'896u);
}

TEST(Parameters, PartsOfALayer) {
  const ParameterCount parts = count_parameters(gpt(2, 8, 2, 100, 16));
  EXPECT_EQ(parts.attention_per_layer, 4u * 8 * 8 + 4 * 8);
  EXPECT_EQ(parts.mlp_per_layer, 8u * 8 * 8 + 4 * 8 + 8);
  EXPECT_EQ(parts.norms_per_layer, 2u * 2 * 8);
  EXPECT_EQ(parts.embedding, 116u * 8);
  EXPECT_EQ(parts.final_norm, 16u);
  EXPECT_EQ(parts.head, 0u);
}

TEST(Parameters, MixturesOfExperts) {
  TransformerSpec mixtral = llama(32, 4096, 32, 8, 14336, 32000);
  mixtral.experts = 8;
  mixtral.top_k = 2;
  EXPECT_EQ(total(mixtral), 46'702'792'704u);
  const ParameterCount parts = count_parameters(mixtral);
  EXPECT_EQ(parts.router_per_layer, 8u * 4096);
  EXPECT_EQ(parts.mlp_per_layer, 8u * 3 * 4096 * 14336);
}

TEST(Parameters, ModelOfLayersAlone) {
  TransformerSpec model = gpt(3, 64, 4, 1000, 128);
  model.embedding = false;
  model.head = false;
  EXPECT_EQ(total(model), 3 * count_parameters(model).per_layer());
}

TEST(Parameters, HeadWithoutAnEmbeddingToReuseIsItsOwn) {
  TransformerSpec model = gpt(1, 64, 4, 1000, 128);
  model.embedding = false;
  EXPECT_EQ(count_parameters(model).head, 64'000u);
}

RC_GTEST_PROP(Flops, EqualTheClosedFormOfNarayanan, ()) {
  const auto heads = *rc::gen::inRange<std::int64_t>(1, 32);
  const std::int64_t hidden = heads * *rc::gen::inRange<std::int64_t>(1, 128);
  const auto layers = *rc::gen::inRange(1, 64);
  const auto vocab = *rc::gen::inRange<std::int64_t>(1, 60'000);
  const auto sequence = *rc::gen::inRange<std::int64_t>(1, 4096);
  const auto batch = *rc::gen::inRange<std::uint64_t>(1, 64);
  const auto h = static_cast<std::uint64_t>(hidden);
  const auto s = static_cast<std::uint64_t>(sequence);
  const auto l = static_cast<std::uint64_t>(layers);
  // 72 B s L h^2 (1 + s/(6h) + V/(12 L h)), multiplied out
  const std::uint64_t expected =
      batch * s * (72 * l * h * h + 12 * l * h * s + 6 * h * static_cast<std::uint64_t>(vocab));
  RC_ASSERT(model_flops(gpt(layers, hidden, heads, vocab, sequence), batch) == expected);
}

TEST(Flops, SwigluWithGroupedQueriesByHand) {
  TransformerSpec model = llama(2, 8, 4, 2, 12, 100);
  model.sequence = 10;
  // Multiply-accumulates of a token: q 8*8, k and v 8*4 each, out 8*8, three matrices 8*12, scores 2*8*10.
  const std::uint64_t layer = 64 + 32 + 32 + 64 + 3 * 96 + 160;
  EXPECT_EQ(model_flops(model, 3), 3u * 2 * (2 * layer + 8 * 100) * 10 * 3);
  model.head = false;
  EXPECT_EQ(model_flops(model, 3), 3u * 2 * (2 * layer) * 10 * 3);
}

/// The router and two of five experts in place of the MLP; padding does not count, dropped choices do not either.
TEST(Flops, ATokenPassesSomeExperts) {
  TransformerSpec model = llama(2, 8, 4, 2, 12, 100);
  model.sequence = 10;
  model.experts = 5;
  model.top_k = 2;
  model.capacity_factor = Rational(5, 4);
  const std::uint64_t layer = 64 + 32 + 32 + 64 + 8 * 5 + 2 * 3 * 96 + 160;
  EXPECT_EQ(model_flops(model, 3), 3u * 2 * (2 * layer + 8 * 100) * 10 * 3);
  model.capacity_factor = Rational(1, 4);
  const std::uint64_t quarter = layer - 2 * 3 * 96 + 3 * 96 / 2;
  EXPECT_EQ(model_flops(model, 3), 3u * 2 * (2 * quarter + 8 * 100) * 10 * 3);
}

TEST(Flops, MaskTyingAndEmbeddingDoNotCount) {
  TransformerSpec model = gpt(4, 64, 4, 1000, 128);
  const std::uint64_t flops = model_flops(model, 2);
  model.attention = AttentionMask::full;
  model.tied_embeddings = false;
  model.embedding = false;
  EXPECT_EQ(model_flops(model, 2), flops);
}

TEST(Flops, RefusesWhatDoesNotFit) {
  const TransformerSpec model = gpt(128, 25600, 160, 51200, 2048);
  EXPECT_EQ(model_flops(model, 1'000), 1'000 * model_flops(model, 1));
  EXPECT_THROW(model_flops(model, 3'072), PlanError);
}

TEST(Activations, LayerByHand) {
  TransformerSpec model = gpt(1, 64, 4, 1000, 32);
  const auto bytes = [&](int tp, bool sp, Recompute recompute) {
    return megatron_activation_bytes_per_layer(model, {2, tp, sp, recompute});
  };
  const double sbh = 32 * 2 * 64;
  const double scores = 5.0 * 4 * 32 / 64;
  EXPECT_DOUBLE_EQ(bytes(1, false, Recompute::none), sbh * (34 + scores));
  EXPECT_DOUBLE_EQ(bytes(4, false, Recompute::none), sbh * (10 + 24.0 / 4 + scores / 4));
  EXPECT_DOUBLE_EQ(bytes(4, true, Recompute::none), sbh / 4 * (34 + scores));
  EXPECT_DOUBLE_EQ(bytes(4, false, Recompute::selective), sbh * (10 + 24.0 / 4));
  EXPECT_DOUBLE_EQ(bytes(4, true, Recompute::selective), sbh / 4 * 34);
  EXPECT_DOUBLE_EQ(bytes(4, false, Recompute::full), sbh * 2);
}

TEST(Activations, FirstStageHoldsAllLayersAndMoreWhenInterleaved) {
  const TransformerSpec model = gpt(24, 64, 4, 1000, 32);
  const ActivationScope scope;
  const double layer = megatron_activation_bytes_per_layer(model, scope);
  EXPECT_DOUBLE_EQ(megatron_activation_bytes_first_stage(model, scope, 1, 1), 24 * layer);
  EXPECT_DOUBLE_EQ(megatron_activation_bytes_first_stage(model, scope, 4, 1), 24 * layer);
  EXPECT_DOUBLE_EQ(megatron_activation_bytes_first_stage(model, scope, 4, 3), 24 * layer * (1 + 3.0 / 12));
}

TEST(Activations, RefuseModelsOutsideTheScopeOfThePaper) {
  const auto bytes = [](const TransformerSpec& model) {
    return megatron_activation_bytes_per_layer(model, {});
  };
  EXPECT_THROW(bytes(llama(2, 64, 4, 4, 256, 100)), PlanError);
  TransformerSpec grouped = gpt(2, 64, 4, 100, 32);
  grouped.kv_heads = 2;
  EXPECT_THROW(bytes(grouped), PlanError);
  TransformerSpec fused = gpt(2, 64, 4, 100, 32);
  fused.attention_kernel = AttentionKernel::fused;
  EXPECT_THROW(bytes(fused), PlanError);
  EXPECT_THROW(megatron_activation_bytes_per_layer(gpt(2, 64, 4, 100, 32), {1, 0, false, Recompute::none}),
               PlanError);
  EXPECT_THROW(megatron_activation_bytes_first_stage(gpt(2, 64, 4, 100, 32), {}, 0, 1), PlanError);
}

}  // namespace
}  // namespace wafersim::models
