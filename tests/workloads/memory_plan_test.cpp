#include "workloads/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "tests/workloads/lowering_fixture.h"
#include "workloads/step_builder.h"

namespace wafersim::workloads {
namespace {

constexpr std::size_t index(MemoryClass memory_class) { return static_cast<std::size_t>(memory_class); }

/// A trace of one tile whose program has the given foreground steps, each a template's index.
void bind_program(Trace& trace, const std::vector<Step>& steps) {
  trace.programs.push_back({steps, {}});
  trace.statics.push_back({});
  trace.tiles.push_back({.tile = 0, .program = 0, .statics = 0});
}

models::HardwareModel hardware_with(Bytes sram, Bytes dram) {
  models::HardwareModel hardware;
  hardware.sram_capacity = sram;
  hardware.dram_capacity = dram;
  return hardware;
}

MemoryBound bound_memory(const Trace& trace, const std::vector<std::int32_t>& in_flight,
                         const models::HardwareModel& hardware) {
  return memory_bound(trace, bound_tiles(trace, in_flight), hardware);
}

TEST(MemoryBound, AFreeThatAnAllocationWaitsForMakesRoom) {
  Trace trace;
  StepBuilder builder(trace, "chain");
  const OpId first = builder.allocate(MemoryClass::activations, 100, {});
  const OpId freed = builder.free(MemoryClass::activations, 100, {first});
  const OpId second = builder.allocate(MemoryClass::activations, 70, {freed});
  builder.free(MemoryClass::activations, 70, {second});
  bind_program(trace, {{.step_template = builder.finish()}});
  EXPECT_EQ(bound_memory(trace, {1}, hardware_with(1000, 0)).peak_bytes, 100U);
}

TEST(MemoryBound, IndependentAllocationsMayBeLiveTogether) {
  Trace trace;
  StepBuilder builder(trace, "parallel");
  const OpId first = builder.allocate(MemoryClass::activations, 100, {});
  builder.free(MemoryClass::activations, 100, {first});
  const OpId second = builder.allocate(MemoryClass::stream_buffers, 70, {});
  builder.free(MemoryClass::stream_buffers, 70, {second});
  bind_program(trace, {{.step_template = builder.finish()}});
  const MemoryBound bound = bound_memory(trace, {1}, hardware_with(1000, 0));
  EXPECT_EQ(bound.peak_bytes, 170U);
  EXPECT_EQ(bound.by_class[index(MemoryClass::activations)], 100U);
  EXPECT_EQ(bound.by_class[index(MemoryClass::stream_buffers)], 70U);
}

TEST(MemoryBound, StepsAddUpAndStaticsCount) {
  Trace trace;
  StepBuilder forward(trace, "forward");
  forward.allocate(MemoryClass::activations, 30, {});
  const std::uint32_t f = forward.finish();
  StepBuilder backward(trace, "backward");
  const OpId temporary = backward.allocate(MemoryClass::activations, 5, {});
  backward.free(MemoryClass::activations, 35, {temporary});
  const std::uint32_t b = backward.finish();
  bind_program(trace,
               {{.step_template = f}, {.step_template = f}, {.step_template = b}, {.step_template = b}});
  trace.statics[0].bytes[index(MemoryClass::parameters)] = 1000;
  const MemoryBound bound = bound_memory(trace, {2}, hardware_with(1064, 0));
  EXPECT_EQ(bound.peak_bytes, 1065U);
  EXPECT_FALSE(bound.fits);
  EXPECT_TRUE(bound_memory(trace, {2}, hardware_with(1065, 0)).fits);
}

TEST(MemoryBound, MessagesMayBeEarly) {
  Trace trace;
  StepBuilder builder(trace, "receive");
  builder.receive(Axis::pp, 0, 0, 10, {}, {}, MatchScope::microbatch);
  builder.receive(Axis::tp, 0, 0, 7, {});
  bind_program(trace, {{.step_template = builder.finish(), .pass = Pass::forward}});
  trace.tiles[0].stage = 1;
  // Three microbatches are in flight at the stage that sends.
  const MemoryBound bound = bound_memory(trace, {3, 2}, hardware_with(1000, 0));
  EXPECT_EQ(bound.by_class[index(MemoryClass::communication_buffers)], 3 * 10U + 2 * 7U);
}

TEST(MemoryBound, OnlyPartialSumsOfAReductionAreEarly) {
  Trace trace;
  StepBuilder builder(trace, "sum");
  const std::uint32_t tensor = builder.tensor("gradients");
  builder.receive(Axis::dp, 0, 0, 10, {}, {.tensor = tensor, .partial = true});
  builder.receive(Axis::dp, 0, 1, 10, {}, {.tensor = tensor});
  const Step sync = {.step_template = builder.finish(), .kind = StepKind::gradient_sync, .background = true};
  bind_program(trace, {sync, sync, sync});
  EXPECT_EQ(bound_memory(trace, {1}, hardware_with(1000, 0)).peak_bytes, 30U);
}

TEST(MemoryBound, DetachedSendsKeepTheirBuffers) {
  Trace trace;
  StepBuilder builder(trace, "send");
  const OpId buffer = builder.allocate(MemoryClass::activations, 10, {});
  const OpId send = builder.send(Axis::pp, 0, 0, 10, {buffer}, {}, MatchScope::microbatch);
  builder.detach(send);
  builder.detach(builder.free(MemoryClass::activations, 10, {send}));
  const std::uint32_t step = builder.finish();
  bind_program(trace, std::vector<Step>(8, {.step_template = step, .pass = Pass::forward}));
  // The buffer being filled, and one for each microbatch in flight.
  EXPECT_EQ(bound_memory(trace, {4}, hardware_with(1000, 0)).peak_bytes, 50U);
}

TEST(MemoryBound, GpipeKeepsEveryMicrobatch) {
  LoweringFixture setup;
  setup.layers_alone();
  setup.plan.pp = 4;
  setup.training.global_batch = 64;
  const Bytes one_f_one_b = setup.lower().memory.by_class[index(MemoryClass::activations)];
  setup.plan.schedule = PipelineSchedule::gpipe;
  const Bytes gpipe = setup.lower().memory.by_class[index(MemoryClass::activations)];
  EXPECT_GT(gpipe, 7 * one_f_one_b);  // 32 microbatches against 4, plus the workspace of a step
  EXPECT_LT(gpipe, 9 * one_f_one_b);
}

/// One execution of a step as a tile does it, but for the order of what may run at the same time, which is
/// random.
class StepReplay {
 public:
  StepReplay(const StepTemplate& step, std::int64_t& held)
      : step_(step), held_(held), done_(step.ops.size()) {}

  /// Returns the most activations that are held once all allocations and frees that can act have done so.
  std::int64_t run(RandomStream& random) {
    std::int64_t peak = settle();
    for (std::vector<std::size_t> ready = ready_operations(); !ready.empty(); ready = ready_operations()) {
      done_[ready[random.below(ready.size())]] = true;
      peak = std::max(peak, settle());
    }
    EXPECT_TRUE(std::all_of(done_.begin(), done_.end(), [](bool done) { return done; }));
    return peak;
  }

 private:
  static bool is_memory(const Op& op) { return op.kind == OpKind::allocate || op.kind == OpKind::free; }

  bool can_run(std::size_t id) const {
    const auto first = step_.dependencies.begin() + step_.ops[id].first_dependency;
    return std::all_of(first, first + step_.ops[id].dependency_count,
                       [&](std::uint32_t d) { return done_[d]; });
  }

  /// Dependencies point backwards, so that one pass finds all that can act.
  std::int64_t settle() {
    for (std::size_t id = 0; id < step_.ops.size(); ++id) {
      const Op& op = step_.ops[id];
      if (done_[id] || !is_memory(op) || !can_run(id)) continue;
      done_[id] = true;
      if (op.memory_class != MemoryClass::activations) continue;
      held_ += static_cast<std::int64_t>(op.bytes) * (op.kind == OpKind::allocate ? 1 : -1);
    }
    return held_;
  }

  /// Of each engine only the next operation in program order.
  std::vector<std::size_t> ready_operations() const {
    std::vector<std::size_t> ready;
    std::array<bool, 2> engine_taken{};
    for (std::size_t id = 0; id < step_.ops.size(); ++id) {
      const Op& op = step_.ops[id];
      if (done_[id] || is_memory(op)) continue;
      if (op.kind == OpKind::matrix || op.kind == OpKind::vector) {
        if (std::exchange(engine_taken[op.kind == OpKind::matrix ? 0 : 1], true)) continue;
      }
      if (can_run(id)) ready.push_back(id);
    }
    return ready;
  }

  const StepTemplate& step_;
  std::int64_t& held_;
  std::vector<bool> done_;
};

std::int64_t replayed_peak(const Trace& trace, const Program& program, RandomStream& random) {
  std::int64_t held = 0, peak = 0;
  for (const Step& step : program.steps) {
    peak = std::max(peak, StepReplay(trace.templates[step.step_template], held).run(random));
  }
  return peak;
}

TEST(MemoryBound, NoOrderOfOperationsExceedsIt) {
  RandomStream random(1, "replay");
  for (const auto recompute :
       {models::Recompute::none, models::Recompute::selective, models::Recompute::full}) {
    LoweringFixture setup;
    setup.training.recompute = recompute;
    setup.training.global_batch = 6;
    setup.plan.tp = 2;
    setup.plan.pp = 2;
    setup.plan.sp = SequenceParallel::megatron;
    const LoweredPlan lowered = setup.lower();
    const auto bound = static_cast<std::int64_t>(lowered.memory.by_class[index(MemoryClass::activations)]);
    std::int64_t highest = 0;
    for (int run = 0; run < 10; ++run) {
      for (const Program& program : lowered.trace.programs) {
        highest = std::max(highest, replayed_peak(lowered.trace, program, random));
      }
    }
    EXPECT_LE(highest, bound);
    EXPECT_GT(highest, bound * 2 / 3);  // a bound that is of use
  }
}

TileBound tile_bound(const std::array<Bytes, kMemoryClasses>& by_class) {
  TileBound bound{by_class, 0, -1};
  for (const Bytes bytes : by_class) bound.total += bytes;
  return bound;
}

/// Bytes of each class in SRAM.
std::array<Bytes, kMemoryClasses> in_sram(const MemoryLayout& layout, const TileBound& bound) {
  std::array<Bytes, kMemoryClasses> result{};
  for (std::size_t c = 0; c < kMemoryClasses; ++c) result[c] = layout[c].in_sram(bound.by_class[c]);
  return result;
}

TEST(Placement, FillsSramInOrderAndSplitsWhatDoesNotFit) {
  // parameters, gradients, optimizer, activations, stream, communication
  const TileBound bound = tile_bound({100, 128, 600, 300, 20, 50});
  const auto sram = [&](Bytes capacity) {
    return in_sram(choose_layout({}, bound, hardware_with(capacity, 10000)), bound);
  };
  using Parts = std::array<Bytes, kMemoryClasses>;
  EXPECT_EQ(sram(10), (Parts{0, 0, 0, 0, 10, 0}));
  EXPECT_EQ(sram(20 + 49), (Parts{49, 0, 0, 0, 20, 0}));  // a message lands in one memory
  EXPECT_EQ(sram(20 + 50 + 100 + 32), (Parts{100, 32, 0, 0, 20, 50}));
  EXPECT_EQ(sram(598 + 300), (Parts{100, 128, 300, 300, 20, 50}));
  EXPECT_EQ(sram(5000), bound.by_class);
}

TEST(Placement, NamedClassesComeFirst) {
  const TileBound bound = tile_bound({100, 100, 450, 300, 0, 50});
  const PlacementSpec placement = {{MemoryClass::optimizer, MemoryPlace::sram},
                                   {MemoryClass::communication_buffers, MemoryPlace::dram}};
  const auto sram = in_sram(choose_layout(placement, bound, hardware_with(500, 10000)), bound);
  EXPECT_EQ(sram, (std::array<Bytes, kMemoryClasses>{50, 0, 450, 0, 0, 0}));
}

TEST(Placement, WithoutDramEverythingIsInSram) {
  const TileBound bound = tile_bound({1000, 1000, 1000, 1000, 1000, 1000});
  EXPECT_EQ(choose_layout({}, bound, hardware_with(500, 0)), MemoryLayout{});
  const PlacementSpec impossible = {{MemoryClass::optimizer, MemoryPlace::dram}};
  EXPECT_THROW(choose_layout(impossible, bound, hardware_with(500, 0)), PlanError);
}

/// However ragged the numbers: what may lie in SRAM at once fills it and never exceeds it.
TEST(Placement, QuotasFillTheSram) {
  RandomStream random(1, "quotas");
  for (int i = 0; i < 2000; ++i) {
    std::array<Bytes, kMemoryClasses> bytes{};
    for (Bytes& each : bytes) each = random.below(3) == 0 ? 0 : random.below(Bytes{1} << (1 + random.below(36)));
    const TileBound bound = tile_bound(bytes);
    const Bytes capacity = random.below(bound.total + 2);
    const MemoryLayout layout = choose_layout({}, bound, hardware_with(capacity, Bytes{1} << 40));
    Bytes sram = 0;
    for (const Bytes each : in_sram(layout, bound)) sram += each;
    const Bytes messages = bytes[static_cast<std::size_t>(MemoryClass::communication_buffers)];
    const bool messages_fit = in_sram(layout, bound).back() == messages;
    EXPECT_EQ(sram, std::min(capacity, bound.total - (messages_fit ? 0 : messages)));
  }
}

TEST(SramQuota, SpreadsWhatIsBeyondItEvenly) {
  const SramQuota quota(300);
  EXPECT_EQ(quota.through_dram(1000, 0), 0U);
  EXPECT_EQ(quota.through_dram(1000, 300), 0U);
  EXPECT_EQ(quota.through_dram(1000, 400), 250U);
  EXPECT_EQ(quota.through_dram(1, 400), 1U);  // rounded up
  EXPECT_EQ(quota.through_dram(Bytes{1} << 40, Bytes{600} << 32), (Bytes{1} << 40) - (Bytes{1} << 40) / (Bytes{2} << 32));
  EXPECT_EQ(SramQuota(0).through_dram(7, 0), 7U);
  EXPECT_EQ(SramQuota().through_dram(7, Bytes{1} << 50), 0U);
  EXPECT_EQ(SramQuota().in_sram(Bytes{1} << 50), Bytes{1} << 50);
}

TEST(Placement, TilesThatMayHoldDifferentAmountsHaveQuotasOfTheirOwn) {
  LoweringFixture setup;
  setup.layers_alone();
  setup.plan.pp = 2;  // the first stage holds two microbatches, the last one
  setup.wafer.dram = models::DramSpec{{1ULL << 34}, {Rational(64), true}, {1, 1}};
  setup.wafer.sram.capacity = {1'200'000};
  const LoweredPlan lowered = setup.lower();
  EXPECT_TRUE(lowered.memory.fits);
  ASSERT_EQ(lowered.trace.layouts.size(), 2U);
  EXPECT_EQ(lowered.memory.peak_sram_bytes, 1'200'000U);
}

/// The step in which most may be held is named, with what is held where.
TEST(MemoryBound, OverflowNamesTileStepAndClasses) {
  LoweringFixture setup;
  setup.wafer.sram.capacity = {1'000'000};
  const LoweredPlan lowered = setup.lower();
  ASSERT_TRUE(lowered.memory.overflow.has_value());
  const MemoryBound::Overflow& overflow = *lowered.memory.overflow;
  EXPECT_FALSE(overflow.dram);
  EXPECT_EQ(overflow.tile, lowered.memory.peak_tile);
  EXPECT_EQ(overflow.held, lowered.memory.peak_bytes);
  EXPECT_EQ(overflow.capacity, 1'000'000U);
  EXPECT_EQ(overflow.by_class, lowered.memory.by_class);
  EXPECT_NE(overflow.step.find("microbatch 0"), std::string::npos) << overflow.step;
}

}  // namespace
}  // namespace wafersim::workloads
