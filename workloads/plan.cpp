#include "workloads/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "workloads/stream_operand.h"

namespace wafersim::workloads {
namespace {

/// Largest numbers that message_key tells apart.
constexpr std::int64_t kMaxMicrobatches = 65536;
constexpr int kMaxLayers = 4096;

using Faults = std::vector<std::string>;

void require_at_least_one(Faults& faults, const char* key, std::int64_t value) {
  if (value < 1) faults.push_back(fmt::format("{} {} is below 1; nearest valid: 1", key, value));
}

void check_counts(Faults& faults, const PlanSpec& plan, const TrainingSpec& training) {
  require_at_least_one(faults, "plan.dp", plan.dp);
  require_at_least_one(faults, "plan.tp", plan.tp);
  require_at_least_one(faults, "plan.tatp", plan.tatp);
  require_at_least_one(faults, "plan.sp.degree", plan.sp_degree);
  require_at_least_one(faults, "plan.overlap.near", plan.overlap_near);
  require_at_least_one(faults, "plan.ep", plan.ep);
  require_at_least_one(faults, "plan.pp", plan.pp);
  require_at_least_one(faults, "plan.virtual_stages", plan.virtual_stages);
  require_at_least_one(faults, "plan.collective_chunks", plan.collective_chunks);
  require_at_least_one(faults, "training.global_batch", training.global_batch);
  require_at_least_one(faults, "training.microbatch", training.microbatch);
  require_at_least_one(faults, "training.iterations", training.iterations);
  require_at_least_one(faults, "training.recompute.every", training.recompute_every);
  if (training.recompute_every > 1 && training.recompute != models::Recompute::full) {
    faults.push_back(fmt::format("training.recompute.every {} without full recomputation; nearest valid: 1",
                                 training.recompute_every));
  }
  if (plan.zero < 0 || plan.zero > 3) {
    faults.push_back(fmt::format("plan.zero {} is not one of 0, 1, 2, 3; nearest valid: {}", plan.zero,
                                 plan.zero < 0 ? 0 : 3));
  }
  if (plan.overlap_far < 0) {
    faults.push_back(fmt::format("plan.overlap.far {} is below 0; nearest valid: 0", plan.overlap_far));
  }
}

void check_order(Faults& faults, const PlanSpec& plan) {
  std::vector<std::string> names;
  for (const Axis axis : plan.order) names.emplace_back(to_string(axis));
  for (const Axis axis : default_order()) {
    const auto times = std::count(plan.order.begin(), plan.order.end(), axis);
    if (times == 1 || (times == 0 && plan.degree(axis) == 1)) continue;
    faults.push_back(fmt::format("plan.mapping.order [{}] names {} {} times instead of once", join(names),
                                 to_string(axis), times));
  }
}

/// Each rank that cuts the sequence gets tokens.
void check_tokens(Faults& faults, const PlanSpec& plan, const models::TransformerSpec& model) {
  const std::int64_t parts = std::int64_t{2} * plan.sp_degree * plan.tatp;
  if (parts > 2 && model.sequence < parts) {
    faults.push_back(fmt::format(
        "model.sequence {} gives some of the {} ranks that cut it (sp {} * tatp {}) no tokens; nearest valid: {}",
        model.sequence, parts / 2, plan.sp_degree, plan.tatp, parts));
  }
}

/// How the sequence is cut, and whether attention can work on the parts.
void check_sequence(Faults& faults, const PlanSpec& plan, const TrainingSpec& training,
                    const models::TransformerSpec& model) {
  check_tokens(faults, plan, model);
  const bool own_kind = plan.sp == SequenceParallel::ulysses || plan.sp == SequenceParallel::ring;
  if (plan.sp_degree > 1 && !own_kind) {
    faults.push_back(fmt::format("plan.sp.degree {} is for kinds ulysses and ring with a group of their own; nearest "
                                 "valid: 1",
                                 plan.sp_degree));
  }
  const std::optional<StreamAttention> line = line_attention(model, training, plan);
  const bool heads_over_tatp = line == StreamAttention::heads;
  const bool heads_over_sp = plan.sp == SequenceParallel::ulysses && plan.sp_degree > 1;
  if (heads_over_tatp && heads_over_sp) {
    faults.emplace_back(
        "plan.tatp.attention heads cannot be combined with plan.sp ulysses: heads are exchanged over one axis only; "
        "nearest valid: plan.tatp.attention stream_kv");
  }
  const bool inner_ranks = streams_inputs(model, training, plan, 0);
  const std::int64_t cutting = std::int64_t{plan.tp} * (inner_ranks ? plan.tatp : 1);
  const std::int64_t kv_of_rank = std::max<std::int64_t>(1, model.kv_heads / cutting);
  const int exchanging = heads_over_sp ? plan.sp_degree : heads_over_tatp ? plan.tatp : 1;
  if (exchanging > kv_of_rank) {
    faults.push_back(fmt::format(
        "plan.{} {} exchanges heads, but a {} rank has {} key/value heads only; nearest valid: {}",
        heads_over_sp ? "sp.degree" : "tatp", exchanging, inner_ranks ? "tensor-stream" : "tensor-parallel", kv_of_rank,
        kv_of_rank));
  }
  const bool streams = line == StreamAttention::stream_kv ||
                       (plan.sp == SequenceParallel::ring && plan.sp_degree > 1);
  if (streams && model.attention_kernel == models::AttentionKernel::materialized) {
    faults.emplace_back(
        "model.attention_kernel materialized needs all keys at once, but keys and values stream (plan.tatp, plan.sp "
        "ring); nearest valid: fused");
  }
}

/// Whether heads (0) or the MLP (1) can be cut over tatp, too.
void check_stream_inputs(Faults& faults, const PlanSpec& plan, const models::TransformerSpec& model, int pair) {
  if (plan.stream.operand != StreamOperand::inputs || plan.tatp == 1) return;
  std::string fault = stream_inputs_fault(model, plan, pair);
  if (!fault.empty()) faults.push_back(std::move(fault));
}

void check_heads(Faults& faults, const PlanSpec& plan, const models::TransformerSpec& model) {
  if (plan.tp <= model.heads) return;
  faults.push_back(
      fmt::format("plan.tp {} is more than the {} attention heads of the model; nearest valid: {}", plan.tp,
                  model.heads, model.heads));
}

std::string list_of(const std::vector<int>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

/// The split that is nearest to what was asked for: of as many entries as there are virtual stages, at least one
/// layer each, with layers given to or taken from the fewest last entries.
std::vector<int> nearest_split(std::vector<int> layers, std::size_t entries, int total) {
  layers.resize(entries, 1);
  for (int& each : layers) each = std::max(each, 1);
  std::int64_t missing = total;
  for (const int each : layers) missing -= each;
  if (missing > 0) layers.back() += static_cast<int>(missing);
  for (std::size_t i = entries; i-- > 0 && missing < 0;) {
    const auto taken = std::min<std::int64_t>(-missing, layers[i] - 1);
    layers[i] -= static_cast<int>(taken);
    missing += taken;
  }
  return layers;
}

/// There are at least as many layers as virtual stages.
void check_layer_split(Faults& faults, const PlanSpec& plan, const models::TransformerSpec& model) {
  const std::vector<int>& layers = plan.layers_per_stage;
  if (layers.empty()) return;
  const auto entries = static_cast<std::size_t>(plan.pp) * static_cast<std::size_t>(plan.virtual_stages);
  std::int64_t sum = 0;
  for (const int each : layers) sum += each;
  std::string fault;
  if (layers.size() != entries) {
    fault = fmt::format("has {} entries, not pp * virtual_stages = {}", layers.size(), entries);
  } else if (std::any_of(layers.begin(), layers.end(), [](int each) { return each < 1; })) {
    fault = "has a stage without layers";
  } else if (sum != model.layers) {
    fault = fmt::format("sums up to {}, not to the {} layers of the model", sum, model.layers);
  }
  if (fault.empty()) return;
  faults.push_back(fmt::format("plan.layers_per_stage {} {}; nearest valid: {}", list_of(layers), fault,
                               list_of(nearest_split(layers, entries, model.layers))));
}

void check_schedule(Faults& faults, const PlanSpec& plan, const TrainingSpec& training) {
  if (plan.schedule == PipelineSchedule::interleaved && plan.virtual_stages == 1) {
    faults.push_back("plan.virtual_stages 1 leaves schedule interleaved nothing to interleave; nearest valid: 2");
  }
  if (plan.schedule != PipelineSchedule::interleaved && plan.virtual_stages > 1) {
    faults.push_back(fmt::format("plan.virtual_stages {} needs schedule interleaved; nearest valid with {}: 1",
                                 plan.virtual_stages, to_string(plan.schedule)));
  }
  if (plan.schedule == PipelineSchedule::zb_h2 && training.optimizer != Optimizer::none && training.clip_grad) {
    faults.push_back(
        "training.clip_grad true makes every stage wait for the last before its optimizer, which schedule zb_h2 is "
        "there to avoid; nearest valid: false");
  }
}

void check_model(Faults& faults, const PlanSpec& plan, const models::TransformerSpec& model) {
  if (plan.pp > model.layers) {
    faults.push_back(fmt::format("plan.pp {} is more than the {} layers of the model; nearest valid: {}",
                                 plan.pp, model.layers, model.layers));
  } else if (std::int64_t{plan.pp} * plan.virtual_stages > model.layers) {
    const int chunks = model.layers / plan.pp;
    faults.push_back(fmt::format("plan.virtual_stages {} x pp {} are more chunks than the {} layers of the model; nearest "
                                 "valid: {}",
                                 plan.virtual_stages, plan.pp, model.layers,
                                 chunks > 1 ? fmt::format("virtual_stages {}", chunks)
                                            : fmt::format("pp {}, or another schedule", std::max(1, model.layers / 2))));
  } else {
    check_layer_split(faults, plan, model);
  }
  if (plan.embedding == EmbeddingTable::replicated && model.embedding && model.head && model.tied_embeddings) {
    faults.push_back(
        "plan.embedding replicated needs a head with a table of its own (model.tied_embeddings: false); "
        "nearest valid: sharded");
  }
  if (model.layers > kMaxLayers) {
    faults.push_back(fmt::format("model.layers {} is more than {}", model.layers, kMaxLayers));
  }
}

/// A model that workloads can lower; config says the same of scenarios, with places.
void check_router(Faults& faults, const models::TransformerSpec& model) {
  if (model.top_k < 1 || model.top_k > model.experts) {
    faults.push_back(fmt::format("model.top_k {} is not one of 1 .. {} experts; nearest valid: {}", model.top_k,
                                 model.experts, std::clamp<std::int64_t>(model.top_k, 1, model.experts)));
  }
  const Rational factor = model.capacity_factor;
  const Rational largest(std::max<std::int64_t>(model.experts, 1), std::max<std::int64_t>(model.top_k, 1));
  if (factor <= Rational(0) || factor > largest) {
    faults.push_back(fmt::format("model.capacity_factor {} is not above 0 and at most experts / top_k = {}; nearest valid: {}",
                                 factor.to_string(), largest.to_string(), (factor > largest ? largest : Rational(1)).to_string()));
  }
  if (model.linear_bias) {
    faults.emplace_back("model.linear_bias true does not go with experts, which have no biases; nearest valid: false");
  }
}

/// ep has to divide the replicas and the experts.
void check_experts(Faults& faults, const PlanSpec& plan, const models::TransformerSpec& model) {
  if (!model.routes()) {
    if (plan.ep > 1) {
      faults.push_back(fmt::format("plan.ep {} shares out experts, but the model has none; nearest valid: 1", plan.ep));
    }
    return;
  }
  check_router(faults, model);
  const std::int64_t common = std::gcd<std::int64_t>(plan.dp, model.experts);
  if (common % plan.ep == 0) return;
  std::vector<std::string> nearest;
  std::int64_t below = std::min<std::int64_t>(plan.ep, common), above = plan.ep;
  while (common % below != 0) --below;
  nearest.push_back(std::to_string(below));
  while (above < common && common % above != 0) ++above;
  if (above <= common) nearest.push_back(std::to_string(above));
  const std::string dp = fmt::format("dp {}", plan.dp), experts = fmt::format("the {} experts of the model", model.experts);
  const bool cuts_dp = plan.dp % plan.ep != 0, cuts_experts = model.experts % plan.ep != 0;
  faults.push_back(fmt::format("plan.ep {} does not divide {}; nearest valid: {}", plan.ep,
                               cuts_dp && cuts_experts ? dp + " or " + experts : cuts_dp ? dp : experts,
                               join(nearest, " or ")));
}

/// The degrees of an operator have to make the tiles of a model group.
void check_product(Faults& faults, const PlanSpec& plan, Cut cut) {
  const auto [tp, tatp] = plan.degrees(cut);
  const std::string key = fmt::format("plan.operators.{}", to_string(cut));
  require_at_least_one(faults, (key + ".tp").c_str(), tp);
  require_at_least_one(faults, (key + ".tatp").c_str(), tatp);
  const std::int64_t tiles = std::int64_t{plan.tp} * plan.tatp;
  if (tp < 1 || tatp < 1 || std::int64_t{tp} * tatp == tiles) return;
  std::int64_t nearest = std::min<std::int64_t>(tp, tiles);
  while (tiles % nearest != 0) --nearest;
  faults.push_back(fmt::format(
      "{0}: tp {1} * tatp {2} are {3} tiles, but a model group has plan.tp {4} * plan.tatp {5} = {6}; nearest valid: tp {7} * "
      "tatp {8}",
      key, tp, tatp, std::int64_t{tp} * tatp, plan.tp, plan.tatp, tiles, nearest, tiles / nearest));
}

/// tp and tatp make one rectangle that operators can divide in other ways.
void check_operator_mapping(Faults& faults, const PlanSpec& plan) {
  std::vector<Axis> nested;
  for (const Axis axis : plan.order) {
    if (axis == Axis::tp || axis == Axis::tatp || plan.degree(axis) > 1) nested.push_back(axis);
  }
  const auto place = [&nested](Axis axis) { return std::find(nested.begin(), nested.end(), axis) - nested.begin(); };
  const bool both = place(Axis::tp) < std::ssize(nested) && place(Axis::tatp) < std::ssize(nested);
  if (both && std::abs(place(Axis::tp) - place(Axis::tatp)) != 1) {
    faults.emplace_back(
        "plan.operators divides the tiles of tp and tatp, which plan.mapping.order does not nest one in the other; nearest "
        "valid: an order with tp and tatp side by side");
  }
  for (const auto& [axis, mapping] : plan.mapping) {
    if (mapping.placement != Placement::strided && mapping.placement != Placement::optimized) continue;
    faults.push_back(fmt::format(
        "plan.mapping.{} {} does not go with plan.operators, whose operators divide one rectangle of tiles; nearest valid: block",
        to_string(axis), to_string(mapping.placement)));
  }
}

/// Operators with degrees of their own: each has to be valid as if the plan had its degrees.
void check_operators(Faults& faults, const PlanSpec& plan, const TrainingSpec& training, const models::TransformerSpec& model) {
  const std::size_t before = faults.size();
  for (const Cut cut : {Cut::attention, Cut::mlp}) check_product(faults, plan, cut);
  if (model.routes()) {
    faults.emplace_back(
        "plan.operators does not go with a mixture of experts (model.experts); nearest valid: none, one plan for both operators");
  }
  if (model.parallel_residual) {
    faults.emplace_back(
        "plan.operators does not go with model.parallel_residual, where both operators add to one sum; nearest valid: none, one "
        "plan for both operators");
  }
  check_operator_mapping(faults, plan);
  if (faults.size() > before) return;
  check_tokens(faults, plan, model);
  for (const Cut cut : {Cut::attention, Cut::mlp}) {
    const PlanSpec own = cut_plan(plan, cut);
    Faults found;
    if (cut == Cut::attention) {
      check_heads(found, own, model);
      if (found.empty()) check_stream_inputs(found, own, model, 0);
      check_sequence(found, own, training, model);
    } else {
      check_stream_inputs(found, own, model, 1);
      check_tokens(found, own, model);
    }
    for (const std::string& fault : found) {
      faults.push_back(fmt::format("with the degrees of plan.operators.{}: {}", to_string(cut), fault));
    }
  }
}

void check_batch(Faults& faults, const PlanSpec& plan, const TrainingSpec& training) {
  const std::int64_t unit = plan.dp * training.microbatch;
  const std::int64_t below = training.global_batch / unit * unit;
  if (training.global_batch != below) {
    const std::string nearest =
        below > 0 ? fmt::format("{} or {}", below, below + unit) : fmt::format("{}", below + unit);
    faults.push_back(
        fmt::format("training.global_batch {} is not a multiple of dp * microbatch = {}; nearest valid: {}",
                    training.global_batch, unit, nearest));
  }
  if (training.global_batch / unit > kMaxMicrobatches) {
    faults.push_back(
        fmt::format("training.global_batch {} makes more than {} microbatches a replica; nearest valid: {}",
                    training.global_batch, kMaxMicrobatches, kMaxMicrobatches * unit));
  }
}

void check_tiles(Faults& faults, const PlanSpec& plan, const topology::Mesh& mesh) {
  std::int64_t alive = 0;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) alive += mesh.alive(tile) ? 1 : 0;
  const std::int64_t replica = std::int64_t{plan.tp} * plan.tatp * plan.sp_degree * plan.pp;
  const std::int64_t needed = replica * plan.dp;
  if (needed <= alive) return;
  const std::int64_t replicas = alive / replica;
  std::string degrees = fmt::format("dp {}", plan.dp), inner;
  for (const Axis axis : default_order()) {
    const bool always = axis == Axis::tp || axis == Axis::pp;
    if (axis == Axis::dp || axis == Axis::ep || (plan.degree(axis) == 1 && !always)) continue;
    degrees += fmt::format(" * {} {}", to_string(axis), plan.degree(axis));
    inner += fmt::format("{}{}", inner.empty() ? "" : " * ", to_string(axis));
  }
  const std::string nearest =
      replicas >= plan.ep ? fmt::format("dp {}", replicas / plan.ep * plan.ep)
                          : fmt::format("dp {} with {} <= {}", plan.ep, inner, alive / plan.ep);
  faults.push_back(fmt::format("the plan needs {} tiles ({}), the wafer has {} that live; nearest valid: {}", needed,
                               degrees, alive, nearest));
}

}  // namespace

std::vector<Axis> default_order() { return {Axis::tp, Axis::tatp, Axis::sp, Axis::ep, Axis::pp, Axis::dp}; }

int& Ranks::at(Axis axis) {
  switch (axis) {
    case Axis::tp:
      return tp;
    case Axis::tatp:
      return tatp;
    case Axis::sp:
      return sp;
    case Axis::ep:
      return ep;
    case Axis::dp:
      return dp;
    case Axis::pp:
      return pp;
    case Axis::none:
      break;
  }
  throw InternalError("no rank belongs to no axis");
}

int Ranks::at(Axis axis) const { return Ranks(*this).at(axis); }
std::string to_string(const AxisMapping& mapping) {
  const std::string word = to_string(mapping.placement);
  return mapping.shape ? word + " " + topology::to_string(*mapping.shape) : word;
}

int PlanSpec::degree(Axis axis) const {
  switch (axis) {
    case Axis::tp:
      return tp;
    case Axis::tatp:
      return tatp;
    case Axis::sp:
      return sp_degree;
    case Axis::ep:
      return ep;
    case Axis::dp:
      return dp / std::max(ep, 1);
    case Axis::pp:
      return pp;
    case Axis::none:
      break;
  }
  return 1;
}

OperatorDegrees PlanSpec::degrees(Cut cut) const {
  const OperatorDegrees own{tp, tatp};
  if (cut == Cut::attention) return attention.value_or(own);
  return cut == Cut::mlp ? mlp.value_or(own) : own;
}

bool PlanSpec::splits_operators() const {
  return degrees(Cut::attention) != degrees(Cut::plan) || degrees(Cut::mlp) != degrees(Cut::plan);
}

PlanSpec cut_plan(const PlanSpec& plan, Cut cut) {
  PlanSpec result = plan;
  const OperatorDegrees degrees = plan.degrees(cut);
  result.tp = degrees.tp;
  result.tatp = degrees.tatp;
  result.attention.reset();
  result.mlp.reset();
  return result;
}

AxisMapping PlanSpec::axis_mapping(Axis axis) const {
  const auto found = mapping.find(axis);
  return found == mapping.end() ? AxisMapping{} : found->second;
}


Bytes element_bytes(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return 4;
    case Precision::bf16:
    case Precision::fp16:
      return 2;
    case Precision::fp8:
      return 1;
  }
  return 0;
}

Bytes gradient_bytes(const TrainingSpec& training) {
  if (training.gradient_precision) return element_bytes(*training.gradient_precision);
  return element_bytes(training.precision == Precision::fp8 ? Precision::bf16 : training.precision);
}

void validate_plan(const PlanSpec& plan, const TrainingSpec& training, const models::TransformerSpec& model,
                   const topology::Mesh& mesh) {
  Faults faults;
  check_counts(faults, plan, training);
  check_order(faults, plan);
  if (faults.empty()) {
    check_schedule(faults, plan, training);
    const bool split = plan.splits_operators();
    if (!split) check_heads(faults, plan, model);
    check_model(faults, plan, model);
    for (int pair = 0; !split && plan.tp <= model.heads && pair < kPairs; ++pair) check_stream_inputs(faults, plan, model, pair);
    check_experts(faults, plan, model);
    if (!split) check_sequence(faults, plan, training, model);
    if (split) check_operators(faults, plan, training, model);
    check_batch(faults, plan, training);
    check_tiles(faults, plan, mesh);
  }
  if (!faults.empty()) throw PlanError(join(faults, "; "));
}

}  // namespace wafersim::workloads
