#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/models/csv_table.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/layer.h"

/// What lowered plans hold, against published memory: Korthikanti et al. 2022 (arXiv 2205.05198), tables 2 and 3, and
/// the bytes per parameter of mixed precision (Rajbhandari et al. 2020, ZeRO).
namespace wafersim::workloads {
namespace {

using models::Recompute;
using test::CsvRow;

constexpr double kGib = 1 << 30;

std::int64_t number(const CsvRow& row, const char* column) { return std::stoll(row.at(column)); }

/// The layers of a row of the table, as the paper trains them.
LoweringFixture published(const CsvRow& row, bool sequence_parallel, Recompute recompute) {
  LoweringFixture setup;
  setup.layers_alone();
  setup.model.layers = static_cast<int>(number(row, "layers"));
  setup.model.hidden = number(row, "hidden");
  setup.model.heads = setup.model.kv_heads = number(row, "heads");
  setup.model.head_dim = setup.model.hidden / setup.model.heads;
  setup.model.ffn = 4 * setup.model.hidden;
  setup.model.sequence = setup.model.context = 2048;
  setup.plan.tp = static_cast<int>(number(row, "tp"));
  setup.plan.pp = static_cast<int>(number(row, "pp"));
  setup.plan.virtual_stages = static_cast<int>(number(row, "interleave_v"));
  if (setup.plan.virtual_stages > 1) setup.plan.schedule = PipelineSchedule::interleaved;
  setup.plan.sp = sequence_parallel ? SequenceParallel::megatron : SequenceParallel::none;
  setup.training.recompute = recompute;
  setup.training.microbatch = number(row, "micro_batch");
  setup.training.global_batch = number(row, "global_batch");
  setup.training.optimizer = Optimizer::none;
  setup.training.clip_grad = false;
  setup.wafer.mesh.shape = {32, 32};
  return setup;
}

/// The most activations that a tile of the first stage keeps from a step to a later one.
double kept_on_the_first_stage(const LoweringFixture& setup) {
  const Trace trace = setup.lower().trace;
  const auto first = std::find_if(trace.tiles.begin(), trace.tiles.end(),
                                  [](const TileBinding& binding) { return binding.stage == 0; });
  std::int64_t held = 0, most = 0;
  for (const Step& step : trace.programs[first->program].steps) {
    if (step.background) continue;
    held += net_bytes(trace.templates[step.step_template]);
    most = std::max(most, held);
  }
  return static_cast<double>(most);
}

/// Equal to the last digit that the table prints.
void expect_printed(const CsvRow& row, const char* column, double value) {
  const std::string& text = row.at(column);
  EXPECT_NEAR(value, std::stod(text), test::half_last_digit(text) * (1 + 1e-9)) << row.at("model") << " " << column;
}

class MegatronTable : public testing::TestWithParam<std::size_t> {
 protected:
  const CsvRow row_ = test::read_reference("megatron_activation_memory.csv").at(GetParam());
};

/// Interleaved rows hold (1 + (p - 1) / (p v)) times as much: it is part of their figures.
TEST_P(MegatronTable, FirstStagesKeepWhatIsPublished) {
  const auto kept = [&](bool sequence_parallel, Recompute recompute) {
    return kept_on_the_first_stage(published(row_, sequence_parallel, recompute));
  };
  const double all = kept(false, Recompute::none);
  const double least = kept(true, Recompute::selective);
  expect_printed(row_, "activations_tp_only_gib", all / kGib);
  expect_printed(row_, "activations_tp_sp_selective_gib", least / kGib);
  expect_printed(row_, "percent_of_tp_sp", 100 * kept(true, Recompute::none) / all);
  expect_printed(row_, "percent_of_tp_selective", 100 * kept(false, Recompute::selective) / all);
  expect_printed(row_, "percent_of_tp_sp_selective", 100 * least / all);
  expect_printed(row_, "percent_of_tp_full", 100 * kept(false, Recompute::full) / all);
}

/// 18 bytes of each parameter of a layer's matrices, on each tile of the first stage; norms and biases are not in the
/// table's figure.
TEST_P(MegatronTable, WeightsGradientsAndOptimizer) {
  LoweringFixture setup = published(row_, false, Recompute::none);
  setup.training.optimizer = Optimizer::adam;
  setup.training.gradient_precision = Precision::fp32;
  setup.model.linear_bias = false;
  const Trace trace = setup.lower().trace;
  const auto& bytes = trace.statics[trace.tiles[0].statics].bytes;
  const auto norms = static_cast<Bytes>(4 * setup.model.hidden * setup.model.layers / setup.plan.pp);  // gain and shift
  expect_printed(row_, "weight_grad_optimizer_gib_18B",
                 static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), Bytes{0}) - 18 * norms) / kGib);
}

INSTANTIATE_TEST_SUITE_P(AllRows, MegatronTable, testing::Range<std::size_t>(0, 4));

/// Resident bytes of one class, all tiles together.
Bytes resident(const Trace& trace, MemoryClass memory_class) {
  Bytes total = 0;
  for (const TileBinding& tile : trace.tiles) {
    total += trace.statics[tile.statics].bytes[static_cast<std::size_t>(memory_class)];
  }
  return total;
}

/// Mixed precision with Adam: weight 2, gradient 2 or 4, master weight and moments 12. ZeRO divides the optimizer states
/// by the replicas, from 2 on the gradients, with 3 the weights too: all replicas together hold them once.
TEST(BytesPerParameter, SixteenOrEighteenAndWhatZeroDivides) {
  for (const bool wide_gradients : {false, true}) {
    for (const int dp : {1, 3, 4}) {
      for (int zero = 0; zero <= 3; ++zero) {
        LoweringFixture setup;
        setup.plan.dp = dp;
        setup.plan.zero = zero;
        setup.training.global_batch = 12 * setup.training.microbatch;
        if (wide_gradients) setup.training.gradient_precision = Precision::fp32;
        const Trace trace = setup.lower().trace;
        const std::uint64_t parameters = models::count_parameters(setup.model).total(setup.model.layers);
        const auto copies = [&](int from) { return static_cast<Bytes>(zero >= from ? 1 : dp); };
        EXPECT_EQ(resident(trace, MemoryClass::parameters), 2 * parameters * copies(3));
        EXPECT_EQ(resident(trace, MemoryClass::gradients), (wide_gradients ? 4 : 2) * parameters * copies(2));
        EXPECT_EQ(resident(trace, MemoryClass::optimizer), 12 * parameters * copies(1));
        // Shares differ by a parameter of each bucket at most.
        for (const TileBinding& tile : trace.tiles) {
          const Bytes own = trace.statics[tile.statics].bytes[static_cast<std::size_t>(MemoryClass::optimizer)];
          const Bytes even = 12 * parameters * copies(1) / static_cast<Bytes>(dp);
          EXPECT_LE(own > even ? own - even : even - own, 12U * 6);
        }
      }
    }
  }
}

/// Tensor streams of N tiles: the matrices of a layer, with gradients and optimizer states, and what a layer saves are cut
/// to 1/N; norms are on every tile. What comes on top are blocks of others, of which one is 1/N of the largest matrix.
TEST(TensorStreams, HoldATotalOfOneNthAndBlocks) {
  LoweringFixture setup;
  setup.make_llama();
  setup.layers_alone();
  setup.model.attention_kernel = models::AttentionKernel::fused;
  const auto held = [&](int tatp) {
    setup.plan.tatp = tatp;
    return setup.lower();
  };
  const LoweredPlan one = held(1);
  const auto h = static_cast<std::uint64_t>(setup.model.hidden);
  const std::uint64_t norms = 2 * h * 4;
  const std::uint64_t matrices = models::count_parameters(setup.model).total(setup.model.layers) - norms;
  const auto saved = [&](int tatp) {
    setup.plan.tatp = tatp;
    return saved_bytes_per_layer(setup.model, make_shard(setup.model, setup.training, setup.plan, {}), Recompute::none);
  };
  const auto stream_buffers = static_cast<std::size_t>(MemoryClass::stream_buffers);
  EXPECT_EQ(one.memory.by_class[stream_buffers], 0U);
  for (const int n : {2, 4, 8}) {
    const LoweredPlan lowered = held(n);
    const auto parts = static_cast<std::uint64_t>(n);
    for (const TileBinding& tile : lowered.trace.tiles) {
      const auto& bytes = lowered.trace.statics[tile.statics].bytes;
      EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), Bytes{0}), 16 * (matrices / parts + norms)) << n;
    }
    EXPECT_EQ(saved(n) * parts, saved(1));
    const Bytes block = 2 * h * 2 * static_cast<Bytes>(setup.model.ffn) / parts;  // gate and up
    EXPECT_GE(lowered.memory.by_class[stream_buffers], block);
  }
}

}  // namespace
}  // namespace wafersim::workloads
