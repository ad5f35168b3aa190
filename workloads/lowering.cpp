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
  const auto microbatches = static_cast<std::int32_t>(input.training.microbatches(input.plan.dp));
  std::vector<std::int32_t> result;
  for (int stage = 0; stage < input.plan.pp; ++stage) {
    result.push_back(microbatches_in_flight(input.plan.schedule, stage, input.plan.pp, microbatches));
  }
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
  LayerRange layers(const Ranks& ranks) const {
    return stage_layers(input_.model.layers, ranks.pp, input_.plan.pp);
  }

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
      add(-1, {.layer = -1,
               .region = parameters_.positions(),
               .token_sums = true,
               .counts = counts_shared(ranks)});
      add(across ? tied_bucket() : -1,
          {.layer = -1, .region = parameters_.table(false, ranks.tp, ranks.tatp), .counts = ranks.sp == 0});
    }
    const LayerRange range = layers(ranks);
    for (std::int32_t layer = range.first; layer <= range.last(); ++layer) {
      result[layer] = layer_bucket(ranks, layer);
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

  LayerEdges edges(const Ranks& ranks, std::int32_t layer) const {
    LayerEdges result;
    if (layer == layers(ranks).first) {
      result.input = !is_first(ranks)       ? EdgeKind::remote
                     : has_embedding(ranks) ? EdgeKind::inside
                                            : EdgeKind::open;
    }
    if (layer == layers(ranks).last()) {
      result.output = !is_last(ranks)   ? EdgeKind::remote
                      : has_head(ranks) ? EdgeKind::inside
                                        : EdgeKind::open;
    }
    return result;
  }

  /// The template of a step of the model itself. Layers with equal edges share it.
  std::uint32_t model_template(StepKind kind, Pass pass, const Ranks& ranks, std::int32_t layer) {
    const LayerEdges at = kind == StepKind::layer ? edges(ranks, layer) : LayerEdges{};
    const auto key = std::tuple(kind, pass, at, context(ranks).shard.rank);
    const auto known = templates_.find(key);
    if (known != templates_.end()) return known->second;
    const bool forward = pass == Pass::forward;
    std::uint32_t made = 0;
    if (kind == StepKind::layer) {
      made = make_template(forward ? "layer.forward" : "layer.backward", ranks, [&](StepEmitter& step) {
        (forward ? emit_layer_forward : emit_layer_backward)(step, at, input_.training.recompute);
      });
    } else if (kind == StepKind::embedding) {
      made = make_template(forward ? "embedding.forward" : "embedding.backward", ranks,
                           forward ? emit_embedding_forward : emit_embedding_backward);
    } else {
      made = make_template(forward ? "head.forward" : "head.backward", ranks,
                           forward ? emit_head_forward : emit_head_backward);
    }
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

  void add_forward(ProgramBuilder& program, const Ranks& ranks, std::int32_t microbatch) {
    const auto add = [&](StepKind kind, std::int32_t layer) {
      program.foreground({.step_template = model_template(kind, Pass::forward, ranks, layer),
                          .kind = kind,
                          .pass = Pass::forward,
                          .layer = layer,
                          .microbatch = microbatch},
                         used_buckets(kind, layer));
    };
    if (has_embedding(ranks)) add(StepKind::embedding, -1);
    const LayerRange range = layers(ranks);
    for (std::int32_t layer = range.first; layer <= range.last(); ++layer) add(StepKind::layer, layer);
    if (has_head(ranks)) add(StepKind::head, -1);
  }

  /// `sync`: the templates of the gradient sums that start behind each bucket's backward step, empty but for
  /// the last microbatch.
  void add_backward(ProgramBuilder& program, const Ranks& ranks, std::int32_t microbatch,
                    const std::map<std::int32_t, std::uint32_t>& sync) {
    const auto add = [&](StepKind kind, std::int32_t layer) {
      const std::vector<std::int32_t> used = used_buckets(kind, layer);
      program.foreground({.step_template = model_template(kind, Pass::backward, ranks, layer),
                          .kind = kind,
                          .pass = Pass::backward,
                          .layer = layer,
                          .microbatch = microbatch},
                         used);
      for (const std::int32_t bucket : used) {
        const auto found = sync.find(bucket);
        // A table that is tied on one stage is complete after the embedding only.
        if (found == sync.end() || (kind == StepKind::head && bucket == -1)) continue;
        program.gradient_sync(
            {.step_template = found->second, .kind = StepKind::gradient_sync, .layer = bucket});
      }
    };
    if (has_head(ranks)) add(StepKind::head, -1);
    const LayerRange range = layers(ranks);
    for (std::int32_t layer = range.last(); layer >= range.first; --layer) add(StepKind::layer, layer);
    if (has_embedding(ranks)) add(StepKind::embedding, -1);
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
    const auto microbatches = static_cast<std::int32_t>(input_.training.microbatches(input_.plan.dp));
    const auto sync = sync_templates(ranks);
    ProgramBuilder program;
    for (int iteration = 0; iteration < input_.training.iterations; ++iteration) {
      program.start_iteration(iteration);
      for (const ScheduleSlot& slot :
           schedule_order(input_.plan.schedule, ranks.pp, input_.plan.pp, microbatches)) {
        if (slot.pass == Pass::forward) {
          add_forward(program, ranks, slot.microbatch);
        } else {
          const bool last = slot.microbatch == microbatches - 1;
          add_backward(program, ranks, slot.microbatch,
                       last ? sync : std::map<std::int32_t, std::uint32_t>{});
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
