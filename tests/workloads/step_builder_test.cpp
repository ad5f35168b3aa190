#include "workloads/step_builder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace wafersim::workloads {
namespace {

Work vector_work(std::uint64_t flops) {
  Work work;
  work.vector_flops = flops;
  return work;
}

std::vector<OpId> dependencies(const StepTemplate& step_template, OpId op) {
  const auto first = step_template.dependencies.begin() + step_template.ops[op].first_dependency;
  return {first, first + step_template.ops[op].dependency_count};
}

TEST(StepBuilder, WritesOperationsWithTheirDependencies) {
  Trace trace;
  trace.meanings.resize(4);
  StepBuilder builder(trace, "layer.forward");
  const OpId product = builder.matrix({{1, 2, 3, 4}, 0, 100, 0}, {});
  const OpId received = builder.receive(Axis::tp, 2, 7, 64, {});
  const Operand what{builder.tensor("x"), builder.meaning({.kernel = Kernel::add, .adds = true}), true};
  const OpId sum = builder.reduce(Axis::tp, vector_work(16), {received, product, received}, what);
  const OpId sent = builder.send(Axis::pp, 1, 9, 32, {sum}, {}, MatchScope::microbatch);
  builder.detach(sent);
  builder.free(MemoryClass::activations, 10, {sent});
  const StepTemplate& made = trace.templates.at(builder.finish());

  EXPECT_EQ(made.name, "layer.forward");
  ASSERT_EQ(made.ops.size(), 5U);
  EXPECT_EQ(dependencies(made, sum), (std::vector<OpId>{product, received}));
  EXPECT_EQ(dependencies(made, product), std::vector<OpId>{});
  EXPECT_EQ(trace.works.at(made.ops[product].work).gemm, (models::GemmShape{1, 2, 3, 4}));
  EXPECT_EQ(made.ops[received].peer, 2U);
  EXPECT_EQ(made.ops[received].channel, 7U);
  EXPECT_EQ(made.ops[received].bytes, 64U);
  EXPECT_EQ(made.ops[sum].operand, what);
  EXPECT_EQ(trace.meanings.at(what.meaning).kernel, Kernel::add);
  EXPECT_EQ(made.ops[sent].scope, MatchScope::microbatch);
  EXPECT_TRUE(made.ops[sent].detached);
  EXPECT_FALSE(made.ops[sum].detached);
}

TEST(StepBuilder, InternsWorksAndTensorsAcrossTemplates) {
  Trace trace;
  for (int i = 0; i < 3; ++i) {
    StepBuilder builder(trace, "step" + std::to_string(i));
    builder.vector(vector_work(5), {});
    builder.vector(vector_work(6), {});
    EXPECT_EQ(builder.tensor("x"), 1U);
    EXPECT_EQ(builder.tensor("y"), 2U);
    builder.finish();
  }
  EXPECT_EQ(trace.works.size(), 2U);
  EXPECT_EQ(trace.tensors, (std::vector<Tensor>{{"-"}, {"x"}, {"y"}}));
  EXPECT_EQ(trace.templates.size(), 3U);
}

std::uint32_t build(Trace& trace, const std::string& name, std::uint32_t channel, Bytes bytes) {
  StepBuilder builder(trace, name);
  const OpId start = builder.vector(vector_work(1), {});
  builder.send(Axis::tp, 0, channel, bytes, {start});
  return builder.finish();
}

TEST(StepBuilder, SharesEqualTemplatesOnly) {
  Trace trace;
  const std::uint32_t first = build(trace, "a", 1, 8);
  EXPECT_EQ(build(trace, "a", 1, 8), first);
  EXPECT_NE(build(trace, "b", 1, 8), first);
  EXPECT_NE(build(trace, "a", 2, 8), first);
  EXPECT_NE(build(trace, "a", 1, 9), first);
  EXPECT_EQ(trace.templates.size(), 4U);
}

TEST(StepBuilder, IsEmptyAfterFinishAndMayBuildAgain) {
  Trace trace;
  StepBuilder builder(trace, "twice");
  EXPECT_EQ(builder.new_channel(), 0U);
  EXPECT_EQ(builder.new_channels(5), 1U);
  EXPECT_EQ(builder.new_channel(), 6U);
  builder.vector(vector_work(1), {});
  const std::uint32_t first = builder.finish();
  EXPECT_EQ(builder.size(), 0U);
  EXPECT_EQ(builder.new_channel(), 0U);
  builder.vector(vector_work(1), {});
  EXPECT_EQ(builder.finish(), first);
}

TEST(StepBuilder, RefusesBrokenOperations) {
  Trace trace;
  StepBuilder builder(trace, "wrong");
  EXPECT_THROW(builder.send(Axis::tp, 0, 0, 0, {}), InternalError);
  EXPECT_THROW(builder.receive(Axis::tp, 0, 1U << 24, 8, {}), InternalError);
  EXPECT_THROW(builder.vector(vector_work(1), {5}), InternalError);
  EXPECT_THROW(builder.new_channels((1U << 24) + 1), InternalError);
}

Op message(std::uint32_t channel, MatchScope scope) {
  Op op;
  op.kind = OpKind::send;
  op.channel = channel;
  op.scope = scope;
  return op;
}

Step step(StepKind kind, Pass pass, int layer, int microbatch, int iteration) {
  Step made;
  made.kind = kind;
  made.pass = pass;
  made.layer = layer;
  made.microbatch = microbatch;
  made.iteration = static_cast<std::int16_t>(iteration);
  return made;
}

TEST(MessageKey, TellsEveryFieldApartAtItsLimits) {
  std::vector<std::uint64_t> keys;
  for (const MatchScope scope : {MatchScope::step, MatchScope::microbatch}) {
    for (const std::uint32_t channel : {0U, 1U, (1U << 23) - 1}) {
      for (const int microbatch : {-1, 0, 1, 65535}) {
        for (const int iteration : {0, 1, 15}) {
          if (scope == MatchScope::microbatch) {
            keys.push_back(message_key(message(channel, scope),
                                       step(StepKind::layer, Pass::forward, 1, microbatch, iteration)));
            continue;
          }
          for (const StepKind kind : {StepKind::embedding, StepKind::custom}) {
            for (const Pass pass : {Pass::forward, Pass::none}) {
              for (const int layer : {-1, 0, 4095}) {
                keys.push_back(
                    message_key(message(channel, scope), step(kind, pass, layer, microbatch, iteration)));
              }
            }
          }
        }
      }
    }
  }
  const std::size_t count = keys.size();
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  EXPECT_EQ(keys.size(), count);
}

TEST(MessageKey, OfAMicrobatchIsTheSameInEveryStep) {
  const Op op = message(3, MatchScope::microbatch);
  EXPECT_EQ(message_key(op, step(StepKind::layer, Pass::forward, 11, 4, 2)),
            message_key(op, step(StepKind::head, Pass::backward, 12, 4, 2)));
  EXPECT_NE(message_key(op, step(StepKind::layer, Pass::forward, 11, 4, 2)),
            message_key(op, step(StepKind::layer, Pass::forward, 11, 4, 18)));
}

TEST(MessageKey, RefusesWhatItHasNoRoomFor) {
  const Op op = message(0, MatchScope::step);
  EXPECT_THROW(
      message_key(message(1U << 23, MatchScope::step), step(StepKind::layer, Pass::forward, 0, 0, 0)),
      InternalError);
  EXPECT_THROW(message_key(op, step(StepKind::layer, Pass::forward, 4096, 0, 0)), InternalError);
  EXPECT_THROW(message_key(op, step(StepKind::layer, Pass::forward, -2, 0, 0)), InternalError);
  EXPECT_THROW(message_key(op, step(StepKind::layer, Pass::forward, 0, 65536, 0)), InternalError);
  EXPECT_THROW(message_key(op, step(StepKind::layer, Pass::forward, 0, 0, -1)), InternalError);
}

TEST(Trace, CountsTheBytesOfItsContainers) {
  Trace trace;
  const Bytes before = trace.memory_bytes();
  build(trace, "a", 1, 8);
  EXPECT_GE(trace.memory_bytes(), before + 2 * sizeof(Op) + sizeof(Work) + sizeof(StepTemplate));
  EXPECT_LT(trace.memory_bytes(), before + 4096);
}

}  // namespace
}  // namespace wafersim::workloads
