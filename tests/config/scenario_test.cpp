#include "config/scenario.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace wafersim::config {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSmall =
    "wafer: {mesh: 4x8}\n"
    "model: {layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 1000, context: 128, sequence: 128}\n";

/// A directory of its own for each test.
class ScenarioFile : public testing::Test {
 protected:
  ScenarioFile() : directory_(fs::temp_directory_path() / ("wafersim_scenario_" + std::to_string(getpid()))) {
    fs::create_directories(directory_);
  }
  ~ScenarioFile() override { fs::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = directory_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  Scenario load(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    return load_scenario(write("scenario.yaml", text), {overrides, ""});
  }

  fs::path directory_;
};

TEST_F(ScenarioFile, LeavesDefaultsWhereNothingIsSaid) {
  const Scenario s = load(kSmall);
  EXPECT_EQ(s.name, "scenario");
  EXPECT_EQ(s.seed, 1U);
  EXPECT_EQ(s.wafer.mesh.shape, (topology::Shape{4, 8}));
  EXPECT_EQ(s.wafer.clock, models::WaferSpec{}.clock);
  EXPECT_FALSE(s.wafer.dram.has_value());
  EXPECT_FALSE(s.wafer.sram.bandwidth.has_value());
  EXPECT_FALSE(s.router.vc_buffer.has_value());
  EXPECT_EQ(s.model.kv_heads, 4);
  EXPECT_EQ(s.model.head_dim, 16);
  EXPECT_EQ(s.model.name, "model");
  EXPECT_TRUE(s.plan.mapping.empty());
  EXPECT_TRUE(s.placement.empty());
}

/// A section that stands as a bare value keeps it when a key of the section is set; a bare value replaces the section.
TEST_F(ScenarioFile, KeysAreSetBesideAShorthand) {
  const std::string text = std::string(kSmall) + "plan: {tatp: 8, sp: ring, mapping: auto}\n";
  const Scenario s = load(text, {"plan.tatp.variant=wrapped_ring", "plan.sp.degree=2", "plan.mapping.tatp=row"});
  EXPECT_EQ(s.plan.tatp, 8);
  EXPECT_EQ(s.plan.stream.variant, workloads::StreamVariant::wrapped_ring);
  EXPECT_EQ(s.plan.sp, workloads::SequenceParallel::ring);
  EXPECT_EQ(s.plan.sp_degree, 2);
  EXPECT_EQ(s.plan.axis_mapping(workloads::Axis::tatp).placement, workloads::Placement::row);
  EXPECT_EQ(s.plan.axis_mapping(workloads::Axis::pp).placement, workloads::Placement::optimized);
  const Scenario later = load(text, {"plan.sp=ulysses", "plan.sp.degree=4", "plan.tatp.variant=flood", "plan.tatp=2"});
  EXPECT_EQ(later.plan.sp, workloads::SequenceParallel::ulysses);
  EXPECT_EQ(later.plan.sp_degree, 4);
  EXPECT_EQ(later.plan.tatp, 2);
}

TEST_F(ScenarioFile, ReadsEveryKindOfValue) {
  const Scenario s = load(R"(
name: study
seed: 7
wafer:
  mesh: 32x64
  clock: 1.1 GHz
  compute:
    matrix: {shape: 64x32, peak: 32.8 TFLOP/s, dataflow: output_stationary}
    vector: {peak: 512 FLOP/cycle}
    launch_overhead: 20 ns
  sram: {capacity: 48 KiB, bandwidth: 4 TB/s}
  dram: {capacity: 72 GB, bandwidth: 1 TB/s, die: 2x4}
  link: {bandwidth: 32 B/cycle, latency: 3 cycles}
  nic: {ports: single, injection_bandwidth: 16 B/cycle, ejection_latency: 1 cycle, message_overhead: 5 cycles}
  dead_tiles: [tile_3_1, [5, 2]]
  dead_links: [tile_0_0>tile_1_0]
router: {routing: table, virtual_channels: 12, pipeline: 0 cycles, credit_latency: 2 cycles, vc_buffer: 8 KiB}
network: {fidelity: ideal, packet_bytes: 4 KiB}
model: {layers: 2, hidden: 64, heads: 4, kv_heads: 2, head_dim: 32, ffn: 99, vocab: 10, sequence: 8,
        mlp: swiglu, norm: rmsnorm, positions: rotary, linear_bias: false, qkv_bias: true, attention: full,
        attention_kernel: materialized, parallel_residual: true, tied_embeddings: true}
training: {global_batch: 8, microbatch: 2, precision: fp16, optimizer: sgd, recompute: selective,
           clip_grad: false, iterations: 3}
plan: {dp: 2, tp: 4, pp: 2, sp: {kind: megatron, degree: 4}, schedule: gpipe, zero: 1, pp_transfer: full,
       mapping: {tp: snake 2x2, pp: col, dp: default, order: [pp, tp, dp]}, collectives: rows_cols,
       collective_chunks: 4, tatp: 1, ep: 1, overlap: {near: 1, far: 1}}
placement: {optimizer: dram, parameters: sram, activations: auto}
)");
  EXPECT_EQ(s.name, "study");
  EXPECT_EQ(s.seed, 7U);
  EXPECT_EQ(s.wafer.clock.hertz, Rational(1'100'000'000));
  EXPECT_EQ(s.wafer.core.matrix.shape, (topology::Shape{64, 32}));
  EXPECT_EQ(s.wafer.core.matrix.peak->value, Rational(32'800'000'000'000));
  EXPECT_EQ(s.wafer.core.matrix.dataflow, models::Dataflow::output_stationary);
  EXPECT_EQ(s.wafer.core.vector.peak, (ComputeRate{Rational(512), true}));
  EXPECT_EQ(s.wafer.core.launch_overhead.cycles(s.wafer.clock), 22U);
  EXPECT_EQ(s.wafer.sram.capacity.bytes, 48U * 1024);
  EXPECT_EQ(s.wafer.sram.bandwidth, Bandwidth::per_second(Rational(4'000'000'000'000)));
  ASSERT_TRUE(s.wafer.dram.has_value());
  EXPECT_EQ(s.wafer.dram->die, (topology::Shape{2, 4}));
  EXPECT_EQ(s.wafer.link.bandwidth, Bandwidth::per_clock(Rational(32)));
  EXPECT_EQ(s.wafer.nic.ports, models::NicPorts::single);
  EXPECT_EQ(s.wafer.nic.injection_bandwidth, Bandwidth::per_clock(Rational(16)));
  EXPECT_FALSE(s.wafer.nic.ejection_bandwidth.has_value());
  EXPECT_EQ(s.wafer.nic.ejection_latency, Duration::of_cycles(1));
  EXPECT_EQ(s.wafer.mesh.dead_tiles, (std::vector<topology::Coord>{{3, 1}, {5, 2}}));
  ASSERT_EQ(s.wafer.mesh.dead_links.size(), 1U);
  EXPECT_EQ(s.wafer.mesh.dead_links[0].second, (topology::Coord{1, 0}));
  EXPECT_EQ(s.router.routing, "table");
  EXPECT_EQ(s.router.vc_buffer->bytes, 8192U);
  EXPECT_EQ(s.network.fidelity, models::Fidelity::ideal);
  EXPECT_EQ(s.model.head_dim, 32);
  EXPECT_EQ(s.model.context, 8);
  EXPECT_EQ(s.model.qkv_bias, std::optional<bool>(true));
  EXPECT_EQ(s.model.attention_kernel, models::AttentionKernel::materialized);
  EXPECT_EQ(s.training.microbatch, 2);
  EXPECT_EQ(s.training.recompute, models::Recompute::selective);
  EXPECT_EQ(s.plan.sp, workloads::SequenceParallel::megatron);
  EXPECT_TRUE(s.plan.pp_transfer_full);
  EXPECT_EQ(s.plan.mapping.at(workloads::Axis::tp).shape, (topology::Shape{2, 2}));
  EXPECT_EQ(s.plan.mapping.at(workloads::Axis::pp).placement, workloads::Placement::col);
  EXPECT_FALSE(s.plan.mapping.contains(workloads::Axis::dp));
  EXPECT_EQ(s.plan.order.front(), workloads::Axis::pp);
  EXPECT_EQ(s.plan.collectives, workloads::Collective::rows_cols);
  EXPECT_EQ(s.placement.size(), 2U);
  EXPECT_EQ(s.placement.at(workloads::MemoryClass::optimizer), workloads::MemoryPlace::dram);

  const std::string resolved = to_yaml(s);
  EXPECT_EQ(to_yaml(load(resolved)), resolved);
}

TEST_F(ScenarioFile, ShortFormOfSequenceParallelism) {
  EXPECT_EQ(load(std::string(kSmall) + "plan: {tp: 2, sp: megatron}\n").plan.sp,
            workloads::SequenceParallel::megatron);
}

TEST_F(ScenarioFile, ExpertsAndWhoSharesThemOut) {
  const Scenario s =
      load(std::string(kSmall) + "plan: {dp: 8, ep: 4, mapping: {ep: row, order: [tp, ep, pp, dp]}}\n",
           {"model.experts=8", "model.top_k=2", "model.capacity_factor=1.1", "model.linear_bias=false"});
  EXPECT_EQ(s.model.experts, 8);
  EXPECT_EQ(s.model.top_k, 2);
  EXPECT_EQ(s.model.capacity_factor, Rational(11, 10));
  EXPECT_EQ(s.plan.ep, 4);
  EXPECT_EQ(s.plan.degree(workloads::Axis::dp), 2);
  EXPECT_EQ(s.plan.mapping.at(workloads::Axis::ep).placement, workloads::Placement::row);
  EXPECT_EQ(s.plan.order[1], workloads::Axis::ep);
  EXPECT_EQ(to_yaml(load(to_yaml(s))), to_yaml(s));
}

TEST_F(ScenarioFile, SchedulesAndTheirStages) {
  const Scenario s = load(std::string(kSmall) +
                          "plan: {pp: 2, schedule: interleaved, virtual_stages: 2, layers_per_stage: [1, 1, 3, 2], "
                          "embedding: replicated}\n");
  EXPECT_EQ(s.plan.embedding, workloads::EmbeddingTable::replicated);
  EXPECT_EQ(s.plan.schedule, workloads::PipelineSchedule::interleaved);
  EXPECT_EQ(s.plan.virtual_stages, 2);
  EXPECT_EQ(s.plan.layers_per_stage, (std::vector<int>{1, 1, 3, 2}));
  EXPECT_TRUE(s.training.clip_grad);
  EXPECT_EQ(to_yaml(load(to_yaml(s))), to_yaml(s));
  EXPECT_TRUE(load(std::string(kSmall) + "plan: {layers_per_stage: even}\n").plan.layers_per_stage.empty());
}

/// What a schedule that knows no global norm says about it is what a scenario may write.
TEST_F(ScenarioFile, ZeroBubbleTwoDoesNotClip) {
  const Scenario s = load(std::string(kSmall) + "plan: {schedule: zb_h2}\n");
  EXPECT_FALSE(s.training.clip_grad);
  EXPECT_EQ(to_yaml(load(to_yaml(s))), to_yaml(s));
  EXPECT_TRUE(load(std::string(kSmall) + "plan: {schedule: zb_h1}\n").training.clip_grad);
  EXPECT_FALSE(load(std::string(kSmall) + "training: {clip_grad: false}\nplan: {schedule: zb_h2}\n").training.clip_grad);
}

TEST_F(ScenarioFile, AutoLeavesAxesAndTheirNestingToASearch) {
  using workloads::Axis;
  using workloads::Placement;
  const auto placement = [](const Scenario& s, Axis axis) { return s.plan.axis_mapping(axis).placement; };
  const auto with_mapping = [&](const std::string& mapping) {
    const Scenario s = load(kSmall + ("plan: {mapping: " + mapping + "}\n"));
    const std::string resolved = to_yaml(s);
    EXPECT_EQ(to_yaml(load(resolved)), resolved);
    EXPECT_EQ(load(resolved).plan.order_given, s.plan.order_given);
    return s;
  };
  const Scenario all = with_mapping("auto");
  for (const Axis axis : {Axis::tp, Axis::pp, Axis::dp})
    EXPECT_EQ(placement(all, axis), Placement::optimized);
  EXPECT_FALSE(all.plan.order_given);

  const Scenario single = with_mapping("{tp: auto, pp: block 4x8}");
  EXPECT_EQ(placement(single, Axis::tp), Placement::optimized);
  EXPECT_EQ(placement(single, Axis::pp), Placement::block);
  EXPECT_EQ(placement(single, Axis::dp), Placement::standard);
  EXPECT_FALSE(single.plan.order_given);

  const Scenario others = with_mapping("{others: auto, pp: default, order: [dp, tp, pp]}");
  EXPECT_EQ(placement(others, Axis::dp), Placement::optimized);
  EXPECT_EQ(placement(others, Axis::pp), Placement::standard);
  EXPECT_TRUE(others.plan.order_given);
  EXPECT_EQ(others.plan.order.front(), Axis::dp);

  const Scenario none = with_mapping("{tp: strided 1x4, order: auto}");
  EXPECT_EQ(none.plan.mapping.at(Axis::tp).shape, (topology::Shape{1, 4}));
  EXPECT_EQ(none.plan.order, workloads::default_order());
}

TEST_F(ScenarioFile, OverridesReplaceValuesAndMergeMaps) {
  const Scenario s =
      load(std::string(kSmall) + "plan: {tp: 2, sp: megatron, mapping: {tp: row}}\n",
           {"wafer.link.bandwidth=2 TB/s", "wafer.mesh=2x2", "plan.mapping.dp=block 1x2", "plan.sp.kind=none",
            "wafer.sram={bandwidth: 1 TB/s}", "plan.mapping.order=[dp, tp, pp]", "wafer.mesh=2x3"});
  EXPECT_EQ(s.wafer.link.bandwidth, Bandwidth::per_second(Rational(2'000'000'000'000)));
  EXPECT_EQ(s.wafer.link.latency, models::LinkSpec{}.latency);
  EXPECT_EQ(s.wafer.mesh.shape, (topology::Shape{2, 3}));
  EXPECT_EQ(s.wafer.sram.capacity, models::SramSpec{}.capacity);
  EXPECT_TRUE(s.wafer.sram.bandwidth.has_value());
  EXPECT_EQ(s.plan.tp, 2);
  EXPECT_EQ(s.plan.sp, workloads::SequenceParallel::none);
  EXPECT_EQ(s.plan.mapping.at(workloads::Axis::tp).placement, workloads::Placement::row);
  EXPECT_EQ(s.plan.mapping.at(workloads::Axis::dp).shape, (topology::Shape{1, 2}));
  EXPECT_EQ(s.plan.order.front(), workloads::Axis::dp);
}

TEST_F(ScenarioFile, AnOverrideOfAnAlternativeReplacesTheOther) {
  const std::string text =
      "wafer: {mesh: 2x2, compute: {matrix: {peak: 32 TFLOP/s}}}\n"
      "model: {layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 1000, context: 128, sequence: 128}\n";
  const Scenario s = load(text, {"wafer.compute.matrix.arrays=3"});
  EXPECT_FALSE(s.wafer.core.matrix.peak.has_value());
  EXPECT_EQ(s.wafer.core.matrix.arrays, 3);
}

TEST_F(ScenarioFile, WordsForNothingTakeAwayWhatAPresetGives) {
  const Scenario s = load(
      "wafer: {preset: wafer-2048}\nmodel: {preset: gpt3-6.7b, sequence: 2048}\nrouter: {vc_buffer: 1 MiB}\n",
      {"wafer.dram=none", "wafer.sram.bandwidth=unlimited", "router.vc_buffer=auto"});
  EXPECT_FALSE(s.wafer.dram.has_value());
  EXPECT_FALSE(s.wafer.sram.bandwidth.has_value());
  EXPECT_FALSE(s.router.vc_buffer.has_value());
}

TEST_F(ScenarioFile, AnEmptySectionChangesNothing) {
  const Scenario s = load(std::string(kSmall) + "router:\nplan:\n  mapping:\n", {"wafer.sram="});
  EXPECT_EQ(s.router.routing, "xy");
  EXPECT_EQ(s.wafer.sram.capacity, models::SramSpec{}.capacity);
}

TEST_F(ScenarioFile, LayersAloneNeedNeitherVocabularyNorPositions) {
  const Scenario s = load(
      "wafer: {mesh: 2x2}\n"
      "model: {layers: 1, hidden: 64, heads: 4, ffn: 256, sequence: 128, embedding: false, head: false}\n");
  EXPECT_EQ(s.model.vocab, 0);
  EXPECT_EQ(s.model.context, 128);
  const std::string resolved = to_yaml(s);
  EXPECT_EQ(to_yaml(load(resolved)), resolved);
}

TEST_F(ScenarioFile, AnchorsMayBeUsed) {
  const Scenario s = load(std::string(kSmall) + "router: {pipeline: &t 3 cycles, credit_latency: *t}\n");
  EXPECT_EQ(s.router.credit_latency, Duration::of_cycles(3));
}

TEST_F(ScenarioFile, KernelTableIsRelativeToTheFileThatNamesIt) {
  const std::string text =
      "wafer: {mesh: 2x2, compute: {table: kernels/table.csv}}\n"
      "model: {layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 1000, context: 128, sequence: 128}\n";
  const Scenario s = load(text);
  EXPECT_EQ(s.wafer.core.table, (directory_ / "kernels/table.csv").string());
  EXPECT_EQ(load(to_yaml(s)).wafer.core.table, s.wafer.core.table);
  EXPECT_EQ(load(text, {"wafer.compute.table=none"}).wafer.core.table, "");
  EXPECT_EQ(load(text, {"wafer.compute.table=a.csv"}).wafer.core.table,
            (fs::current_path() / "a.csv").string());
}

TEST_F(ScenarioFile, NamesThatLookLikeOtherYamlSurviveARoundTrip) {
  for (const std::string name : {"null", "~", "a: b", "12", "true", "# x", "- x", "two\nlines", "'quoted'"}) {
    Scenario s = load(kSmall);
    s.name = name;
    EXPECT_EQ(load(to_yaml(s)).name, name);
  }
}

TEST_F(ScenarioFile, QuantitiesWithoutAFiniteDecimalSurviveARoundTrip) {
  Scenario s = load(kSmall);
  s.wafer.clock.hertz = Rational(1'000'000'000, 3);
  s.wafer.link.bandwidth = Bandwidth::per_clock(Rational(7, 3));
  s.wafer.link.latency = {Rational(1, 7'000'000), false};
  s.wafer.core.vector.peak = {Rational(123'456'789'012'345), false};
  s.network.packet_bytes.bytes = 1'000'003;
  const Scenario back = load(to_yaml(s));
  EXPECT_EQ(back.wafer.clock, s.wafer.clock);
  EXPECT_EQ(back.wafer.link.bandwidth, s.wafer.link.bandwidth);
  EXPECT_EQ(back.wafer.link.latency, s.wafer.link.latency);
  EXPECT_EQ(back.wafer.core.vector.peak, s.wafer.core.vector.peak);
  EXPECT_EQ(back.network.packet_bytes, s.network.packet_bytes);
}

TEST_F(ScenarioFile, JsonHoldsNumbersBooleansAndTexts) {
  const auto json = nlohmann::json::parse(to_json(load(kSmall)));
  EXPECT_EQ(json.at("seed"), 1);
  EXPECT_EQ(json.at("wafer").at("mesh"), "4x8");
  EXPECT_EQ(json.at("wafer").at("dram"), "none");
  EXPECT_EQ(json.at("wafer").at("clock"), "1 GHz");
  EXPECT_EQ(json.at("model").at("layers"), 2);
  EXPECT_EQ(json.at("model").at("linear_bias"), true);
  EXPECT_EQ(json.at("plan").at("tatp").at("degree"), 1);
  EXPECT_EQ(json.at("plan").at("mapping").at("order"),
            (std::vector<std::string>{"tp", "tatp", "sp", "ep", "pp", "dp"}));
}

/// Attention exchanges nothing where inputs travel, and a resolved scenario says so.
TEST_F(ScenarioFile, StreamedInputsSurviveARoundTrip) {
  using workloads::StreamOperand;
  for (const auto& [text, operand, attention] :
       {std::tuple("{degree: 4, stream: inputs}", StreamOperand::inputs, "none"),
        {"{degree: 4, stream: auto, attention: heads}", StreamOperand::automatic, "heads"},
        {"{degree: 4}", StreamOperand::weights, "stream_kv"}}) {
    const Scenario s = load(std::string(kSmall) + "plan: {tatp: " + text + "}\n");
    EXPECT_EQ(s.plan.stream.operand, operand);
    EXPECT_EQ(nlohmann::json::parse(to_json(s)).at("plan").at("tatp").at("attention"), attention);
    const Scenario back = load(to_yaml(s));
    EXPECT_EQ(back.plan.stream.operand, operand);
    EXPECT_EQ(back.plan.stream.attention, s.plan.stream.attention);
    EXPECT_EQ(to_yaml(back), to_yaml(s));
  }
}

TEST_F(ScenarioFile, UnreadableFilesAreIoErrors) {
  EXPECT_THROW(load_scenario((directory_ / "absent.yaml").string()), IoError);
  EXPECT_THROW(load_scenario(directory_.string()), IoError);
}

TEST_F(ScenarioFile, AnEmptyFileLacksItsSections) {
  try {
    load("");
    FAIL() << "accepted";
  } catch (const ScenarioError& error) {
    ASSERT_EQ(error.problems().size(), 2U);
    EXPECT_EQ(error.problems()[0].path, "wafer");
    EXPECT_EQ(error.problems()[1].path, "model");
  }
}

}  // namespace
}  // namespace wafersim::config
