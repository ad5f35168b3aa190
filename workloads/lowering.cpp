#include "workloads/lowering.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "workloads/end_steps.h"
#include "workloads/memory_plan.h"
#include "workloads/program_builder.h"
#include "workloads/schedule.h"

namespace wafersim::workloads {

namespace {

/// Both ends of the pipeline hold the embedding's weight.
bool ties_across_stages(const LoweringInput& input) {
  return input.model.tied_embeddings && input.model.embedding && input.model.head && input.plan.pp > 1;
}

std::vector<std::int32_t> in_flight_by_stage(const LoweringInput& input) {
  const PipelineShape shape = pipeline_shape(input.plan, input.training);
  std::vector<std::int32_t> result;
  for (int stage = 0; stage < shape.stages; ++stage) result.push_back(passes_in_flight(shape, stage));
  return result;
}

/// Where a rank's groups stand in its tile's peers: tp, tatp, sp, dp, pp, then (on the ends of a pipeline with tied
/// embeddings) itself and the other end.
constexpr std::array kPeerAxes = {Axis::tp, Axis::tatp, Axis::sp, Axis::dp, Axis::pp};
struct PeerLayout {
  explicit PeerLayout(const PlanSpec& plan) {
    for (const Axis axis : kPeerAxes) {
      first[static_cast<std::size_t>(axis)] = tie;
      tie += static_cast<std::uint32_t>(plan.degree(axis));
    }
  }
  std::uint32_t of(Axis axis) const { return first[static_cast<std::size_t>(axis)]; }
  std::array<std::uint32_t, kAxes> first{};
  std::uint32_t tie = 0;
};

/// Lowers a plan under one placement of the memory classes.
class Lowering {
 public:
  Lowering(const LoweringInput& input, const Mapping& mapping,
           const std::array<bool, kMemoryClasses>& in_dram)
      : input_(input), mapping_(mapping), layout_(input.plan), parameters_(input.model, input.plan) {
    trace_.in_dram = in_dram;
    trace_.replicas = input.plan.dp;
    trace_.microbatches = static_cast<int>(input.training.microbatches(input.plan.dp));
    trace_.pipeline_stages = input.plan.pp;
    trace_.iterations = input.training.iterations;
    for (int sp = 0; sp < input.plan.sp_degree; ++sp) {
      for (int tatp = 0; tatp < input.plan.tatp; ++tatp) {
        for (int tp = 0; tp < input.plan.tp; ++tp) contexts_.push_back(make_context({tp, tatp, sp}));
      }
    }
    const std::vector<Range> sharers = kv_sharers();
    for (RankContext& context : contexts_) context.kv_sharers = sharers;
  }

  Trace run() {
    Ranks ranks;
    for (ranks.dp = 0; ranks.dp < input_.plan.dp; ++ranks.dp) {
      for (ranks.pp = 0; ranks.pp < input_.plan.pp; ++ranks.pp) {
        for (const RankContext& each : contexts_) {
          const InnerRank& inner = each.shard.rank;
          ranks.tp = inner.tp;
          ranks.tatp = inner.tatp;
          ranks.sp = inner.sp;
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
            .tp = group(Axis::tp, rank.tp),
            .tatp = group(Axis::tatp, rank.tatp),
            .sp = group(Axis::sp, rank.sp),
            .previous_stage = layout_.of(Axis::pp) + static_cast<std::uint32_t>(input_.plan.pp - 1),
            .next_stage = layout_.of(Axis::pp) + (input_.plan.pp > 1 ? 1U : 0U),
            .in_dram = trace_.in_dram};
  }

  const RankContext& context(const Ranks& ranks) const {
    const PlanSpec& plan = input_.plan;
    return contexts_[static_cast<std::size_t>((ranks.sp * plan.tatp + ranks.tatp) * plan.tp + ranks.tp)];
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

  Group group(Axis axis, int rank) const {
    return {axis, input_.plan.degree(axis), rank, mapping_.axis_shape(axis), mapping_.axis_positions(axis),
            layout_.of(axis)};
  }
  Group dp_group(const Ranks& ranks) const { return group(Axis::dp, ranks.dp); }
  Group tie_group(const Ranks& ranks) const {
    if (!ties_across_stages(input_) || (!is_first(ranks) && !is_last(ranks))) return {};
    return {Axis::pp, 2, is_first(ranks) ? 0 : 1, {1, 2}, {{0, 0}, {1, 0}}, layout_.tie};
  }

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

  /// The table that both ends of a pipeline hold has a bucket of its own.
  std::int32_t tied_bucket() const { return input_.model.layers + 1; }

  /// Whether a tile counts what all inner ranks hold in the gradient norm: the first one does.
  static bool counts_shared(const Ranks& ranks) { return ranks.tp == 0 && ranks.tatp == 0 && ranks.sp == 0; }

  Bucket layer_bucket(const Ranks& ranks, std::int32_t layer) const {
    Bucket bucket{layer, {}};
    const auto shared_kv = parameters_.replicated_kv(ranks.tp, ranks.tatp);
    for (const Region& region : parameters_.layer(ranks.tp, ranks.tatp)) {
      BucketPart part{layer, region};
      part.counts = ranks.sp == 0;
      if (region.row == 0) {
        // Norms and output biases come first.
        part.token_sums = true;
        part.counts = counts_shared(ranks);
      }
      for (const auto& shared : shared_kv) {
        if (region != shared.region) continue;
        part.kv_head = shared.kv_head;
        const std::uint64_t first = contexts_.front().kv_sharers[static_cast<std::size_t>(shared.kv_head)].first;
        part.counts = part.counts && first == static_cast<std::uint64_t>(ranks.tp);
      }
      bucket.parts.push_back(part);
    }
    return bucket;
  }

  /// The weights of a tile, one bucket for each layer; -1 stands for the embedding, the number of layers for
  /// the head.
  std::map<std::int32_t, Bucket> buckets(const Ranks& ranks) const {
    std::map<std::int32_t, Bucket> result;
    const auto add = [&](std::int32_t bucket, const BucketPart& part) {
      if (part.region.rows == 0) return;
      result[bucket].layer = bucket;
      result[bucket].parts.push_back(part);
    };
    const std::int32_t head = input_.model.layers;
    const bool across = ties_across_stages(input_);
    const bool tied = input_.model.tied_embeddings && input_.model.embedding;
    if (has_embedding(ranks)) {
      const bool whole = replicates_table();
      add(-1, {.layer = -1,
               .region = parameters_.positions(),
               .token_sums = true,
               .counts = counts_shared(ranks)});
      add(across ? tied_bucket() : -1,
          {.layer = -1,
           .region = whole ? parameters_.whole_table() : parameters_.table(false, ranks.tp, ranks.tatp),
           .token_sums = whole,
           .counts = whole ? counts_shared(ranks) : ranks.sp == 0});
    }
    for (int chunk = 0; chunk <= last_chunk(); ++chunk) {
      const LayerRange range = layers(ranks, chunk);
      for (std::int32_t layer = range.first; layer <= range.last(); ++layer) {
        result[layer] = layer_bucket(ranks, layer);
      }
    }
    if (has_head(ranks)) {
      add(head, {.layer = head,
                 .region = parameters_.final_norm(),
                 .token_sums = true,
                 .counts = counts_shared(ranks)});
      if (!tied) {
        add(head, {.layer = head,
                   .region = parameters_.table(true, ranks.tp, ranks.tatp),
                   .counts = ranks.sp == 0});
      }
      if (across) {
        // The other end counts it.
        add(tied_bucket(),
            {.layer = -1, .region = parameters_.table(false, ranks.tp, ranks.tatp), .counts = false});
      }
    }
    return result;
  }

  /// Those that a step of the model uses.
  std::vector<std::int32_t> used_buckets(StepKind kind, std::int32_t layer) const {
    if (kind == StepKind::layer) return {layer};
    if (kind == StepKind::embedding) return {-1, tied_bucket()};
    return {input_.model.layers, tied_bucket(), -1};
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

  std::uint32_t make_layer_template(Pass pass, const Ranks& ranks, const LayerEdges& at) {
    const models::Recompute recompute = input_.training.recompute;
    if (pass == Pass::weight) return make_template("layer.weight", ranks, emit_layer_weight);
    if (pass == Pass::forward) {
      return make_template("layer.forward", ranks,
                           [&](StepEmitter& step) { emit_layer_forward(step, at, recompute); });
    }
    const auto weights =
        splits_backward(input_.plan.schedule) ? WeightGradients::own_step : WeightGradients::backward_step;
    return make_template("layer.backward", ranks,
                         [&](StepEmitter& step) { emit_layer_backward(step, at, recompute, weights); });
  }

  std::uint32_t make_end_template(StepKind kind, Pass pass, const Ranks& ranks) {
    const bool forward = pass == Pass::forward;
    if (kind == StepKind::embedding) {
      const auto look_up = replicates_table() ? emit_replicated_embedding_forward : emit_embedding_forward;
      const auto scatter = replicates_table() ? emit_replicated_embedding_backward : emit_embedding_backward;
      return make_template(forward ? "embedding.forward" : "embedding.backward", ranks, forward ? look_up : scatter);
    }
    return make_template(forward ? "head.forward" : "head.backward", ranks,
                         forward ? emit_head_forward : emit_head_backward);
  }

  /// The template of a step of the model itself. Layers with equal edges share it; a weight step has none.
  std::uint32_t model_template(StepKind kind, const ScheduleSlot& slot, const Ranks& ranks, std::int32_t layer) {
    const bool has_edges = kind == StepKind::layer && slot.pass != Pass::weight;
    const LayerEdges at = has_edges ? edges(ranks, slot.chunk, layer) : LayerEdges{};
    const auto key = std::tuple(kind, slot.pass, at, context(ranks).shard.rank);
    const auto known = templates_.find(key);
    if (known != templates_.end()) return known->second;
    const std::uint32_t made = kind == StepKind::layer ? make_layer_template(slot.pass, ranks, at)
                                                       : make_end_template(kind, slot.pass, ranks);
    templates_.emplace(key, made);
    return made;
  }

  std::uint64_t updated_parameters(const Ranks& ranks) const {
    std::uint64_t total = 0;
    for (const auto& [layer, bucket] : buckets(ranks)) {
      total += input_.plan.zero == 0 ? bucket.parameters() : share(bucket.parameters(), input_.plan.dp, ranks.dp);
    }
    return total;
  }

  void add_model_step(ProgramBuilder& program, StepKind kind, const ScheduleSlot& slot, const Ranks& ranks,
                      std::int32_t layer) {
    program.foreground({.step_template = model_template(kind, slot, ranks, layer),
                        .kind = kind,
                        .pass = slot.pass,
                        .layer = layer,
                        .microbatch = slot.microbatch},
                       used_buckets(kind, layer));
  }

  void add_forward(ProgramBuilder& program, const Ranks& ranks, const ScheduleSlot& slot) {
    const LayerRange range = layers(ranks, slot.chunk);
    if (embeds(ranks, slot.chunk)) add_model_step(program, StepKind::embedding, slot, ranks, -1);
    for (std::int32_t layer = range.first; layer <= range.last(); ++layer) {
      add_model_step(program, StepKind::layer, slot, ranks, layer);
    }
    if (heads(ranks, slot.chunk)) add_model_step(program, StepKind::head, slot, ranks, -1);
  }

  /// A backward or a weight pass. `sync`: the templates of the gradient sums that start behind the step that
  /// completes a bucket, empty but for the last microbatch. Embedding and head make all their gradients in the
  /// backward pass: the embedding has no others, and the head would have to keep the gradients of its logits.
  void add_backward(ProgramBuilder& program, const Ranks& ranks, const ScheduleSlot& slot,
                    const std::map<std::int32_t, std::uint32_t>& sync) {
    const bool completes_layers = slot.pass == Pass::weight || !splits_backward(input_.plan.schedule);
    const auto add = [&](StepKind kind, std::int32_t layer) {
      add_model_step(program, kind, slot, ranks, layer);
      if (kind == StepKind::layer && !completes_layers) return;
      for (const std::int32_t bucket : used_buckets(kind, layer)) {
        const auto found = sync.find(bucket);
        // A table that is tied on one stage is complete after the embedding only.
        if (found == sync.end() || (kind == StepKind::head && bucket == -1)) continue;
        program.gradient_sync(
            {.step_template = found->second, .kind = StepKind::gradient_sync, .layer = bucket});
      }
    };
    const bool ends = slot.pass == Pass::backward;
    const LayerRange range = layers(ranks, slot.chunk);
    if (ends && heads(ranks, slot.chunk)) add(StepKind::head, -1);
    for (std::int32_t layer = range.last(); layer >= range.first; --layer) add(StepKind::layer, layer);
    if (ends && embeds(ranks, slot.chunk)) add(StepKind::embedding, -1);
  }

  std::map<std::int32_t, std::uint32_t> sync_templates(const Ranks& ranks) {
    std::map<std::int32_t, std::uint32_t> result;
    const Group dp = dp_group(ranks);
    for (const auto& [layer, bucket] : buckets(ranks)) {
      StepEmitter step(trace_, "gradient_sync", context(ranks));
      if (dp.size == 1 && !needs_inner_sync(step, bucket)) continue;
      emit_gradient_sync(step, dp, bucket);
      result[layer] = step.finish();
    }
    return result;
  }

  /// On the ends of a pipeline with tied embeddings. Both ends use layer -1, so that their messages match.
  void add_tied_gradient_sync(ProgramBuilder& program, const Ranks& ranks) {
    const Group tie = tie_group(ranks);
    if (tie.size == 1) return;
    const Bucket bucket = buckets(ranks).at(tied_bucket());
    program.tied_gradient_sync(
        {.step_template = make_template(
             "gradient_sync.tied", ranks,
             [&](StepEmitter& step) { emit_tied_gradient_sync(step, dp_group(ranks), tie, bucket); }),
         .kind = StepKind::gradient_sync});
  }

  /// The optimizer and, with zero 1, the gathers of the weights that it updated.
  void add_update(ProgramBuilder& program, const Ranks& ranks) {
    if (input_.training.optimizer == Optimizer::none) return;
    std::vector<Bucket> all;
    for (const auto& [layer, bucket] : buckets(ranks)) all.push_back(bucket);
    program.optimizer(
        {.step_template = make_template(
             "optimizer", ranks,
             [&](StepEmitter& step) { emit_optimizer(step, dp_group(ranks), all, norm_groups(ranks)); }),
         .kind = StepKind::optimizer});
    if (input_.plan.zero == 0 || input_.plan.dp == 1) return;
    for (const auto& [layer, bucket] : buckets(ranks)) {
      const std::uint32_t gather = make_template("parameter_gather", ranks, [&](StepEmitter& step) {
        emit_parameter_gather(step, dp_group(ranks), bucket);
      });
      program.parameter_gather({.step_template = gather, .kind = StepKind::parameter_gather, .layer = layer});
    }
  }

  /// Over which groups the gradient norm is summed. Replicas hold the same gradients unless zero 1 cuts them.
  std::vector<Group> norm_groups(const Ranks& ranks) const {
    std::vector<Group> result{context(ranks).tp, context(ranks).tatp, context(ranks).sp,
                              group(Axis::pp, ranks.pp)};
    if (input_.plan.zero > 0) result.push_back(dp_group(ranks));
    return result;
  }

  std::uint32_t make_program(const Ranks& ranks) {
    const PipelineShape shape = pipeline_shape(input_.plan, input_.training);
    const auto sync = sync_templates(ranks);
    ProgramBuilder program;
    for (int iteration = 0; iteration < input_.training.iterations; ++iteration) {
      program.start_iteration(iteration);
      for (const ScheduleSlot& slot : schedule_order(shape, ranks.pp)) {
        const bool last = slot.microbatch == shape.microbatches - 1;
        if (slot.pass == Pass::forward) {
          add_forward(program, ranks, slot);
        } else {
          add_backward(program, ranks, slot, last ? sync : std::map<std::int32_t, std::uint32_t>{});
        }
      }
      add_tied_gradient_sync(program, ranks);
      add_update(program, ranks);
    }
    trace_.programs.push_back(program.finish());
    return static_cast<std::uint32_t>(trace_.programs.size() - 1);
  }

  std::uint32_t make_statics(const Ranks& ranks) {
    std::uint64_t parameters = 0;
    for (const auto& [layer, bucket] : buckets(ranks)) parameters += bucket.parameters();
    const Bytes element = element_bytes(input_.training.precision);
    std::array<Bytes, kMemoryClasses> bytes{};
    bytes[static_cast<std::size_t>(MemoryClass::parameters)] = parameters * element;
    bytes[static_cast<std::size_t>(MemoryClass::gradients)] = parameters * gradient_bytes(input_.training);
    bytes[static_cast<std::size_t>(MemoryClass::optimizer)] =
        updated_parameters(ranks) *
        optimizer_bytes_per_parameter(input_.training.optimizer, input_.training.precision);
    const auto [found, fresh] =
        statics_.emplace(std::array{ranks.tp, ranks.tatp, ranks.pp, ranks.dp}, static_cast<std::uint32_t>(trace_.statics.size()));
    if (fresh) trace_.statics.push_back({bytes, resident(ranks)});
    return found->second;
  }

  Views resident(const Ranks& ranks) {
    StepEmitter step(trace_, "resident", context(ranks));
    Views views;
    for (const auto& [layer, bucket] : buckets(ranks)) {
      for (const BucketPart& part : bucket.parts) {
        views = views + StepEmitter::of_layer(step.weights({part.region}), part.layer);
      }
    }
    return views;
  }

  /// Appends a group's members as `rank` sees them: itself first, the others in cyclic order.
  void add_peers(const std::vector<TileId>& members, int rank) {
    const auto first = members.begin() + rank;
    trace_.peers.insert(trace_.peers.end(), first, members.end());
    trace_.peers.insert(trace_.peers.end(), members.begin(), first);
  }

  void bind(const Ranks& ranks) {
    TileBinding binding;
    binding.tile = mapping_.tile(ranks);
    binding.program = make_program(ranks);
    binding.stage = ranks.pp;
    binding.group = ranks.dp * input_.plan.pp + ranks.pp;
    binding.statics = make_statics(ranks);
    binding.first_peer = static_cast<std::uint32_t>(trace_.peers.size());
    for (const Axis axis : kPeerAxes) add_peers(mapping_.group(axis, ranks), ranks.at(axis));
    const std::vector<TileId> stages = mapping_.group(Axis::pp, ranks);
    const Group tie = tie_group(ranks);
    if (tie.size == 2) add_peers({stages.front(), stages.back()}, tie.rank);
    binding.peer_count = static_cast<std::uint32_t>(trace_.peers.size()) - binding.first_peer;
    trace_.tiles.push_back(binding);
  }

  const LoweringInput& input_;
  const Mapping& mapping_;
  PeerLayout layout_;
  ParameterLayout parameters_;
  Trace trace_;
  std::vector<RankContext> contexts_;
  std::map<std::tuple<StepKind, Pass, LayerEdges, InnerRank>, std::uint32_t> templates_;
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
