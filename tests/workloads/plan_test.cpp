#include "workloads/plan.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace wafersim::workloads {
namespace {

struct Case {
  PlanSpec plan;
  TrainingSpec training;
  models::TransformerSpec model;
  topology::MeshSpec mesh;
};

/// dp 2 x tp 4 x pp 2 on an 4x4 mesh, 32 sequences in microbatches of 4.
Case sound() {
  Case made;
  made.plan.dp = 2;
  made.plan.tp = 4;
  made.plan.pp = 2;
  made.training.global_batch = 32;
  made.training.microbatch = 4;
  made.model.layers = 8;
  made.model.heads = 16;
  made.mesh.shape = {4, 4};
  return made;
}

/// The message of the PlanError, or "" when the plan is sound.
std::string fault(const Case& wanted) {
  try {
    validate_plan(wanted.plan, wanted.training, wanted.model, topology::Mesh(wanted.mesh));
  } catch (const PlanError& error) {
    return error.what();
  }
  return "";
}

TEST(ValidatePlan, AcceptsASoundPlan) { EXPECT_EQ(fault(sound()), ""); }

TEST(ValidatePlan, NamesTheNearestBatches) {
  Case wanted = sound();
  wanted.training.global_batch = 130;
  EXPECT_EQ(fault(wanted),
            "training.global_batch 130 is not a multiple of dp * microbatch = 8; nearest valid: 128 or 136");
  wanted.training.global_batch = 3;
  EXPECT_EQ(fault(wanted),
            "training.global_batch 3 is not a multiple of dp * microbatch = 8; nearest valid: 8");
}

TEST(ValidatePlan, RefusesMoreRanksThanHeadsOrStagesThanLayers) {
  Case wanted = sound();
  wanted.model.heads = 3;
  EXPECT_EQ(fault(wanted), "plan.tp 4 is more than the 3 attention heads of the model; nearest valid: 3");
  wanted = sound();
  wanted.model.layers = 1;
  EXPECT_EQ(fault(wanted), "plan.pp 2 is more than the 1 layers of the model; nearest valid: 1");
}

TEST(ValidatePlan, RefusesChunksThatDoNotFitTheSchedule) {
  Case wanted = sound();
  wanted.plan.virtual_stages = 2;
  EXPECT_EQ(fault(wanted), "plan.virtual_stages 2 needs schedule interleaved; nearest valid with 1f1b: 1");
  wanted.plan.schedule = PipelineSchedule::interleaved;
  EXPECT_EQ(fault(wanted), "");
  wanted.plan.virtual_stages = 5;
  EXPECT_EQ(fault(wanted),
            "plan.virtual_stages 5 x pp 2 are more chunks than the 8 layers of the model; nearest valid: virtual_stages 4");
  wanted.plan.virtual_stages = 1;
  EXPECT_EQ(fault(wanted),
            "plan.virtual_stages 1 leaves schedule interleaved nothing to interleave; nearest valid: 2");
  wanted.plan.virtual_stages = 0;
  EXPECT_EQ(fault(wanted), "plan.virtual_stages 0 is below 1; nearest valid: 1");
}

TEST(ValidatePlan, RefusesLayerSplitsThatDoNotAddUp) {
  Case wanted = sound();
  wanted.plan.layers_per_stage = {3, 5};
  EXPECT_EQ(fault(wanted), "");
  wanted.plan.layers_per_stage = {3, 4};
  EXPECT_EQ(fault(wanted),
            "plan.layers_per_stage [3, 4] sums up to 7, not to the 8 layers of the model; nearest valid: [3, 5]");
  wanted.plan.layers_per_stage = {7, 4};
  EXPECT_EQ(fault(wanted),
            "plan.layers_per_stage [7, 4] sums up to 11, not to the 8 layers of the model; nearest valid: [7, 1]");
  wanted.plan.layers_per_stage = {8, 0};
  EXPECT_EQ(fault(wanted), "plan.layers_per_stage [8, 0] has a stage without layers; nearest valid: [7, 1]");
  wanted.plan.layers_per_stage = {2, 2, 4};
  EXPECT_EQ(fault(wanted),
            "plan.layers_per_stage [2, 2, 4] has 3 entries, not pp * virtual_stages = 2; nearest valid: [2, 6]");
  wanted.plan.schedule = PipelineSchedule::interleaved;
  wanted.plan.virtual_stages = 2;
  EXPECT_EQ(fault(wanted),
            "plan.layers_per_stage [2, 2, 4] has 3 entries, not pp * virtual_stages = 4; nearest valid: [2, 2, 3, 1]");
}

TEST(ValidatePlan, RefusesToReplicateATiedTable) {
  Case wanted = sound();
  wanted.plan.embedding = EmbeddingTable::replicated;
  EXPECT_EQ(fault(wanted), "");
  wanted.model.tied_embeddings = true;
  EXPECT_EQ(fault(wanted),
            "plan.embedding replicated needs a head with a table of its own (model.tied_embeddings: false); nearest "
            "valid: sharded");
  wanted.model.head = false;
  EXPECT_EQ(fault(wanted), "");
}

TEST(ValidatePlan, RefusesAGlobalNormThatUndoesTheSchedule) {
  Case wanted = sound();
  wanted.plan.schedule = PipelineSchedule::zb_h2;
  EXPECT_EQ(fault(wanted),
            "training.clip_grad true makes every stage wait for the last before its optimizer, which schedule zb_h2 "
            "is there to avoid; nearest valid: false");
  wanted.training.clip_grad = false;
  EXPECT_EQ(fault(wanted), "");
  wanted.training.clip_grad = true;
  wanted.training.optimizer = Optimizer::none;
  EXPECT_EQ(fault(wanted), "");
}

TEST(ValidatePlan, CountsLiveTiles) {
  Case wanted = sound();
  wanted.mesh.dead_tiles = {{0, 0}};
  EXPECT_EQ(fault(wanted),
            "the plan needs 16 tiles (dp 2 * tp 4 * pp 2), the wafer has 15 that live; nearest valid: dp 1");
  wanted.mesh = {{1, 4}, {}, {}};
  EXPECT_EQ(
      fault(wanted),
      "the plan needs 16 tiles (dp 2 * tp 4 * pp 2), the wafer has 4 that live; nearest valid: dp 1 with "
      "tp * pp <= 4");
}

TEST(ValidatePlan, ReportsDegreesBelowOneAndBadOrders) {
  Case wanted = sound();
  wanted.plan.dp = 0;
  EXPECT_EQ(fault(wanted), "plan.dp 0 is below 1; nearest valid: 1");
  wanted = sound();
  wanted.training.microbatch = 0;
  EXPECT_EQ(fault(wanted), "training.microbatch 0 is below 1; nearest valid: 1");
  wanted = sound();
  wanted.plan.order = {Axis::tp, Axis::tp, Axis::dp};
  EXPECT_EQ(fault(wanted),
            "plan.mapping.order [tp, tp, dp] names tp 2 times instead of once; "
            "plan.mapping.order [tp, tp, dp] names pp 0 times instead of once");
  wanted.plan.order = {Axis::dp, Axis::tp, Axis::pp};  // axes of degree 1 may be left out
  EXPECT_EQ(fault(wanted), "");
}

TEST(ValidatePlan, CutsTheSequenceIntoNoLessThanTwoTokensARank) {
  Case wanted = sound();
  wanted.plan.dp = wanted.plan.pp = wanted.plan.tp = 1;
  wanted.plan.tatp = 4;
  wanted.plan.sp = SequenceParallel::ring;
  wanted.plan.sp_degree = 2;
  wanted.model.sequence = 16;
  EXPECT_EQ(fault(wanted), "");
  wanted.model.sequence = 15;
  EXPECT_EQ(fault(wanted),
            "model.sequence 15 gives some of the 8 ranks that cut it (sp 2 * tatp 4) no tokens; nearest valid: 16");
}

TEST(ValidatePlan, ExchangesNoMoreHeadsThanThereAre) {
  Case wanted = sound();
  wanted.plan.dp = wanted.plan.pp = 1;
  wanted.plan.tp = 2;
  wanted.model.kv_heads = 4;
  wanted.model.sequence = 64;
  wanted.plan.sp = SequenceParallel::ulysses;
  wanted.plan.sp_degree = 4;
  EXPECT_EQ(fault(wanted),
            "plan.sp.degree 4 exchanges heads, but a tensor-parallel rank has 2 key/value heads only; nearest valid: 2");
  wanted.plan.sp_degree = 2;
  EXPECT_EQ(fault(wanted), "");
  wanted.plan.tatp = 2;
  wanted.plan.stream.attention = StreamAttention::heads;
  EXPECT_EQ(fault(wanted),
            "plan.tatp.attention heads cannot be combined with plan.sp ulysses: heads are exchanged over one axis "
            "only; nearest valid: plan.tatp.attention stream_kv");
  wanted.plan.sp = SequenceParallel::none;
  wanted.plan.sp_degree = 1;
  wanted.plan.tatp = 8;
  EXPECT_EQ(fault(wanted),
            "plan.tatp 8 exchanges heads, but a tensor-parallel rank has 2 key/value heads only; nearest valid: 2");
}

TEST(ValidatePlan, StreamsKeysIntoFusedAttentionOnly) {
  const std::string message =
      "model.attention_kernel materialized needs all keys at once, but keys and values stream (plan.tatp, plan.sp "
      "ring); nearest valid: fused";
  Case wanted = sound();
  wanted.plan.dp = wanted.plan.pp = 1;
  wanted.model.sequence = 64;
  wanted.model.attention_kernel = models::AttentionKernel::materialized;
  wanted.plan.tatp = 2;
  EXPECT_EQ(fault(wanted), message);
  wanted.plan.stream.attention = StreamAttention::heads;
  wanted.model.kv_heads = 16;
  EXPECT_EQ(fault(wanted), "");
  wanted.plan.sp = SequenceParallel::ring;
  wanted.plan.sp_degree = 2;
  EXPECT_EQ(fault(wanted), message);
}

TEST(ValidatePlan, CutsHeadsAndMlpWhereInputsTravel) {
  Case wanted = sound();
  wanted.plan.dp = wanted.plan.pp = 1;
  wanted.plan.tp = 2;
  wanted.plan.tatp = 8;
  wanted.plan.stream.operand = StreamOperand::inputs;
  wanted.model.sequence = 64;
  wanted.model.heads = 12;
  wanted.model.kv_heads = 6;
  wanted.model.ffn = 64;
  EXPECT_EQ(fault(wanted),
            "plan.tatp 8 with stream inputs cuts the attention heads of a tensor-parallel rank, which has 6 only; nearest "
            "valid: 6");
  wanted.model.ffn = 9;
  wanted.plan.tatp = 5;
  EXPECT_EQ(fault(wanted),
            "plan.tatp 5 with stream inputs cuts the MLP of a tensor-parallel rank, which has 4 columns only; nearest "
            "valid: 4");
  wanted.plan.stream.operand = StreamOperand::automatic;
  EXPECT_EQ(fault(wanted), "") << "what cannot travel stays";
  // 12 query heads on 4 ranks: the second has those of the first and of the second of three kv heads' groups.
  wanted.plan.stream.operand = StreamOperand::inputs;
  wanted.model.ffn = 64;
  wanted.model.heads = 12;
  wanted.model.kv_heads = 3;
  wanted.plan.tp = 4;
  wanted.plan.tatp = 2;
  EXPECT_EQ(fault(wanted),
            "plan.tp 4 with stream inputs gives a rank query heads of several of the 3 key/value heads, which other ranks "
            "hold too; nearest valid: 3");
  wanted.plan.tp = 3;
  EXPECT_EQ(fault(wanted), "");
  wanted.plan.tp = 6;
  EXPECT_EQ(fault(wanted), "");
  wanted.plan.tp = 2;
  wanted.model.kv_heads = 12;
  wanted.plan.sp = SequenceParallel::ulysses;
  wanted.plan.sp_degree = 4;
  EXPECT_EQ(fault(wanted),
            "plan.sp.degree 4 exchanges heads, but a tensor-stream rank has 3 key/value heads only; nearest valid: 3");
  wanted.plan.sp_degree = 2;
  wanted.model.attention_kernel = models::AttentionKernel::materialized;
  EXPECT_EQ(fault(wanted), "") << "no keys stream";
}

TEST(ValidatePlan, NamesDegreesOfTheNewAxes) {
  Case wanted = sound();
  wanted.plan.tatp = 0;
  EXPECT_EQ(fault(wanted), "plan.tatp 0 is below 1; nearest valid: 1");
  wanted = sound();
  wanted.plan.overlap_near = 0;
  EXPECT_EQ(fault(wanted), "plan.overlap.near 0 is below 1; nearest valid: 1");
  wanted = sound();
  wanted.plan.dp = 1;
  wanted.plan.sp_degree = 2;
  wanted.model.sequence = 64;
  EXPECT_EQ(fault(wanted),
            "plan.sp.degree 2 is for kinds ulysses and ring with a group of their own; nearest valid: 1");
  wanted = sound();
  wanted.plan.tatp = 3;
  wanted.model.sequence = 64;
  EXPECT_EQ(fault(wanted),
            "the plan needs 48 tiles (dp 2 * tp 4 * tatp 3 * pp 2), the wafer has 16 that live; nearest valid: "
            "dp 1 with tp * tatp * pp <= 16");
}

TEST(ValidatePlan, SharesOutExpertsEvenly) {
  Case wanted = sound();
  wanted.plan.ep = 2;
  EXPECT_EQ(fault(wanted), "plan.ep 2 shares out experts, but the model has none; nearest valid: 1");
  wanted.model.experts = 12;
  wanted.model.top_k = 2;
  wanted.model.linear_bias = false;
  EXPECT_EQ(fault(wanted), "");
  wanted.mesh.shape = {16, 16};
  wanted.plan.dp = 8;
  wanted.plan.ep = 3;
  EXPECT_EQ(fault(wanted),
            "plan.ep 3 does not divide dp 8; nearest valid: 2 or 4");
  wanted.plan.ep = 8;
  EXPECT_EQ(fault(wanted), "plan.ep 8 does not divide the 12 experts of the model; nearest valid: 4");
  wanted.plan.ep = 0;
  EXPECT_EQ(fault(wanted), "plan.ep 0 is below 1; nearest valid: 1");
  wanted.plan.ep = 4;
  wanted.model.capacity_factor = 0;
  EXPECT_EQ(fault(wanted),
            "model.capacity_factor 0 is not above 0 and at most experts / top_k = 6; nearest valid: 1");
  wanted.model.capacity_factor = Rational(13, 2);
  EXPECT_EQ(fault(wanted),
            "model.capacity_factor 6.5 is not above 0 and at most experts / top_k = 6; nearest valid: 6");
  wanted.model.top_k = 13;
  wanted.model.linear_bias = true;
  wanted.model.capacity_factor = Rational(1, 2);
  EXPECT_EQ(fault(wanted),
            "model.top_k 13 is not one of 1 .. 12 experts; nearest valid: 12; "
            "model.linear_bias true does not go with experts, which have no biases; nearest valid: false");
}

TEST(ValidatePlan, ReportsAllFaultsAtOnce) {
  Case wanted = sound();
  wanted.model.heads = 2;
  wanted.model.layers = 1;
  wanted.training.global_batch = 33;
  EXPECT_EQ(fault(wanted),
            "plan.tp 4 is more than the 2 attention heads of the model; nearest valid: 2; "
            "plan.pp 2 is more than the 1 layers of the model; nearest valid: 1; "
            "training.global_batch 33 is not a multiple of dp * microbatch = 8; nearest valid: 32 or 40");
}

TEST(ValidatePlan, LimitsMicrobatchesToWhatAMessageKeyHolds) {
  Case wanted = sound();
  wanted.training.global_batch = 8 * 65536;
  EXPECT_EQ(fault(wanted), "");
  wanted.training.global_batch += 8;
  EXPECT_EQ(
      fault(wanted),
      "training.global_batch 524296 makes more than 65536 microbatches a replica; nearest valid: 524288");
}

TEST(Plan, ElementBytes) {
  EXPECT_EQ(element_bytes(Precision::fp32), 4U);
  EXPECT_EQ(element_bytes(Precision::bf16), 2U);
  EXPECT_EQ(element_bytes(Precision::fp16), 2U);
}

TEST(Plan, NamesAreThoseOfScenarios) {
  EXPECT_STREQ(to_string(Axis::tatp), "tatp");
  EXPECT_STREQ(to_string(MemoryClass::communication_buffers), "communication_buffers");
  EXPECT_STREQ(to_string(PipelineSchedule::one_f_one_b), "1f1b");
  EXPECT_STREQ(to_string(PipelineSchedule::zb_h2), "zb_h2");
  EXPECT_STREQ(to_string(Collective::automatic), "auto");
  EXPECT_STREQ(to_string(Collective::rows_cols), "rows_cols");
  EXPECT_STREQ(to_string(Collective::halving_doubling), "halving_doubling");
}

}  // namespace
}  // namespace wafersim::workloads
