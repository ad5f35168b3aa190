#include "workloads/lowering.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "workloads/buckets.h"
#include "workloads/end_steps.h"
#include "workloads/memory_plan.h"
#include "workloads/peer_layout.h"
#include "workloads/program_builder.h"
#include "workloads/replica_shares.h"
#include "workloads/schedule.h"

namespace wafersim::workloads {

namespace {

std::vector<std::int32_t> in_flight_by_stage(const LoweringInput& input) {
  const PipelineShape shape = pipeline_shape(input.plan, input.training);
  std::vector<std::int32_t> result;
  for (int stage = 0; stage < shape.stages; ++stage) result.push_back(passes_in_flight(shape, stage));
  return result;
}

/// A foreground step of the model.
struct ModelStep {
  StepKind kind = StepKind::layer;
  ScheduleSlot slot;
  std::int32_t layer = -1;
};

/// Lowers a plan under one placement of the memory classes.
class Lowering {
 public:
  Lowering(const LoweringInput& input, const Mapping& mapping,
           const std::array<bool, kMemoryClasses>& in_dram)
      : input_(input), mapping_(mapping), peers_(input.plan, mapping), parameters_(input.model, input.plan) {
    trace_.in_dram = in_dram;
    trace_.replicas = input.plan.dp;
    trace_.microbatches = static_cast<int>(input.training.microbatches(input.plan.dp));
    trace_.pipeline_stages = input.plan.pp;
    trace_.iterations = input.training.iterations;
    for (int ep = 0; ep < input.plan.ep; ++ep) {
      for (int sp = 0; sp < input.plan.sp_degree; ++sp) {
        for (int tatp = 0; tatp < input.plan.tatp; ++tatp) {
          for (int tp = 0; tp < input.plan.tp; ++tp) contexts_.push_back(make_context({tp, tatp, sp, ep}));
        }
      }
    }
    const std::vector<Range> sharers = kv_sharers();
    for (RankContext& context : contexts_) context.kv_sharers = sharers;
  }

  Trace run() {
    Ranks ranks;
    for (ranks.dp = 0; ranks.dp < input_.plan.degree(Axis::dp); ++ranks.dp) {
      for (ranks.pp = 0; ranks.pp < input_.plan.pp; ++ranks.pp) {
        for (const RankContext& each : contexts_) {
          const InnerRank& inner = each.shard.rank;
          ranks.tp = inner.tp;
          ranks.tatp = inner.tatp;
          ranks.sp = inner.sp;
          ranks.ep = inner.ep;
          bind(ranks);
        }
      }
    }
    std::sort(trace_.tiles.begin(), trace_.tiles.end(),
              [](const TileBinding& a, const TileBinding& b) { return a.tile < b.tile; });
    return std::move(trace_);
  }

 private:
  RankContext make_context(const InnerRank& rank) const {
    return {.input = input_,
            .layout = parameters_,
            .shard = make_shard(input_.model, input_.training, input_.plan, rank),
            .tp = peers_.group(Axis::tp, rank.tp),
            .tatp = peers_.group(Axis::tatp, rank.tatp),
            .sp = peers_.group(Axis::sp, rank.sp),
            .ep = peers_.group(Axis::ep, rank.ep),
            .previous_stage = peers_.previous_stage(),
            .next_stage = peers_.next_stage(),
            .in_dram = trace_.in_dram};
  }

  const RankContext& context(const Ranks& ranks) const {
    const PlanSpec& plan = input_.plan;
    const int outer = ranks.ep * plan.sp_degree + ranks.sp;
    return contexts_[static_cast<std::size_t>((outer * plan.tatp + ranks.tatp) * plan.tp + ranks.tp)];
  }

  /// The tensor-parallel ranks that hold each kv head, when these are more than the heads.
  std::vector<Range> kv_sharers() const {
    std::vector<Range> result;
    if (input_.plan.tp <= input_.model.kv_heads) return result;
    result.resize(static_cast<std::size_t>(input_.model.kv_heads));
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(input_.plan.tp); ++rank) {
      const Range& heads = contexts_[rank].shard.kv_heads;
      for (std::uint64_t head = heads.first; head < heads.end(); ++head) {
        if (result[head].count++ == 0) result[head].first = rank;
      }
    }
    return result;
  }

  Replicas replicas(const Ranks& ranks) const { return peers_.replicas(ranks); }
  bool ties(const Ranks& ranks) const { return ties_across_stages(input_) && (is_first(ranks) || is_last(ranks)); }

  const Shard& shard(const Ranks& ranks) const { return context(ranks).shard; }
  bool is_first(const Ranks& ranks) const { return ranks.pp == 0; }
  bool is_last(const Ranks& ranks) const { return ranks.pp == input_.plan.pp - 1; }
  bool has_embedding(const Ranks& ranks) const { return input_.model.embedding && is_first(ranks); }
  bool has_head(const Ranks& ranks) const { return input_.model.head && is_last(ranks); }
  LayerRange layers(const Ranks& ranks, int chunk) const {
    return virtual_stage_layers(input_.plan, input_.model.layers, chunk * input_.plan.pp + ranks.pp);
  }
  int last_chunk() const { return input_.plan.virtual_stages - 1; }
  bool embeds(const Ranks& ranks, int chunk) const { return has_embedding(ranks) && chunk == 0; }
  bool heads(const Ranks& ranks, int chunk) const { return has_head(ranks) && chunk == last_chunk(); }

  bool replicates_table() const { return input_.plan.embedding == EmbeddingTable::replicated; }
  std::map<std::int32_t, Bucket> buckets(const Ranks& ranks) const {
    return parameter_buckets(input_, parameters_, context(ranks), ranks.pp);
  }

  template <class Emit>
  std::uint32_t make_template(const char* name, const Ranks& ranks, Emit&& emit) {
    StepEmitter step(trace_, name, context(ranks));
    emit(step);
    return step.finish();
  }

  /// Where a layer of a chunk stands. Chunks of a pipeline of one stage follow each other on their tile.
  LayerEdges edges(const Ranks& ranks, int chunk, std::int32_t layer) const {
    LayerEdges result;
    const LayerRange range = layers(ranks, chunk);
    const EdgeKind neighbour = input_.plan.pp > 1 ? EdgeKind::remote : EdgeKind::inside;
    if (layer == range.first) {
      const bool begins = is_first(ranks) && chunk == 0;
      result.input = !begins ? neighbour : has_embedding(ranks) ? EdgeKind::inside : EdgeKind::open;
      if (result.input == EdgeKind::remote) result.input_chunk = is_first(ranks) ? chunk - 1 : chunk;
    }
    if (layer == range.last()) {
      const bool ends = is_last(ranks) && chunk == last_chunk();
      result.output = !ends ? neighbour : has_head(ranks) ? EdgeKind::inside : EdgeKind::open;
      if (result.output == EdgeKind::remote) result.output_chunk = chunk;
    }
    return result;
  }

  /// Writes a step of the model: what zero 2 and 3 hold and give up goes around `emit`. `written`: the buckets whose
  /// gradients it is the first to write; `used`: those whose weights it uses.
  template <class Emit>
  std::uint32_t make_model_template(const char* name, const Ranks& ranks, const std::vector<Bucket>& written,
                                    const std::vector<Bucket>& used, SeenFrom from, Emit&& emit) {
    return make_template(name, ranks, [&](StepEmitter& step) {
      if (input_.plan.shards_gradients()) {
        for (const Bucket& bucket : written) hold_gradients(step, bucket);
      }
      emit(step);
      if (!input_.plan.shards_parameters()) return;
      for (const Bucket& bucket : used) release_parameters(step, replicas(ranks), bucket, from);
    });
  }

  std::uint32_t make_layer_template(Pass pass, const Ranks& ranks, const LayerEdges& at, std::int32_t layer) {
    const models::Recompute recompute = input_.training.recompute;
    const std::vector<Bucket> own = {buckets(ranks).at(layer)};
    const bool splits = splits_backward(input_.plan.schedule);
    if (pass == Pass::weight) {
      return make_model_template("layer.weight", ranks, own, {}, SeenFrom::own_step, emit_layer_weight);
    }
    if (pass == Pass::forward) {
      return make_model_template("layer.forward", ranks, {}, own, SeenFrom::own_step,
                                 [&](StepEmitter& step) { emit_layer_forward(step, at, recompute); });
    }
    // Norms have their gradients in the backward step even where the weights have a step of their own, whose buffer
    // theirs, which are small, are counted in.
    const auto weights = splits ? WeightGradients::own_step : WeightGradients::backward_step;
    return make_model_template("layer.backward", ranks, splits ? std::vector<Bucket>{} : own, own, SeenFrom::own_step,
                               [&](StepEmitter& step) { emit_layer_backward(step, at, recompute, weights); });
  }

  std::uint32_t make_end_template(StepKind kind, Pass pass, const Ranks& ranks) {
    const bool forward = pass == Pass::forward;
    const std::map<std::int32_t, Bucket> all = buckets(ranks);
    std::vector<Bucket> used, written;
    for (const std::int32_t number : used_buckets(input_.model, kind, -1)) {
      const auto found = all.find(number);
      if (found == all.end()) continue;
      used.push_back(found->second);
      // The head is the first to write to a table that is tied on its stage.
      const bool by_head = kind == StepKind::embedding && number == -1 && has_head(ranks) && input_.model.tied_embeddings;
      if (!forward && !by_head) written.push_back(found->second);
    }
    if (kind == StepKind::head && !input_.model.tied_embeddings) {
      // The embedding's weights are not the head's.
      std::erase_if(used, [](const Bucket& bucket) { return bucket.layer == -1; });
      std::erase_if(written, [](const Bucket& bucket) { return bucket.layer == -1; });
    }
    // The embedding's parameters are those of its own step's layer.
    if (kind == StepKind::embedding) {
      for (Bucket& bucket : used) bucket.layer = -1;
    }
    const SeenFrom from = kind == StepKind::embedding ? SeenFrom::own_step : SeenFrom::elsewhere;
    const auto make = [&](const char* name, auto emit) {
      return make_model_template(name, ranks, written, used, from, emit);
    };
    if (kind == StepKind::embedding) {
      const auto look_up = replicates_table() ? emit_replicated_embedding_forward : emit_embedding_forward;
      const auto scatter = replicates_table() ? emit_replicated_embedding_backward : emit_embedding_backward;
      return make(forward ? "embedding.forward" : "embedding.backward", forward ? look_up : scatter);
    }
    return make(forward ? "head.forward" : "head.backward", forward ? emit_head_forward : emit_head_backward);
  }

  /// The template of a step of the model itself. Layers with equal edges share it; a weight step has none.
  std::uint32_t model_template(StepKind kind, const ScheduleSlot& slot, const Ranks& ranks, std::int32_t layer) {
    const bool has_edges = kind == StepKind::layer && slot.pass != Pass::weight;
    const LayerEdges at = has_edges ? edges(ranks, slot.chunk, layer) : LayerEdges{};
    // Where parameters are shared out, replicas differ in what they give up.
    const int replica = input_.plan.shards_parameters() ? input_.plan.replica(ranks) : 0;
    const auto key = std::tuple(kind, slot.pass, at, context(ranks).shard.rank, replica);
    const auto known = templates_.find(key);
    if (known != templates_.end()) return known->second;
    const std::uint32_t made = kind == StepKind::layer ? make_layer_template(slot.pass, ranks, at, layer)
                                                       : make_end_template(kind, slot.pass, ranks);
    templates_.emplace(key, made);
    return made;
  }

  std::uint64_t updated_parameters(const Ranks& ranks) const {
    const Replicas all = replicas(ranks);
    std::uint64_t total = 0;
    for (const auto& [layer, bucket] : buckets(ranks)) {
      total += (input_.plan.zero == 0 ? bucket : bucket_share(bucket, all)).parameters();
    }
    return total;
  }

  /// The steps of the model in one iteration of a tile.
  std::vector<ModelStep> model_steps(const Ranks& ranks) const {
    std::vector<ModelStep> steps;
    for (const ScheduleSlot& slot : schedule_order(pipeline_shape(input_.plan, input_.training), ranks.pp)) {
      const LayerRange range = layers(ranks, slot.chunk);
      const bool forward = slot.pass == Pass::forward;
      // Embedding and head make all their gradients in the backward pass: the embedding has no others, and the head
      // would have to keep the gradients of its logits.
      const bool ends = slot.pass != Pass::weight;
      const bool first = ends && embeds(ranks, slot.chunk), last = ends && heads(ranks, slot.chunk);
      if (forward ? first : last) steps.push_back({forward ? StepKind::embedding : StepKind::head, slot, -1});
      for (std::int32_t i = 0; i < range.count; ++i) {
        steps.push_back({StepKind::layer, slot, forward ? range.first + i : range.last() - i});
      }
      if (forward ? last : first) steps.push_back({forward ? StepKind::head : StepKind::embedding, slot, -1});
    }
    return steps;
  }

  /// Whether a step makes gradients of weights.
  bool fills_gradients(const ModelStep& step) const {
    if (step.slot.pass == Pass::forward) return false;
    const bool splits = splits_backward(input_.plan.schedule);
    return step.kind != StepKind::layer || !splits || step.slot.pass == Pass::weight;
  }

  /// The buckets whose gradients are complete for their microbatch after a step.
  std::vector<std::int32_t> completed_buckets(const ModelStep& step) const {
    if (!fills_gradients(step)) return {};
    std::vector<std::int32_t> result = used_buckets(input_.model, step.kind, step.layer);
    // A table that is tied on one stage is complete after the embedding only.
    if (step.kind == StepKind::head) std::erase(result, -1);
    return result;
  }

  std::map<std::int32_t, std::uint32_t> sync_templates(const Ranks& ranks) {
    std::map<std::int32_t, std::uint32_t> result;
    const Replicas all = replicas(ranks);
    for (const auto& [layer, bucket] : buckets(ranks)) {
      StepEmitter step(trace_, "gradient_sync", context(ranks));
      if (all.all.size == 1 && !needs_inner_sync(step, bucket)) continue;
      emit_gradient_sync(step, all, bucket);
      result[layer] = step.finish();
    }
    return result;
  }

  /// On the ends of a pipeline with tied embeddings. Both ends use layer -1, so that their messages match.
  void add_tied_gradient_sync(ProgramBuilder& program, const Ranks& ranks) {
    if (!ties(ranks)) return;
    const Group ends = peers_.ends(is_first(ranks));
    const Bucket bucket = buckets(ranks).at(tied_bucket(input_.model));
    program.tied_gradient_sync(
        {.step_template = make_template(
             "gradient_sync.tied", ranks,
             [&](StepEmitter& step) { emit_tied_gradient_sync(step, replicas(ranks), ends, bucket); }),
         .kind = StepKind::gradient_sync});
  }

  /// The optimizer and, with zero 1 and 2, the gathers of the weights that it updated.
  void add_update(ProgramBuilder& program, const Ranks& ranks) {
    if (input_.training.optimizer == Optimizer::none) return;
    std::vector<Bucket> all;
    for (const auto& [layer, bucket] : buckets(ranks)) all.push_back(bucket);
    program.optimizer(
        {.step_template = make_template(
             "optimizer", ranks,
             [&](StepEmitter& step) { emit_optimizer(step, replicas(ranks), all, norm_groups(ranks)); }),
         .kind = StepKind::optimizer});
    if (!input_.plan.shards_optimizer() || input_.plan.shards_parameters()) return;
    for (const auto& [layer, bucket] : buckets(ranks)) {
      const std::uint32_t gather = make_template("parameter_gather", ranks, [&](StepEmitter& step) {
        emit_parameter_gather(step, replicas(ranks), bucket);
      });
      program.parameter_gather({.step_template = gather, .kind = StepKind::parameter_gather, .layer = layer});
    }
  }

  /// Over which groups the gradient norm is summed. Replicas hold the same gradients unless they share them out, but for
  /// those of experts.
  std::vector<Group> norm_groups(const Ranks& ranks) const {
    std::vector<Group> result{context(ranks).tp, context(ranks).tatp, context(ranks).sp,
                              peers_.group(Axis::pp, ranks.pp)};
    result.push_back(input_.plan.shards_optimizer() ? replicas(ranks).all : context(ranks).ep);
    return result;
  }

  std::uint32_t make_program(const Ranks& ranks) {
    const std::int32_t microbatches = pipeline_shape(input_.plan, input_.training).microbatches;
    const std::vector<ModelStep> steps = model_steps(ranks);
    const auto sync = sync_templates(ranks);
    const bool every_microbatch = input_.plan.shards_gradients();
    ProgramBuilder program;
    for (int iteration = 0; iteration < input_.training.iterations; ++iteration) {
      program.start_iteration(iteration);
      ParameterPrefetch prefetch = parameter_prefetch(program, ranks, steps);
      GradientBuffers buffers;
      for (std::size_t number = 0; number < steps.size(); ++number) {
        const ModelStep& step = steps[number];
        const std::vector<std::int32_t> used = used_buckets(input_.model, step.kind, step.layer);
        std::vector<std::uint32_t> waits = prefetch.waits_of(number);
        if (every_microbatch && fills_gradients(step)) buffers.wait(used, waits);
        program.foreground({.step_template = model_template(step.kind, step.slot, ranks, step.layer),
                            .kind = step.kind,
                            .pass = step.slot.pass,
                            .layer = step.layer,
                            .microbatch = step.slot.microbatch},
                           used, waits);
        if (!every_microbatch && step.slot.microbatch != microbatches - 1) continue;
        for (const std::int32_t bucket : completed_buckets(step)) {
          const auto found = sync.find(bucket);
          if (found == sync.end()) continue;
          buffers.add(bucket, program.gradient_sync({.step_template = found->second,
                                                     .kind = StepKind::gradient_sync,
                                                     .layer = bucket,
                                                     .microbatch = every_microbatch ? step.slot.microbatch : -1}));
        }
      }
      add_tied_gradient_sync(program, ranks);
      add_update(program, ranks);
    }
    trace_.programs.push_back(program.finish());
    return static_cast<std::uint32_t>(trace_.programs.size() - 1);
  }

  /// The gathers of zero 3; none otherwise.
  ParameterPrefetch parameter_prefetch(ProgramBuilder& program, const Ranks& ranks,
                                       const std::vector<ModelStep>& steps) {
    ParameterPrefetch prefetch(program, input_.plan.overlap_far);
    if (!input_.plan.shards_parameters()) return prefetch;
    const std::map<std::int32_t, Bucket> held = buckets(ranks);
    std::map<std::int32_t, std::uint32_t> made;
    for (const ModelStep& step : steps) {
      std::vector<Step> gathers;
      for (const std::int32_t number : used_buckets(input_.model, step.kind, step.layer)) {
        const auto found = held.find(number);
        const bool elsewhere = step.kind == StepKind::head && number == -1 && !input_.model.tied_embeddings;
        if (found == held.end() || elsewhere || step.slot.pass == Pass::weight) continue;
        const auto [known, fresh] = made.emplace(number, 0U);
        if (fresh) {
          known->second = make_template("parameter_gather", ranks, [&](StepEmitter& emitter) {
            emit_parameter_gather(emitter, replicas(ranks), found->second);
          });
        }
        gathers.push_back({.step_template = known->second,
                           .kind = StepKind::parameter_gather,
                           .pass = step.slot.pass,
                           .layer = number,
                           .microbatch = step.slot.microbatch});
      }
      prefetch.add(std::move(gathers));
    }
    return prefetch;
  }

  std::uint32_t make_statics(const Ranks& ranks) {
    const Replicas all = replicas(ranks);
    std::uint64_t parameters = 0, shares = 0;
    for (const auto& [layer, bucket] : buckets(ranks)) {
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
        updated_parameters(ranks) *
        optimizer_bytes_per_parameter(input_.training.optimizer, input_.training.precision);
    const auto [found, fresh] =
        statics_.emplace(std::array{ranks.tp, ranks.tatp, ranks.pp, input_.plan.replica(ranks)}, static_cast<std::uint32_t>(trace_.statics.size()));
    if (fresh) trace_.statics.push_back({bytes, resident(ranks)});
    return found->second;
  }

  Views resident(const Ranks& ranks) {
    StepEmitter step(trace_, "resident", context(ranks));
    const Replicas all = replicas(ranks);
    Views views;
    for (const auto& [layer, whole] : buckets(ranks)) {
      const Bucket bucket = input_.plan.shards_parameters() ? bucket_share(whole, all) : whole;
      for (const BucketPart& part : bucket.parts) {
        views = views + StepEmitter::of_layer(step.weights({part.region}), part.layer);
      }
    }
    return views;
  }

  void bind(const Ranks& ranks) {
    TileBinding binding;
    binding.tile = mapping_.tile(ranks);
    binding.program = make_program(ranks);
    binding.stage = ranks.pp;
    binding.group = input_.plan.replica(ranks) * input_.plan.pp + ranks.pp;
    binding.statics = make_statics(ranks);
    binding.first_peer = static_cast<std::uint32_t>(trace_.peers.size());
    const std::vector<TileId> peers = peers_.peers(ranks, ties(ranks));
    trace_.peers.insert(trace_.peers.end(), peers.begin(), peers.end());
    binding.peer_count = static_cast<std::uint32_t>(trace_.peers.size()) - binding.first_peer;
    trace_.tiles.push_back(binding);
  }

  const LoweringInput& input_;
  const Mapping& mapping_;
  PeerLayout peers_;
  ParameterLayout parameters_;
  Trace trace_;
  std::vector<RankContext> contexts_;
  std::map<std::tuple<StepKind, Pass, LayerEdges, InnerRank, int>, std::uint32_t> templates_;
  std::map<std::array<int, 4>, std::uint32_t> statics_;
};

}  // namespace

LoweredPlan lower(const LoweringInput& input) {
  validate_plan(input.plan, input.training, input.model, input.mesh);
  Mapping mapping(input.plan, input.mesh);
  const std::vector<std::int32_t> in_flight = in_flight_by_stage(input);

  // The bytes of each class do not depend on where it lives: bound them first, then place, then lower for
  // good.
  Trace trace = Lowering(input, mapping, {}).run();
  MemoryBound bound = bound_memory(trace, in_flight, input.hardware);
  const auto in_dram = resolve_placement(input.placement, bound, input.hardware);
  if (in_dram != trace.in_dram) {
    trace = Lowering(input, mapping, in_dram).run();
    bound = bound_memory(trace, in_flight, input.hardware);
  }
  return {std::move(mapping), std::move(trace), bound};
}

}  // namespace wafersim::workloads
