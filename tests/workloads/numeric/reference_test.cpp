#include "tests/workloads/numeric/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/workloads/numeric/tiny_model.h"

namespace wafersim::workloads::numeric {
namespace {

using models::TransformerSpec;

/// The largest difference of a gradient to (loss(x + e) - loss(x - e)) / 2e, over parameters some of which
/// are left out, relative to the largest gradient.
double difference(const TransformerSpec& model) {
  const Parameters parameters(model);
  std::vector<double> values = parameters.initial();
  const Batch batch{model, 0};
  TrainingSpec training;
  training.microbatch = 2;
  const Routing routing(model, training, {});
  const auto evaluate = [&] { return Reference(model, parameters, values, routing).evaluate(batch, 2); };
  const std::vector<double> gradients = evaluate().gradients;
  double largest = 0, off = 0;
  for (const double each : gradients) largest = std::max(largest, std::abs(each));
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < values.size(); i += 11) {
    const double value = values[i];
    values[i] = value + kStep;
    const double above = evaluate().loss;
    values[i] = value - kStep;
    const double below = evaluate().loss;
    values[i] = value;
    off = std::max(off, std::abs((above - below) / (2 * kStep) - gradients[i]));
  }
  return off / largest;
}

constexpr double kTolerance = 1e-8;

TEST(Reference, GradientsAreThoseOfTheLoss) {
  const std::vector<std::pair<const char*, std::function<void(TransformerSpec&)>>> options = {
      {"gpt", [](TransformerSpec&) {}},
      {"llama", make_tiny_llama},
      {"full mask", [](TransformerSpec& m) { m.attention = models::AttentionMask::full; }},
      {"parallel residual", [](TransformerSpec& m) { m.parallel_residual = true; }},
      {"tied", [](TransformerSpec& m) { m.tied_embeddings = true; }},
      {"one kv head", [](TransformerSpec& m) { m.kv_heads = 1; }},
      {"no positions", [](TransformerSpec& m) { m.positions = models::Positions::none; }},
      {"qkv bias alone", [](TransformerSpec& m) { m.linear_bias = false, m.qkv_bias = true; }},
      {"no final norm", [](TransformerSpec& m) { m.final_norm = false; }},
      {"no embedding", [](TransformerSpec& m) { m.embedding = false; }},
      {"experts", [](TransformerSpec& m) { make_tiny_mixtral(m); }},
      {"experts that drop tokens",
       [](TransformerSpec& m) {
         make_tiny_mixtral(m);
         m.capacity_factor = Rational(1, 2);
       }},
      {"layers alone", [](TransformerSpec& m) { m.embedding = m.head = false; }}};
  for (const auto& [name, change] : options) {
    TransformerSpec model = tiny_model();
    model.sequence = 4;
    model.ffn = 6;
    model.vocab = 9;
    change(model);
    EXPECT_LT(difference(model), kTolerance) << name;
  }
}

/// A model whose logits are all zero guesses evenly.
TEST(Reference, EvenGuessCostsTheLogarithmOfTheVocabulary) {
  const TransformerSpec model = tiny_model();
  const Parameters parameters(model);
  const std::vector<double> zero(parameters.count());
  const double loss = Reference(model, parameters, zero).evaluate({model, 0}, 3).loss;
  EXPECT_NEAR(loss, std::log(static_cast<double>(model.vocab)), 1e-12);
}

}  // namespace
}  // namespace wafersim::workloads::numeric
