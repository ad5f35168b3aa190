#include "workloads/lowering.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "workloads/background_steps.h"
#include "workloads/memory_plan.h"
#include "workloads/model_steps.h"
#include "workloads/plan_ranks.h"
#include "workloads/program_outline.h"

namespace wafersim::workloads {

namespace {

std::vector<std::int32_t> in_flight_by_stage(const LoweringInput& input) {
  const PipelineShape shape = pipeline_shape(input.plan, input.training);
  std::vector<std::int32_t> result;
  for (int stage = 0; stage < shape.stages; ++stage) result.push_back(passes_in_flight(shape, stage));
  return result;
}

/// Lowers a plan: programs, resident memory and bindings of all ranks.
class Lowering {
 public:
  Lowering(const LoweringInput& input, const Mapping& mapping)
      : input_(input), plan_(input, mapping), templates_(trace_, plan_), background_(trace_, plan_) {
    trace_.replicas = input.plan.dp;
    trace_.microbatches = static_cast<int>(input.training.microbatches(input.plan.dp));
    trace_.pipeline_stages = input.plan.pp;
    trace_.iterations = input.training.iterations;
  }

  /// Of the tiles for which `wanted` holds.
  template <class Wanted>
  Trace run(const Wanted& wanted) {
    for (const Ranks& ranks : plan_.all()) {
      if (wanted(ranks)) bind(ranks);
    }
    std::sort(trace_.tiles.begin(), trace_.tiles.end(),
              [](const TileBinding& a, const TileBinding& b) { return a.tile < b.tile; });
    return std::move(trace_);
  }

 private:
  const ProgramOutline& outline_of(const Ranks& ranks, const std::map<std::int32_t, std::uint32_t>& syncs) {
    std::vector<std::int32_t> key{ranks.pp};
    for (const auto& [bucket, sync] : syncs) key.push_back(bucket);
    key.push_back(-2);  // no bucket
    for (const auto& [number, bucket] : plan_.buckets(ranks)) key.push_back(number);
    const auto [known, fresh] = outlines_.try_emplace(std::move(key));
    if (fresh) known->second = make_outline(plan_, ranks, syncs);
    return known->second;
  }

  std::uint32_t make_template(const OutlineSlot& slot, const Ranks& ranks,
                              const std::map<std::int32_t, std::uint32_t>& syncs) {
    switch (slot.what) {
      case OutlineSlot::What::model:
        return templates_.of(slot.step, slot.number, ranks);
      case OutlineSlot::What::sync:
        return syncs.at(slot.number);
      case OutlineSlot::What::gather:
        return background_.gather(slot.number, ranks);
      case OutlineSlot::What::tied_sync:
        return background_.tied_sync(ranks);
      case OutlineSlot::What::optimizer:
        return background_.optimizer(ranks);
    }
    throw InternalError("an unknown slot of an outline");
  }

  std::uint32_t make_program(const Ranks& ranks) {
    const std::map<std::int32_t, std::uint32_t> syncs = background_.syncs(ranks);
    const ProgramOutline& outline = outline_of(ranks, syncs);
    std::vector<std::uint32_t> templates;
    for (const OutlineSlot& slot : outline.slots) templates.push_back(make_template(slot, ranks, syncs));
    Program& program = trace_.programs.emplace_back(outline.program);
    for (Step& step : program.steps) step.step_template = templates[step.step_template];
    return static_cast<std::uint32_t>(trace_.programs.size() - 1);
  }

  std::uint32_t make_statics(const Ranks& ranks) {
    const Replicas all = plan_.replicas(ranks);
    std::uint64_t parameters = 0, shares = 0;
    for (const auto& [layer, bucket] : plan_.buckets(ranks)) {
      parameters += bucket.parameters();
      shares += bucket_share(bucket, all).parameters();
    }
    const Bytes element = element_bytes(input_.training.precision);
    std::array<Bytes, kMemoryClasses> bytes{};
    bytes[static_cast<std::size_t>(MemoryClass::parameters)] =
        (input_.plan.shards_parameters() ? shares : parameters) * element;
    bytes[static_cast<std::size_t>(MemoryClass::gradients)] =
        (input_.plan.shards_gradients() ? shares : parameters) * gradient_bytes(input_.training);
    bytes[static_cast<std::size_t>(MemoryClass::optimizer)] =
        (input_.plan.zero >= 1 ? shares : parameters) *
        optimizer_bytes_per_parameter(input_.training.optimizer, input_.training.precision);
    const auto [found, fresh] =
        statics_.emplace(std::array{ranks.tp, ranks.tatp, ranks.pp, input_.plan.replica(ranks)},
                         static_cast<std::uint32_t>(trace_.statics.size()));
    if (fresh) trace_.statics.push_back({bytes, resident(ranks)});
    return found->second;
  }

  Views resident(const Ranks& ranks) {
    StepEmitter step(trace_, "resident", plan_.context(ranks));
    const Replicas all = plan_.replicas(ranks);
    Views views;
    for (const auto& [layer, whole] : plan_.buckets(ranks)) {
      const Bucket bucket = input_.plan.shards_parameters() ? bucket_share(whole, all) : whole;
      for (const BucketPart& part : bucket.parts) {
        views = views + StepEmitter::of_layer(step.weights({part.region}), part.layer);
      }
    }
    return views;
  }

  void bind(const Ranks& ranks) {
    TileBinding binding;
    binding.tile = plan_.tile(ranks);
    binding.program = make_program(ranks);
    binding.stage = ranks.pp;
    binding.group = input_.plan.replica(ranks) * input_.plan.pp + ranks.pp;
    binding.statics = make_statics(ranks);
    binding.first_peer = static_cast<std::uint32_t>(trace_.peers.size());
    const std::vector<TileId> peers = plan_.peers(ranks);
    trace_.peers.insert(trace_.peers.end(), peers.begin(), peers.end());
    binding.peer_count = static_cast<std::uint32_t>(peers.size());
    trace_.tiles.push_back(binding);
  }

  const LoweringInput& input_;
  Trace trace_;
  PlanRanks plan_;
  ModelTemplates templates_;
  BackgroundTemplates background_;
  std::map<std::vector<std::int32_t>, ProgramOutline> outlines_;  ///< by stage, buckets that are summed, all buckets
  std::map<std::array<int, 4>, std::uint32_t> statics_;
};

/// Places the memory of the tiles that are in the trace.
MemoryBound bound_memory(Trace& trace, const LoweringInput& input) {
  const std::vector<TileBound> bounds = bound_tiles(trace, in_flight_by_stage(input));
  place_memory(trace, bounds, input.placement, input.hardware);
  return memory_bound(trace, bounds, input.hardware);
}

bool is_first_of_stage(const Ranks& ranks) {
  Ranks first;
  first.pp = ranks.pp;
  return ranks == first;
}

}  // namespace

LoweredPlan lower(const LoweringInput& input) {
  validate_plan(input.plan, input.training, input.model, input.mesh);
  Mapping mapping(input.plan, input.mesh);
  Trace trace = Lowering(input, mapping).run([](const Ranks&) { return true; });
  MemoryBound bound = bound_memory(trace, input);
  return {std::move(mapping), std::move(trace), std::move(bound)};
}

MemoryBound first_tiles_bound(const LoweringInput& input, const Mapping& mapping) {
  Trace first = Lowering(input, mapping).run([](const Ranks& ranks) { return ranks == Ranks{}; });
  const MemoryBound bound = bound_memory(first, input);
  if (!bound.fits || input.plan.pp == 1) return bound;
  Trace trace = Lowering(input, mapping).run(is_first_of_stage);
  return bound_memory(trace, input);
}

Trace lower_stages(const LoweringInput& input, const Mapping& mapping, const std::set<int>& whole) {
  Trace trace = Lowering(input, mapping).run([&whole](const Ranks& ranks) {
    return whole.contains(ranks.pp) || is_first_of_stage(ranks);
  });
  if (input.hardware.dram_capacity != 0) {
    place_memory(trace, bound_tiles(trace, in_flight_by_stage(input)), input.placement, input.hardware);
  }
  return trace;
}

}  // namespace wafersim::workloads
