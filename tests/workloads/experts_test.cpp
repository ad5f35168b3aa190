#include "workloads/experts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/expert_rows.h"
#include "workloads/verify.h"

namespace wafersim::workloads {
namespace {

using models::Recompute;

std::size_t index(Axis axis) { return static_cast<std::size_t>(axis); }
std::size_t index(MemoryClass memory_class) { return static_cast<std::size_t>(memory_class); }

/// Four replicas that share out eight experts, two choices a token.
struct Mixture : LoweringFixture {
  Mixture() {
    make_mixtral();
    model.experts = 8;
    set_degrees(4, 1, 1);
    plan.ep = 4;
  }
};

std::string faults(const LoweringFixture& setup) {
  return wafersim::join(verify_trace(setup.lower().trace, setup.mesh()), "\n");
}

TEST(Experts, EverySlotHasAPlaceOfItsOwn) {
  Mixture setup;
  std::set<std::uint64_t> by_expert, by_source;
  for (int rank = 0; rank < 4; ++rank) {
    const Shard shard = make_shard(setup.model, setup.training, setup.plan, {0, 0, 0, rank});
    EXPECT_EQ(shard.experts, (Range{2 * static_cast<std::uint64_t>(rank), 2}));
    EXPECT_EQ(shard.expert_slots, 2U * 32 * 2 / 8);
    for (std::uint64_t expert = shard.experts.first; expert < shard.experts.end(); ++expert) {
      for (const Range& range : expert_rows(shard, expert).ranges) {
        for (std::uint64_t row = range.first; row < range.end(); ++row)
          EXPECT_TRUE(by_expert.insert(row).second);
      }
    }
    for (const Range& range : expert_rows(shard, Range{0, 8}, rank).ranges) {
      for (std::uint64_t row = range.first; row < range.end(); ++row)
        EXPECT_TRUE(by_source.insert(row).second);
    }
  }
  EXPECT_EQ(by_expert, by_source);
  EXPECT_EQ(by_expert.size(), 4U * 2 * 32 * 2);
}

/// Slots are padded, or choices dropped, by whole slots of each expert.
TEST(Experts, CapacityIsRoundedUp) {
  Mixture setup;
  for (const auto& [factor, slots] : {std::pair(Rational(1), 16U),
                                      {Rational(5, 4), 20U},
                                      {Rational(1, 2), 8U},
                                      {Rational(1, 100), 1U},
                                      {Rational(11, 10), 18U}}) {
    setup.model.capacity_factor = factor;
    EXPECT_EQ(models::expert_capacity(setup.model, 64), slots) << factor.to_string();
  }
}

/// Every product of the model once: of the experts those that a token passes. Without sequence parallelism
/// every tensor-parallel rank scores all tokens, and makes the router's weight gradient of all.
TEST(Experts, GemmFlopsAreTheModelFlops) {
  for (const int tp : {1, 2, 4}) {
    for (const bool sp : {false, true}) {
      for (const int ep : {1, 2, 4}) {
        Mixture setup;
        setup.plan.tp = tp;
        setup.plan.ep = ep;
        setup.plan.sp = sp ? SequenceParallel::megatron : SequenceParallel::none;
        const std::uint64_t router = 2ULL * 64 * 8 * 16 * 32 * 4;  // of one pass over the batch
        const std::uint64_t again = sp ? 0 : static_cast<std::uint64_t>(tp - 1) * 2 * router;
        EXPECT_EQ(gemm_flops(setup.lower().trace), models::model_flops(setup.model, 16) + again)
            << tp << sp << ep;
      }
    }
  }
}

TEST(Experts, PaddedSlotsAreComputedAndSent) {
  Mixture even, padded;
  even.training.clip_grad = padded.training.clip_grad = false;
  padded.model.capacity_factor = Rational(2);
  const std::uint64_t experts = 3ULL * 2 * (3 * 64 * 192) * 16 * 32 * 2 * 4;  // forward and both gradients
  const Trace trace = even.lower().trace, more = padded.lower().trace;
  EXPECT_EQ(gemm_flops(more) - gemm_flops(trace), experts);
  EXPECT_EQ(sent_bytes(more)[index(Axis::ep)], 2 * sent_bytes(trace)[index(Axis::ep)]);
}

/// Rows of a rank's tokens at the experts of the others: out and back, forward and backward.
TEST(Experts, BytesBetweenRanksOfExperts) {
  for (const auto recompute : {Recompute::none, Recompute::full}) {
    for (const int tp : {1, 4}) {
      Mixture setup;
      setup.plan.tp = tp;
      setup.training.recompute = recompute;
      setup.training.clip_grad = false;
      const std::uint64_t forwards = recompute == Recompute::full ? 2 : 1;
      const std::uint64_t rows =
          16 * 32 * 2 * 3 / 4;  // of the batch's choices, those of other ranks' experts
      const std::uint64_t expected = rows * 64 * 2 * 4 * 2 * (forwards + 1) * static_cast<std::uint64_t>(tp);
      EXPECT_EQ(sent_bytes(setup.lower().trace)[index(Axis::ep)], expected);
    }
  }
}

/// Every parameter stands on one tile of a replica but experts, which stand on one of each ep rank's.
TEST(Experts, ParametersOfAllTiles) {
  for (const int ep : {1, 2, 4}) {
    for (const int zero : {0, 1, 2, 3}) {
      Mixture setup;
      setup.plan.ep = ep;
      setup.plan.zero = zero;
      const models::ParameterCount count = models::count_parameters(setup.model);
      const std::uint64_t experts = count.mlp_per_layer * 4, others = count.total(4) - experts;
      const std::uint64_t held = 4 * others + 4 / static_cast<std::uint64_t>(ep) * experts;
      std::map<MemoryClass, Bytes> sums;
      const LoweredPlan lowered = setup.lower();
      for (const TileBinding& tile : lowered.trace.tiles) {
        for (const auto each : {MemoryClass::parameters, MemoryClass::gradients, MemoryClass::optimizer}) {
          sums[each] += lowered.trace.statics[tile.statics].bytes[index(each)];
        }
      }
      EXPECT_EQ(sums[MemoryClass::parameters], 2 * (zero == 3 ? count.total(4) : held));
      EXPECT_EQ(sums[MemoryClass::gradients], 2 * (zero >= 2 ? count.total(4) : held));
      EXPECT_EQ(sums[MemoryClass::optimizer], 12 * (zero >= 1 ? count.total(4) : held));
    }
  }
}

/// An all-reduce on a ring of n sends 2 (n - 1) vectors in all: one over all replicas, one for each ep rank
/// over those that hold its experts.
TEST(Experts, GradientBytes) {
  for (const int ep : {1, 2, 4}) {
    Mixture setup;
    setup.plan.ep = ep;
    setup.training.clip_grad = false;
    const models::ParameterCount count = models::count_parameters(setup.model);
    const std::uint64_t experts = count.mlp_per_layer * 4, others = count.total(4) - experts;
    const auto holders = static_cast<std::uint64_t>(4 / ep);
    EXPECT_EQ(sent_bytes(setup.lower().trace)[index(Axis::dp)],
              2 * (2 * 3 * others + 2 * (holders - 1) * experts))
        << ep;
  }
}

/// Steps hold what the formulas say and give all of it back.
TEST(Experts, MemoryOfSteps) {
  for (int bits = 0; bits < 64; ++bits) {
    const auto bit = [bits](int i) { return (bits >> i & 1) != 0; };
    Mixture setup;
    setup.plan.tp = bit(0) ? 4 : 1;
    setup.plan.sp = bit(1) ? SequenceParallel::megatron : SequenceParallel::none;
    setup.model.parallel_residual = bit(2);
    setup.model.attention_kernel =
        bit(3) ? models::AttentionKernel::fused : models::AttentionKernel::materialized;
    setup.training.recompute = bit(4) ? Recompute::full : Recompute::none;
    setup.model.capacity_factor = bit(4) ? Rational(5, 4) : Rational(1, 2);
    setup.plan.schedule = bit(5) ? PipelineSchedule::zb_h1 : PipelineSchedule::one_f_one_b;
    setup.plan.pp = 2;
    setup.layers_alone();
    const LoweredPlan lowered = setup.lower();
    ASSERT_TRUE(memory_returns(lowered.trace)) << bits;
    const Shard shard = make_shard(setup.model, setup.training, setup.plan, {});
    const Bytes weights = weight_bytes_per_layer(setup.model, shard);
    for (const StepTemplate& each : lowered.trace.templates) {
      if (each.name == "layer.weight") {
        EXPECT_EQ(net_bytes(each), -static_cast<std::int64_t>(weights)) << bits;
      }
    }
  }
}

TEST(Experts, AForwardStepLeavesWhatTheFormulaSays) {
  for (const auto recompute : {Recompute::none, Recompute::full}) {
    for (const int tp : {1, 4}) {
      Mixture setup;
      setup.plan.tp = tp;
      setup.model.attention_kernel = models::AttentionKernel::fused;
      setup.model.capacity_factor = Rational(5, 4);
      setup.training.recompute = recompute;
      const Shard shard = make_shard(setup.model, setup.training, setup.plan, {});
      const Bytes saved = saved_bytes_per_layer(setup.model, shard, recompute);
      // Input, norms and middle; q, k, v and attention's output; statistics; slots in and out, up, gate and
      // activated; gates.
      const auto cut = static_cast<Bytes>(tp);
      const Bytes by_hand = 4 * 64 * 64 * 2 + 64 * (128 + 64) / cut * 2 + 64 * 8 / cut * 4 +
                            160 * (2 * 64 + 3 * 192 / cut) * 2 + 64 * 2 * 4;
      EXPECT_EQ(saved, recompute == Recompute::none ? by_hand : 64 * 64 * 2);
      for (const StepTemplate& each : setup.lower().trace.templates) {
        if (each.name != "layer.forward") continue;
        EXPECT_EQ(net_bytes(each), static_cast<std::int64_t>(saved));
      }
    }
  }
}

TEST(Experts, EveryAxisIsProven) {
  for (const int tp : {1, 3}) {
    for (const int tatp : {1, 2}) {
      for (const int pp : {1, 2}) {
        for (const int zero : {0, 1, 2, 3}) {
          for (const auto sp : {SequenceParallel::none, SequenceParallel::megatron, SequenceParallel::ring}) {
            Mixture setup;
            setup.plan.tp = tp;
            setup.plan.tatp = tatp;
            setup.plan.pp = pp;
            setup.plan.ep = 2;
            setup.plan.zero = zero;
            setup.plan.sp = sp;
            setup.plan.sp_degree = sp == SequenceParallel::ring ? 2 : 1;
            setup.model.attention_kernel = models::AttentionKernel::fused;
            setup.model.capacity_factor = Rational(5, 4);
            setup.training.microbatch = 1;
            setup.training.iterations = 2;
            setup.training.recompute = zero == 3 ? Recompute::full : Recompute::none;
            EXPECT_EQ(faults(setup), "")
                << fmt::format("tp {} tatp {} pp {} zero {} sp {}", tp, tatp, pp, zero, static_cast<int>(sp));
          }
        }
      }
    }
  }
}

/// A partial sum in place of a whole one, and one contribution twice, are found.
TEST(Experts, TheVerifierSeesWrongSums) {
  const auto changed = [](Kernel kernel, const std::function<void(Meaning&)>& change) {
    Mixture setup;
    setup.plan.tp = 2;
    LoweredPlan lowered = setup.lower();
    for (Meaning& meaning : lowered.trace.meanings) {
      if (meaning.kernel == kernel) change(meaning);
    }
    return wafersim::join(verify_trace(lowered.trace, setup.mesh(), 1), "\n");
  };
  const auto whole = [](Meaning& meaning) {
    for (View& view : meaning.reads) view.terms = {};
  };
  EXPECT_NE(changed(Kernel::combine, whole).find("reads 'experts.output'"), std::string::npos);
  EXPECT_NE(changed(Kernel::dispatch_backward, whole).find("reads 'experts.input.gradient'"),
            std::string::npos);
  const auto own_only = [](Meaning& meaning) {
    for (View& view : meaning.writes) view.replica = 0;
  };
  EXPECT_NE(changed(Kernel::linear_weight, own_only).find("which has some of them"), std::string::npos);
  const auto nothing = [](Meaning& meaning) { meaning = {}; };
  EXPECT_NE(changed(Kernel::accumulate, nothing), "") << "the router's part of a gradient is missing";
}

}  // namespace
}  // namespace wafersim::workloads
