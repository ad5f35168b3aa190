#include "workloads/verify.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/workloads/lowering_fixture.h"

namespace wafersim::workloads {
namespace {

std::string faults(const LoweringFixture& setup) {
  return join(verify_trace(setup.lower().trace, setup.mesh()), "\n");
}

/// Every degree of the axes that cut a layer or the batch, on every kind of layer.
TEST(Verify, EveryDegreeOfDataTensorAndPipelineIsProven) {
  for (const bool llama : {false, true}) {
    for (const int tp : {1, 2, 3, 8}) {
      for (const int dp : {1, 2, 4}) {
        for (const int pp : {1, 3, 4}) {
          for (const bool sp : {false, true}) {
            LoweringFixture setup;
            if (llama) setup.make_llama();
            setup.set_degrees(dp, tp, pp);
            setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
            setup.plan.zero = dp > 1 ? 1 : 0;
            EXPECT_EQ(faults(setup), "") << llama << " tp " << tp << " dp " << dp << " pp " << pp << " sp " << sp;
          }
        }
      }
    }
  }
}

TEST(Verify, EveryKindOfModelAndOfMemorySavingIsProven) {
  using models::Recompute;
  for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (const auto kernel : {models::AttentionKernel::fused, models::AttentionKernel::materialized}) {
      for (const bool parallel : {false, true}) {
        for (const bool tied : {false, true}) {
          for (const int zero : {0, 1}) {
            LoweringFixture setup;
            setup.set_degrees(2, 4, tied ? 2 : 1);
            setup.plan.sp = parallel ? SequenceParallel::megatron : SequenceParallel::none;
            setup.plan.zero = zero;
            setup.model.parallel_residual = parallel;
            setup.model.tied_embeddings = tied;
            setup.model.attention_kernel = kernel;
            setup.training.recompute = recompute;
            setup.training.iterations = 2;
            EXPECT_EQ(faults(setup), "") << parallel << tied << zero;
          }
        }
      }
    }
  }
}

TEST(Verify, WhatReplicasShareOutIsProven) {
  for (const int zero : {2, 3}) {
    for (const int tp : {1, 2}) {
      for (const int pp : {1, 2}) {
        for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1}) {
          for (const int far : {0, 1, 3}) {
            if (schedule == PipelineSchedule::gpipe && far > 1) continue;
            LoweringFixture setup;
            setup.set_degrees(4, tp, pp);
            setup.plan.sp = SequenceParallel::megatron;
            setup.plan.zero = zero;
            setup.plan.schedule = schedule;
            setup.plan.overlap_far = far;
            setup.model.tied_embeddings = tp == 2;
            setup.training.iterations = 2;
            EXPECT_EQ(faults(setup), "") << "zero " << zero << " tp " << tp << " pp " << pp << " far " << far;
          }
        }
      }
    }
    LoweringFixture setup;
    setup.set_degrees(2, 1, 2);
    setup.plan.tatp = 2;
    setup.plan.zero = zero;
    setup.plan.sp = SequenceParallel::ring;
    setup.plan.sp_degree = 2;
    setup.model.attention_kernel = models::AttentionKernel::fused;
    setup.training.recompute = models::Recompute::full;
    EXPECT_EQ(faults(setup), "") << "zero " << zero << " with tatp and ring";
  }
}

TEST(Verify, SharedKeyValueHeadsAndRaggedShapesAreProven) {
  for (const int tp : {3, 4, 5, 8}) {
    for (const int kv : {1, 2, 4}) {
      LoweringFixture setup;
      setup.make_llama();
      setup.model.kv_heads = kv;
      setup.model.vocab = 101;
      setup.model.sequence = 31;
      setup.set_degrees(2, tp, 2);
      setup.plan.sp = SequenceParallel::megatron;
      setup.plan.collective_chunks = 2;
      EXPECT_EQ(faults(setup), "") << tp << " " << kv;
    }
  }
}

TEST(Verify, ModelsWithoutEnds) {
  for (const int pp : {1, 2}) {
    LoweringFixture setup;
    setup.layers_alone();
    setup.set_degrees(1, 2, pp);
    EXPECT_EQ(faults(setup), "");
    setup.model.head = true;
    setup.model.final_norm = false;
    setup.plan.sp = SequenceParallel::megatron;
    EXPECT_EQ(faults(setup), "");
  }
}

TEST(Verify, ReplicatedEmbeddingTables) {
  for (const bool llama : {false, true}) {
    for (const int tp : {1, 3, 4}) {
      for (const bool sp : {false, true}) {
        for (const int zero : {0, 1}) {
          LoweringFixture setup;
          if (llama) setup.make_llama();
          setup.set_degrees(2, tp, 2);
          setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
          setup.plan.embedding = EmbeddingTable::replicated;
          setup.plan.zero = zero;
          setup.training.iterations = 2;
          EXPECT_EQ(faults(setup), "") << llama << tp << sp << zero;
        }
      }
    }
  }
}

TEST(Verify, TensorStreamsAreProven) {
  for (const auto variant : {StreamVariant::flood, StreamVariant::wrapped_ring, StreamVariant::interleaved_ring}) {
    for (const auto relay : {StreamRelay::cut_through, StreamRelay::store_and_forward}) {
      for (const int tatp : {2, 3, 5, 8}) {
        for (const auto attention : {StreamAttention::stream_kv, StreamAttention::heads}) {
          for (const int near : {1, 2}) {
            LoweringFixture setup;
            setup.set_degrees(2, 1, 2);
            setup.plan.tatp = tatp;
            setup.plan.stream = {StreamOperand::weights, attention, variant, relay};
            setup.plan.overlap_near = near;
            setup.model.attention_kernel = models::AttentionKernel::fused;
            setup.model.attention = near == 1 ? models::AttentionMask::causal : models::AttentionMask::full;
            setup.plan.zero = 1;
            EXPECT_EQ(faults(setup), "") << static_cast<int>(variant) << static_cast<int>(relay) << " tatp " << tatp
                                         << " " << static_cast<int>(attention) << " near " << near;
          }
        }
      }
    }
  }
}

TEST(Verify, StreamsOfInputsAreProven) {
  using enum SequenceParallel;
  for (const auto variant : {StreamVariant::flood, StreamVariant::wrapped_ring, StreamVariant::interleaved_ring}) {
    for (const auto relay : {StreamRelay::cut_through, StreamRelay::store_and_forward}) {
      for (const auto& [tp, tatp, sp] : {std::tuple(1, 2, none), {1, 5, ring}, {1, 8, none}, {2, 3, megatron},
                                         {2, 4, none}, {1, 3, ulysses}, {2, 2, ring}}) {
        for (const int zero : {0, 1, 2, 3}) {
          LoweringFixture setup;
          setup.set_degrees(2, tp, 2);
          setup.plan.tatp = tatp;
          setup.plan.stream = {StreamOperand::inputs, StreamAttention::stream_kv, variant, relay};
          setup.plan.sp = sp;
          setup.plan.sp_degree = sp == ring || sp == ulysses ? 2 : 1;
          setup.plan.overlap_near = 1 + zero % 3;
          setup.plan.schedule = zero % 2 == 0 ? PipelineSchedule::zb_h1 : PipelineSchedule::one_f_one_b;
          setup.plan.zero = zero;
          setup.model.sequence = setup.model.context = 37;
          setup.model.attention_kernel = sp == ring ? models::AttentionKernel::fused : models::AttentionKernel::materialized;
          setup.model.attention = zero == 1 ? models::AttentionMask::full : models::AttentionMask::causal;
          setup.model.parallel_residual = zero == 3;
          setup.training.recompute = zero == 2 ? models::Recompute::full : models::Recompute::selective;
          EXPECT_EQ(faults(setup), "") << static_cast<int>(variant) << static_cast<int>(relay) << " tp " << tp << " tatp "
                                       << tatp << " sp " << static_cast<int>(sp) << " zero " << zero;
        }
      }
    }
  }
}

TEST(Verify, CombinationsOfEveryAxisThatCutsALayerAreProven) {
  for (const int tp : {1, 2}) {
    for (const int tatp : {1, 2, 3}) {
      for (const auto attention : {StreamAttention::stream_kv, StreamAttention::heads}) {
        for (const auto sp : {SequenceParallel::none, SequenceParallel::megatron, SequenceParallel::ulysses,
                              SequenceParallel::ring}) {
          for (const bool llama : {false, true}) {
            const bool own = sp == SequenceParallel::ulysses || sp == SequenceParallel::ring;
            if (attention == StreamAttention::heads && (tatp == 1 || sp == SequenceParallel::ulysses)) continue;
            for (const int degree : {2, 3}) {
              if (!own && degree > 2) continue;
              LoweringFixture setup;
              if (llama) setup.make_llama();
              setup.model.kv_heads = llama ? 4 : 8;
              setup.model.attention_kernel = models::AttentionKernel::fused;
              setup.model.attention = models::AttentionMask::causal;
              setup.model.tied_embeddings = llama;
              setup.set_degrees(1, tp, 1);
              setup.plan.tatp = tatp;
              setup.plan.sp = sp;
              setup.plan.sp_degree = own ? degree : 1;
              if (tp == 2 && own && degree == 3 && sp == SequenceParallel::ulysses && llama) continue;
              if (tp == 2 && llama && tatp == 3 && attention == StreamAttention::heads) continue;
              setup.plan.stream.attention = attention;
              setup.training.recompute = llama ? models::Recompute::full : models::Recompute::none;
              EXPECT_EQ(faults(setup), "")
                  << "tp " << tp << " tatp " << tatp << " heads " << (attention == StreamAttention::heads) << " sp "
                  << static_cast<int>(sp) << " x" << degree << " llama " << llama;
            }
          }
        }
      }
    }
  }
}

/// A trace in which one operation was changed is not proven.
class Broken {
 public:
  Broken() {
    setup_.set_degrees(2, 4, 2);
    setup_.plan.sp = SequenceParallel::megatron;
    setup_.plan.zero = 1;
    setup_.training.iterations = 2;
    trace_ = setup_.lower().trace;
  }
  /// Changes the meaning of the first operation of a template for which `wanted` holds, in every tile that runs it.
  template <class Wanted, class Change>
  std::string faults(const std::string& name, Wanted wanted, Change change) {
    Trace trace = trace_;
    for (StepTemplate& each : trace.templates) {
      if (each.name != name) continue;
      for (Op& op : each.ops) {
        if (!wanted(op, trace.meanings[op.operand.meaning])) continue;
        Meaning changed = trace.meanings[op.operand.meaning];
        change(changed);
        op.operand.meaning = static_cast<std::uint32_t>(trace.meanings.size());
        trace.meanings.push_back(changed);
        return join(verify_trace(trace, setup_.mesh()), "\n");
      }
    }
    return "";
  }

 private:
  LoweringFixture setup_;
  Trace trace_;
};

auto of_kernel(Kernel kernel, OpKind kind) {
  return [=](const Op& op, const Meaning& meaning) { return meaning.kernel == kernel && op.kind == kind; };
}

TEST(Verify, NamesWhatIsWrong) {
  Broken broken;
  const auto forget = [](Meaning& meaning) { meaning = {}; };
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  // A reduction that is left out: whoever reads the sum misses addends.
  EXPECT_TRUE(contains(broken.faults("layer.forward", of_kernel(Kernel::add, OpKind::reduce), forget), "addends"));
  // A product that is left out.
  EXPECT_TRUE(contains(broken.faults("layer.forward", of_kernel(Kernel::linear, OpKind::matrix), forget),
                       "values are there"));
  // A weight gradient that is added twice.
  EXPECT_TRUE(contains(broken.faults("layer.backward", of_kernel(Kernel::linear_weight, OpKind::matrix),
                                     [](Meaning& meaning) { meaning.writes = {meaning.writes[0], meaning.writes[0]}; }),
                       "which has some of them"));
  // A tensor that is freed too early.
  EXPECT_TRUE(contains(broken.faults("layer.forward", of_kernel(Kernel::scores, OpKind::matrix),
                                     [](Meaning& meaning) { meaning.discards = meaning.reads; }),
                       "values are there"));
  // A message that says something else than its receiver expects.
  EXPECT_TRUE(contains(broken.faults("layer.forward", of_kernel(Kernel::transfer, OpKind::send),
                                     [](Meaning& meaning) { ++meaning.writes.at(0).region.row; }),
                       "expects"));
  // Memory that is not given back.
  EXPECT_TRUE(contains(broken.faults("layer.backward", of_kernel(Kernel::memory, OpKind::free), forget),
                       "is left at the end"));
  // Weights that nobody updates, and updated ones that do not come back from the other replica.
  EXPECT_TRUE(contains(broken.faults("optimizer", of_kernel(Kernel::update, OpKind::vector), forget), "updates"));
  EXPECT_TRUE(contains(broken.faults("parameter_gather", of_kernel(Kernel::transfer, OpKind::receive), forget),
                       "nothing that is named"));
}

}  // namespace
}  // namespace wafersim::workloads
