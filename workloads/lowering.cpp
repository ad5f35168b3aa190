#include "workloads/lowering.h"

#include <algorithm>
#include <map>
#include <utility>

#include "workloads/background_steps.h"
#include "workloads/memory_plan.h"
#include "workloads/model_steps.h"
#include "workloads/plan_ranks.h"

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
  std::uint32_t make_program(const Ranks& ranks) {
    const std::int32_t microbatches = pipeline_shape(input_.plan, input_.training).microbatches;
    const std::vector<ModelStep> steps = model_steps(plan_, ranks);
    const auto sync = sync_templates(trace_, plan_, ranks);
    const bool every_microbatch = input_.plan.shards_gradients();
    ProgramBuilder program;
    for (int iteration = 0; iteration < input_.training.iterations; ++iteration) {
      program.start_iteration(iteration);
      ParameterPrefetch prefetch = parameter_prefetch(program, trace_, plan_, ranks, steps);
      GradientBuffers buffers;
      for (std::size_t number = 0; number < steps.size(); ++number) {
        const ModelStep& step = steps[number];
        const std::vector<std::int32_t> used = used_buckets(input_.model, step.kind, step.layer);
        std::vector<std::uint32_t> waits = prefetch.waits_of(number);
        if (every_microbatch && fills_gradients(input_.plan, step)) buffers.wait(used, waits);
        program.foreground({.step_template = templates_.of(step, ranks),
                            .kind = step.kind,
                            .pass = step.slot.pass,
                            .layer = step.layer,
                            .microbatch = step.slot.microbatch},
                           used, waits);
        if (!every_microbatch && step.slot.microbatch != microbatches - 1) continue;
        for (const std::int32_t bucket : completed_buckets(plan_, step)) {
          const auto found = sync.find(bucket);
          if (found == sync.end()) continue;
          buffers.add(bucket, program.gradient_sync({.step_template = found->second,
                                                     .kind = StepKind::gradient_sync,
                                                     .layer = bucket,
                                                     .microbatch = every_microbatch ? step.slot.microbatch : -1}));
        }
      }
      add_tied_gradient_sync(program, trace_, plan_, ranks);
      add_update(program, trace_, plan_, ranks);
    }
    trace_.programs.push_back(program.finish());
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
  std::map<std::array<int, 4>, std::uint32_t> statics_;
};

}  // namespace

LoweredPlan lower(const LoweringInput& input) {
  validate_plan(input.plan, input.training, input.model, input.mesh);
  Mapping mapping(input.plan, input.mesh);
  Trace trace = Lowering(input, mapping).run([](const Ranks&) { return true; });
  const std::vector<TileBound> bounds = bound_tiles(trace, in_flight_by_stage(input));
  place_memory(trace, bounds, input.placement, input.hardware);
  MemoryBound bound = memory_bound(trace, bounds, input.hardware);
  return {std::move(mapping), std::move(trace), std::move(bound)};
}

Trace lower_stages(const LoweringInput& input, const Mapping& mapping, const std::set<int>& whole) {
  Trace trace = Lowering(input, mapping).run([&whole](const Ranks& ranks) {
    Ranks first;
    first.pp = ranks.pp;
    return whole.contains(ranks.pp) || ranks == first;
  });
  if (input.hardware.dram_capacity != 0) {
    place_memory(trace, bound_tiles(trace, in_flight_by_stage(input)), input.placement, input.hardware);
  }
  return trace;
}

}  // namespace wafersim::workloads
