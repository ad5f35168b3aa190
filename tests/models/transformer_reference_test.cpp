#include <gtest/gtest.h>

#include "models/transformer.h"
#include "tests/models/csv_table.h"
#include "tests/models/test_models.h"

namespace wafersim::models {
namespace {

using test::CsvRow;
using test::gpt;
using test::llama;

constexpr double kGib = 1 << 30;

std::int64_t whole(const CsvRow& row, const std::string& column) { return std::stoll(row.at(column)); }
int degree(const CsvRow& row, const std::string& column) { return std::stoi(row.at(column)); }

/// Equal to the last digit that the table prints.
void expect_printed(const CsvRow& row, const std::string& column, double value) {
  const std::string& text = row.at(column);
  EXPECT_NEAR(value, std::stod(text), test::half_last_digit(text) * (1 + 1e-9))
      << row.begin()->second << ' ' << column;
}

TransformerSpec published(const CsvRow& row) {
  const auto layers = degree(row, "layers");
  const auto hidden = whole(row, "hidden");
  const auto heads = whole(row, "heads");
  const auto vocab = whole(row, "vocab");
  if (row.at("mlp") == "gelu") return gpt(layers, hidden, heads, vocab, whole(row, "context"));
  return llama(layers, hidden, heads, whole(row, "kv_heads"), whole(row, "ffn"), vocab);
}

TEST(TransformersTable, ParametersAreExact) {
  int exact = 0;
  for (const CsvRow& row : test::read_reference("transformers.csv")) {
    if (row.at("exact_parameters").empty()) continue;
    const TransformerSpec model = published(row);
    EXPECT_EQ(count_parameters(model).total(model.layers), std::stoull(row.at("exact_parameters")))
        << row.at("model");
    ++exact;
  }
  EXPECT_EQ(exact, 6);
}

TEST(TransformersTable, GptRowsFollowTheClosedForm) {
  int rows = 0;
  for (const CsvRow& row : test::read_reference("transformers.csv")) {
    if (row.at("mlp") != "gelu") continue;
    const TransformerSpec model = published(row);
    EXPECT_EQ(model.ffn, whole(row, "ffn"));
    EXPECT_EQ(model.kv_heads, whole(row, "kv_heads"));
    const std::int64_t h = model.hidden;
    const std::int64_t expected =
        model.layers * (12 * h * h + 13 * h) + (model.vocab + model.context + 2) * h;
    EXPECT_EQ(count_parameters(model).total(model.layers), static_cast<std::uint64_t>(expected))
        << row.at("model");
    ++rows;
  }
  EXPECT_EQ(rows, 4);
}

/// The models of both Megatron papers: vocabulary 51200, sequences of 2048.
TransformerSpec megatron(const CsvRow& row) {
  return gpt(degree(row, "layers"), whole(row, "hidden"), whole(row, "heads"), 51200, 2048);
}

double billions(const TransformerSpec& model) {
  return static_cast<double>(count_parameters(model).total(model.layers)) * 1e-9;
}

class MegatronMemoryTable : public testing::TestWithParam<std::size_t> {
 protected:
  const CsvRow row = test::read_reference("megatron_activation_memory.csv").at(GetParam());
  const TransformerSpec model = megatron(row);

  double first_stage(bool sequence_parallel, Recompute recompute) const {
    const ActivationScope scope{static_cast<std::uint64_t>(whole(row, "micro_batch")), degree(row, "tp"),
                                sequence_parallel, recompute};
    return megatron_activation_bytes_first_stage(model, scope, degree(row, "pp"),
                                                 degree(row, "interleave_v"));
  }
  double percent(bool sequence_parallel, Recompute recompute) const {
    return 100 * first_stage(sequence_parallel, recompute) / first_stage(false, Recompute::none);
  }
};

TEST_P(MegatronMemoryTable, Activations) {
  expect_printed(row, "activations_tp_only_gib", first_stage(false, Recompute::none) / kGib);
  expect_printed(row, "activations_tp_sp_selective_gib", first_stage(true, Recompute::selective) / kGib);
  expect_printed(row, "percent_of_tp_sp", percent(true, Recompute::none));
  expect_printed(row, "percent_of_tp_selective", percent(false, Recompute::selective));
  expect_printed(row, "percent_of_tp_sp_selective", percent(true, Recompute::selective));
  expect_printed(row, "percent_of_tp_full", percent(false, Recompute::full));
}

TEST_P(MegatronMemoryTable, Parameters) { expect_printed(row, "parameters_1e9", billions(model)); }

TEST_P(MegatronMemoryTable, WeightsGradientsAndOptimizerOfTheMatrices) {
  TransformerSpec matrices = model;
  matrices.linear_bias = false;
  const ParameterCount parameters = count_parameters(matrices);
  const std::uint64_t per_layer = parameters.attention_per_layer + parameters.mlp_per_layer;  // 12 h^2
  const double bytes =
      18.0 * static_cast<double>(per_layer) * model.layers / (degree(row, "tp") * degree(row, "pp"));
  expect_printed(row, "weight_grad_optimizer_gib_18B", bytes / kGib);
}

INSTANTIATE_TEST_SUITE_P(AllRows, MegatronMemoryTable, testing::Range<std::size_t>(0, 4));

TEST(MegatronMemory, TableHasFourRows) {
  EXPECT_EQ(test::read_reference("megatron_activation_memory.csv").size(), 4u);
}

/// Seconds of an iteration at the measured rate. The layers are recomputed: four forward passes' worth
/// instead of three.
double implied_seconds(const CsvRow& row) {
  TransformerSpec layers = megatron(row);
  layers.head = false;
  const auto with_head = static_cast<double>(model_flops(megatron(row), 1));
  const auto without_head = static_cast<double>(model_flops(layers, 1));
  const double flops = (with_head - without_head + without_head * 4 / 3) * std::stod(row.at("global_batch"));
  return flops / (std::stod(row.at("gpus")) * std::stod(row.at("tflops_per_gpu")) * 1e12);
}

TEST(MegatronScalingTable, ParametersAndImpliedIterationTimes) {
  const std::vector<CsvRow> rows = test::read_reference("megatron_weak_scaling.csv");
  ASSERT_EQ(rows.size(), 10u);
  for (const CsvRow& row : rows) {
    expect_printed(row, "parameters_1e9", billions(megatron(row)));
    expect_printed(row, "iteration_s_implied", implied_seconds(row));
  }
}

}  // namespace
}  // namespace wafersim::models
