#pragma once

#include <array>
#include <optional>
#include <vector>

#include "config/key.h"
#include "config/words.h"
#include "workloads/plan.h"

namespace wafersim::config {

/// `sp: {kind, degree, group}`. Megatron's sequence parallelism reuses the tensor-parallel group, so degree
/// and group say nothing new and are only checked. A group of `tatp` makes attention over the tensor-stream group
/// what the kind says; it is stored there.
struct SequenceParallelKeys {
  workloads::SequenceParallel kind = workloads::SequenceParallel::none;
  std::int64_t degree = 1;
  SequenceGroup group = SequenceGroup::own;
};

/// `tatp: 16`, or `tatp: {degree: 16, ...}`.
struct StreamKeys {
  int degree = 1;
  workloads::StreamSpec spec;
};

struct MappingKeys {
  OtherAxes others = OtherAxes::standard;
  workloads::AxisMapping tp;
  workloads::AxisMapping tatp;
  workloads::AxisMapping sp;
  workloads::AxisMapping ep;
  workloads::AxisMapping pp;
  workloads::AxisMapping dp;
  std::optional<std::vector<workloads::Axis>> order;  ///< nothing: to be chosen with the mapping
  bool order_given = false;

  /// Some axis is left to the search for a mapping.
  bool open() const {
    constexpr auto optimized = workloads::Placement::optimized;
    return tp.placement == optimized || tatp.placement == optimized || sp.placement == optimized ||
           ep.placement == optimized || pp.placement == optimized || dp.placement == optimized;
  }
};

/// `operators: {attention: {tp: 1, tatp: 8}, mlp: {tp: 8}}`.
struct OperatorKeys {
  std::optional<workloads::OperatorDegrees> attention;
  std::optional<workloads::OperatorDegrees> mlp;
};

struct OverlapKeys {
  int near = 1;
  int far = 1;
};

/// `recompute: full`, or `recompute: {kind: full, every: 4}`.
struct RecomputeKeys {
  models::Recompute kind = models::Recompute::none;
  int every = 1;
};

template <class Visitor>
void fields(Visitor& visit, RecomputeKeys& keys) {
  visit(Key{.name = "kind", .doc = "none, selective (scores and softmax of materialized attention) or full (whole layers)."},
        keys.kind);
  visit(Key{.name = "every",
            .doc = "With full: consecutive layers of a stage's chunk that keep one input together; otherwise 1.",
            .min = 1},
        keys.every);
}

template <class Visitor>
void fields(Visitor& visit, workloads::TrainingSpec& spec) {
  RecomputeKeys recompute{spec.recompute, spec.recompute_every};
  visit(Key{.name = "global_batch", .doc = "Sequences of an iteration.", .min = 1}, spec.global_batch);
  visit(Key{.name = "microbatch", .doc = "Sequences that pass through the model at once.", .min = 1},
        spec.microbatch);
  visit(Key{.name = "precision", .doc = "Of weights and activations. Master weights are fp32."}, spec.precision);
  visit(Key{.name = "gradient_precision",
            .doc = "Of the gradients of weights; auto: that of the weights, bf16 with fp8.",
            .absent = "auto",
            .default_text = "auto"},
        spec.gradient_precision);
  visit(Key{.name = "optimizer", .doc = "none: forward and backward passes only; adamw_8bit: moments of one byte each."},
        spec.optimizer);
  visit(Key{.name = "recompute",
            .doc = "Activations that are computed again for the backward pass; `recompute: full` is short for its kind.",
            .shorthand = "kind"},
        recompute);
  spec.recompute = recompute.kind;
  spec.recompute_every = recompute.every;
  visit(Key{.name = "clip_grad",
            .doc = "All-reduce of the gradient norm before the optimizer; not with `plan.schedule: zb_h2`.",
            .default_text = "true; false with `zb_h2`"},
        spec.clip_grad);
  visit(Key{.name = "iterations", .doc = "Iterations to simulate.", .min = 1}, spec.iterations);
}

template <class Visitor>
void fields(Visitor& visit, SequenceParallelKeys& spec) {
  visit(Key{.name = "kind",
            .doc = "How the sequence is cut: megatron (the residual stream over tp), ulysses (heads are exchanged for "
                   "tokens around attention) or ring (keys and values visit every rank)."},
        spec.kind);
  visit(Key{.name = "degree",
            .doc = "Ranks that cut the sequence with ulysses and ring; with megatron 1 or the degree of `plan.tp`.",
            .min = 1},
        spec.degree);
  spec.group = spec.kind == workloads::SequenceParallel::megatron ? SequenceGroup::tp
                                                                  : SequenceGroup::own;
  visit(Key{.name = "group",
            .doc = "Whose ranks these are: own; tp (megatron); tatp: attention of the tensor-stream group works as the "
                   "kind says.",
            .default_text = "own; `tp` with megatron"},
        spec.group);
}

template <class Visitor>
void fields(Visitor& visit, StreamKeys& keys) {
  visit(Key{.name = "degree", .doc = "Tiles whose blocks stream past each other.", .min = 1}, keys.degree);
  visit(Key{.name = "stream",
            .doc = "The operand of a product that travels: its weight; its input, while weights stay and heads and MLP are "
                   "cut over the group; auto: for attention and MLP each what moves fewer bytes."},
        keys.spec.operand);
  std::optional<workloads::StreamAttention> attention;
  if (keys.spec.operand != workloads::StreamOperand::inputs) attention = keys.spec.attention;
  visit(Key{.name = "attention",
            .doc = "Where weights travel tokens are cut for attention: stream_kv streams keys and values, heads exchanges "
                   "heads for tokens. none: inputs travel, heads are cut.",
            .absent = "none",
            .default_text = "stream_kv; none with `stream: inputs`"},
        attention);
  if (attention) keys.spec.attention = *attention;
  visit(Key{.name = "variant",
            .doc = "flood: one hop a round, outward in both directions; wrapped_ring: one way, the last tile sends to the "
                   "first; interleaved_ring: one way round a ring of tiles at most two places apart."},
        keys.spec.variant);
  visit(Key{.name = "relay",
            .doc = "How the blocks of a ring pass tiles between two that are not neighbours: cut_through the routers, or "
                   "store_and_forward tile by tile."},
        keys.spec.relay);
}

template <class Visitor>
void fields(Visitor& visit, MappingKeys& spec) {
  const auto doc = [](const std::string& what, const std::string& standard) {
    return what + "; default is a " + standard +
           ", auto is chosen for the smallest link load. Without a shape as square as fits, wider than tall.";
  };
  visit.alternative(
      Key{.name = "others", .doc = "Axes without an entry of their own; `mapping: auto` is short for it."},
      spec.others, false);
  if (spec.others == OtherAxes::optimized) {
    for (workloads::AxisMapping* axis : {&spec.tp, &spec.tatp, &spec.sp, &spec.ep, &spec.pp, &spec.dp})
      axis->placement = workloads::Placement::optimized;
  }
  visit(Key{.name = "tp", .doc = doc("How tensor-parallel groups lie on the mesh", "block")}, spec.tp);
  visit(Key{.name = "tatp", .doc = doc("How tensor-stream groups lie on the mesh", "snake")}, spec.tatp);
  visit(Key{.name = "sp", .doc = doc("How groups of ulysses or ring lie on the mesh", "block")}, spec.sp);
  visit(Key{.name = "ep", .doc = doc("How the replicas that share out the experts lie on the mesh", "block")}, spec.ep);
  visit(Key{.name = "pp", .doc = doc("How the stages of a pipeline lie on the mesh", "snake")}, spec.pp);
  visit(Key{.name = "dp", .doc = doc("How the replicas, dp / ep of them, lie on the mesh", "block")}, spec.dp);
  if (spec.open() && !spec.order_given) spec.order.reset();
  visit(Key{.name = "order",
            .doc = "Nesting of the axes from the inside out; axes of degree 1 may be left out. auto: chosen together "
                   "with axes that are auto, otherwise [tp, tatp, sp, ep, pp, dp].",
            .absent = "auto",
            .default_text = "auto"},
        spec.order);
}

template <class Visitor>
void fields(Visitor& visit, workloads::OperatorDegrees& degrees) {
  visit(Key{.name = "tp", .doc = "Of its tensor parallelism; times its `tatp` the tiles of `plan.tp` x `plan.tatp`.", .min = 1},
        degrees.tp);
  visit(Key{.name = "tatp", .doc = "Of its tensor streams, with the options of `plan.tatp`.", .min = 1}, degrees.tatp);
}

template <class Visitor>
void fields(Visitor& visit, OperatorKeys& keys) {
  visit(Key{.name = "attention",
            .doc = "Degrees of attention (q, k, v and output with it); plan: `plan.tp` and `plan.tatp`.",
            .absent = "plan"},
        keys.attention);
  visit(Key{.name = "mlp", .doc = "Degrees of the MLP; plan: `plan.tp` and `plan.tatp`.", .absent = "plan"}, keys.mlp);
}

template <class Visitor>
void fields(Visitor& visit, OverlapKeys& keys) {
  visit(Key{.name = "near", .doc = "Pieces of a block of a tensor stream; each is used as it arrives.", .min = 1},
        keys.near);
  visit(Key{.name = "far",
            .doc = "Steps by which the parameters that zero 3 gathers are asked for ahead; 0: when they are needed.",
            .min = 0},
        keys.far);
}

/// Axes without an entry are `standard`, so only the others are stored.
inline MappingKeys mapping_keys(const workloads::PlanSpec& spec) {
  MappingKeys keys;
  keys.tp = spec.axis_mapping(workloads::Axis::tp);
  keys.tatp = spec.axis_mapping(workloads::Axis::tatp);
  keys.sp = spec.axis_mapping(workloads::Axis::sp);
  keys.ep = spec.axis_mapping(workloads::Axis::ep);
  keys.pp = spec.axis_mapping(workloads::Axis::pp);
  keys.dp = spec.axis_mapping(workloads::Axis::dp);
  keys.order = spec.order;
  keys.order_given = spec.order_given;
  return keys;
}

inline void store_mapping(const MappingKeys& keys, workloads::PlanSpec& spec) {
  spec.mapping.clear();
  const auto store = [&](workloads::Axis axis, const workloads::AxisMapping& mapping) {
    if (mapping != workloads::AxisMapping{}) spec.mapping[axis] = mapping;
  };
  store(workloads::Axis::tp, keys.tp);
  store(workloads::Axis::tatp, keys.tatp);
  store(workloads::Axis::sp, keys.sp);
  store(workloads::Axis::ep, keys.ep);
  store(workloads::Axis::pp, keys.pp);
  store(workloads::Axis::dp, keys.dp);
  spec.order = keys.order.value_or(workloads::default_order());
  spec.order_given = keys.open() && keys.order.has_value();
}

inline void store_sequence_parallel(const SequenceParallelKeys& keys, workloads::PlanSpec& spec) {
  using workloads::SequenceParallel;
  const bool own_kind = keys.kind == SequenceParallel::ulysses || keys.kind == SequenceParallel::ring;
  spec.sp = keys.kind;
  spec.sp_degree = own_kind && keys.group == SequenceGroup::own ? static_cast<int>(keys.degree) : 1;
  if (!own_kind || keys.group != SequenceGroup::tatp) return;
  spec.stream.attention = keys.kind == SequenceParallel::ring ? workloads::StreamAttention::stream_kv
                                                              : workloads::StreamAttention::heads;
  spec.sp = SequenceParallel::none;
}

template <class Visitor>
void fields(Visitor& visit, workloads::PlanSpec& spec) {
  SequenceParallelKeys sp{spec.sp, spec.sp_degree};
  StreamKeys tatp{spec.tatp, spec.stream};
  PipelineTransfer transfer = spec.pp_transfer_full ? PipelineTransfer::full : PipelineTransfer::slice;
  MappingKeys mapping = mapping_keys(spec);
  OverlapKeys overlap{spec.overlap_near, spec.overlap_far};
  std::optional<std::vector<int>> layers;
  if (!spec.layers_per_stage.empty()) layers = spec.layers_per_stage;
  std::optional<OperatorKeys> operators;
  if (spec.attention || spec.mlp) operators = OperatorKeys{spec.attention, spec.mlp};
  visit(Key{.name = "dp", .doc = "Data parallelism: replicas of the model.", .min = 1}, spec.dp);
  visit(Key{.name = "tp", .doc = "Tensor parallelism: tiles that share each layer.", .min = 1}, spec.tp);
  visit(Key{.name = "tatp",
            .doc = "Topology-aware tensor-stream parallelism; `tatp: 16` is short for its degree.",
            .shorthand = "degree"},
        tatp);
  visit(Key{.name = "sp",
            .doc = "Sequence parallelism; `sp: megatron` is short for its kind.",
            .shorthand = "kind"},
        sp);
  visit(Key{.name = "operators",
            .doc = "Operators of a layer that divide the tiles of a model group in another way than the plan; none: all by "
                   "`plan.tp` and `plan.tatp`.",
            .absent = "none"},
        operators);
  visit(Key{.name = "ep",
            .doc = "Expert parallelism: replicas that share out the experts; divides `plan.dp` and `model.experts`.",
            .min = 1},
        spec.ep);
  visit(Key{.name = "pp", .doc = "Pipeline parallelism: stages of consecutive layers.", .min = 1}, spec.pp);
  visit(Key{.name = "schedule", .doc = "Order of microbatches in the pipeline."}, spec.schedule);
  visit(Key{.name = "virtual_stages",
            .doc = "Chunks of consecutive layers on each stage; 2 or more with `interleaved`, 1 with other schedules.",
            .min = 1},
        spec.virtual_stages);
  visit(Key{.name = "layers_per_stage",
            .doc = "Layers of each stage, as in [9, 8, 8, 7]; with `interleaved` of each virtual stage, chunk by "
                   "chunk.",
            .min = 1,
            .absent = "even"},
        layers);
  visit(Key{.name = "embedding",
            .doc = "The embedding's table: cut over `tp`, or whole on every rank (not with `model.tied_embeddings`)."},
        spec.embedding);
  visit(Key{.name = "zero",
            .doc = "What replicas share out: 1 optimizer states, 2 gradients too, 3 parameters too.",
            .min = 0,
            .max = 3},
        spec.zero);
  visit(
      Key{.name = "pp_transfer",
          .doc =
              "Without sequence parallelism each rank sends its 1/tp of the boundary tensor, or all of it."},
      transfer);
  visit(Key{.name = "mapping",
            .doc = "How the axes land on the mesh; `mapping: auto` leaves all of them to a search.",
            .shorthand = "others"},
        mapping);
  visit(Key{.name = "collectives",
            .doc = "Algorithm of all-reduce, reduce-scatter and all-gather."},
        spec.collectives);
  visit(Key{.name = "collective_chunks",
            .doc = "Pieces into which the vector of a collective is cut.",
            .min = 1},
        spec.collective_chunks);
  visit(Key{.name = "overlap", .doc = "How communication hides behind computation."}, overlap);
  spec.tatp = tatp.degree;
  spec.stream = tatp.spec;
  spec.attention = operators ? operators->attention : std::nullopt;
  spec.mlp = operators ? operators->mlp : std::nullopt;
  spec.overlap_near = overlap.near;
  spec.overlap_far = overlap.far;
  store_sequence_parallel(sp, spec);
  spec.layers_per_stage = layers.value_or(std::vector<int>{});
  spec.pp_transfer_full = transfer == PipelineTransfer::full;
  store_mapping(mapping, spec);
}

template <class Visitor>
void fields(Visitor& visit, workloads::PlacementSpec& spec) {
  using workloads::MemoryClass;
  struct Entry {
    MemoryClass memory_class;
    const char* name;
    const char* doc;
  };
  constexpr std::array entries = {
      Entry{MemoryClass::parameters, "parameters", "Weights."},
      Entry{MemoryClass::gradients, "gradients", "Gradients of the weights."},
      Entry{MemoryClass::optimizer, "optimizer", "Master weights and moments."},
      Entry{MemoryClass::activations, "activations", "What the backward pass needs again."},
      Entry{MemoryClass::stream_buffers, "stream_buffers", "Blocks that stream through a tile."},
      Entry{MemoryClass::communication_buffers, "communication_buffers",
            "Messages on their way in and out."}};
  for (const Entry& entry : entries) {
    const auto found = spec.find(entry.memory_class);
    auto place = found == spec.end() ? workloads::MemoryPlace::automatic : found->second;
    visit(Key{.name = entry.name, .doc = entry.doc}, place);
    spec.erase(entry.memory_class);
    if (place != workloads::MemoryPlace::automatic) spec[entry.memory_class] = place;
  }
}

}  // namespace wafersim::config
