#include "workloads/lowering.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "workloads/memory_plan.h"
#include "workloads/plan_ranks.h"
#include "workloads/slot_templates.h"

namespace wafersim::workloads {

namespace {

/// Lowers a plan: programs, resident memory and bindings of all ranks.
class Lowering {
 public:
  Lowering(const LoweringInput& input, const Mapping& mapping)
      : input_(input), plan_(input, mapping), templates_(trace_, plan_) {
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
    const auto [known, fresh] = outlines_.try_emplace({ranks.pp, held_buckets(plan_, ranks, syncs)});
    if (fresh) known->second = make_outline(plan_, ranks, known->first.second);
    return known->second;
  }

  std::uint32_t make_program(const Ranks& ranks) {
    const std::map<std::int32_t, std::uint32_t> syncs = templates_.syncs(ranks);
    const ProgramOutline& outline = outline_of(ranks, syncs);
    std::vector<std::uint32_t> templates;
    for (const OutlineSlot& slot : outline.slots) templates.push_back(templates_.of(slot, ranks, syncs));
    Program& program = trace_.programs.emplace_back(outline.program);
    for (Step& step : program.steps) step.step_template = templates[step.step_template];
    return static_cast<std::uint32_t>(trace_.programs.size() - 1);
  }

  std::uint32_t make_statics(const Ranks& ranks) {
    const auto [found, fresh] =
        statics_.emplace(std::array{ranks.tp, ranks.tatp, ranks.pp, input_.plan.replica(ranks)},
                         static_cast<std::uint32_t>(trace_.statics.size()));
    if (fresh) trace_.statics.push_back({resident_bytes(plan_, ranks), resident(ranks)});
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
  SlotTemplates templates_;
  std::map<std::pair<int, HeldBuckets>, ProgramOutline> outlines_;  ///< by stage and buckets
  std::map<std::array<int, 4>, std::uint32_t> statics_;
};

/// Places the memory of the tiles that are in the trace. Returns what they may hold.
std::vector<TileBound> place_tiles(Trace& trace, const LoweringInput& input) {
  std::vector<TileBound> bounds = bound_tiles(trace, passes_in_flight(pipeline_shape(input.plan, input.training)));
  place_memory(trace, bounds, input.placement, input.hardware);
  return bounds;
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
  MemoryBound bound = memory_bound(trace, place_tiles(trace, input), input.hardware);
  return {std::move(mapping), std::move(trace), std::move(bound)};
}

Trace lower_stages(const LoweringInput& input, const Mapping& mapping, const std::set<int>& whole) {
  Trace trace = Lowering(input, mapping).run([&whole](const Ranks& ranks) {
    return whole.contains(ranks.pp) || is_first_of_stage(ranks);
  });
  if (input.hardware.dram_capacity != 0) place_tiles(trace, input);
  return trace;
}

}  // namespace wafersim::workloads
