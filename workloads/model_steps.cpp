#include "workloads/model_steps.h"

namespace wafersim::workloads {

namespace {

/// Before the backward step of a group's last layer.
void add_recompute_steps(std::vector<ModelStep>& steps, ScheduleSlot slot, const LayerRange& group, std::int32_t layer) {
  if (layer != group.last()) return;
  slot.pass = Pass::recompute;
  for (std::int32_t again = group.first; again < layer; ++again) steps.push_back({StepKind::layer, slot, again});
}

/// A layer at boundaries of these chunks instead of the first one.
StepTemplate with_chunks(StepTemplate step, Pass pass, const LayerEdges& at) {
  const bool forward = pass == Pass::forward;
  for (Op& op : step.ops) {
    if (op.scope != MatchScope::microbatch) continue;
    const bool towards_first = (op.kind == OpKind::receive) == forward;
    op.channel = boundary_channel(forward ? Boundary::forward : Boundary::backward,
                                  towards_first ? at.input_chunk : at.output_chunk);
  }
  return step;
}

}  // namespace

std::vector<ModelStep> model_steps(const PlanStages& plan, const Ranks& ranks) {
  const int every = plan.input().training.recompute_every;
  std::vector<ModelStep> steps;
  for (const ScheduleSlot& slot : schedule_order(pipeline_shape(plan.plan(), plan.input().training), ranks.pp)) {
    const LayerRange range = plan.layers(ranks, slot.chunk);
    const bool forward = slot.pass == Pass::forward;
    // Embedding and head make all their gradients in the backward pass: the embedding has no others, and the head
    // would have to keep the gradients of its logits.
    const bool ends = slot.pass != Pass::weight;
    const bool first = ends && plan.embeds(ranks, slot.chunk), last = ends && plan.heads(ranks, slot.chunk);
    if (forward ? first : last) steps.push_back({forward ? StepKind::embedding : StepKind::head, slot, -1});
    for (std::int32_t i = 0; i < range.count; ++i) {
      const std::int32_t layer = forward ? range.first + i : range.last() - i;
      if (slot.pass == Pass::backward) add_recompute_steps(steps, slot, group_of(range, every, layer), layer);
      steps.push_back({StepKind::layer, slot, layer});
    }
    if (forward ? last : first) steps.push_back({forward ? StepKind::head : StepKind::embedding, slot, -1});
  }
  return steps;
}

GroupPlace recompute_place(const PlanStages& plan, const Ranks& ranks, const ModelStep& step) {
  const LayerRange group =
      group_of(plan.layers(ranks, step.slot.chunk), plan.input().training.recompute_every, step.layer);
  return {step.layer == group.first, step.layer == group.last()};
}

bool fills_gradients(const PlanSpec& plan, const ModelStep& step) {
  if (step.slot.pass == Pass::forward || step.slot.pass == Pass::recompute) return false;
  return step.kind != StepKind::layer || !splits_backward(plan.schedule) || step.slot.pass == Pass::weight;
}

std::vector<std::int32_t> completed_buckets(const PlanStages& plan, const ModelStep& step) {
  if (!fills_gradients(plan.plan(), step)) return {};
  std::vector<std::int32_t> result = used_buckets(plan.input().model, step.kind, step.layer);
  // A table that is tied on one stage is complete after the embedding only.
  if (step.kind == StepKind::head) std::erase(result, -1);
  return result;
}

ModelStepKind kind_of(const PlanStages& plan, const Ranks& ranks, const ModelStep& step) {
  const Pass pass = step.slot.pass;
  ModelStepKind kind{step.kind, pass, {}, {}};
  if (step.kind == StepKind::layer && (pass == Pass::forward || pass == Pass::backward)) {
    kind.edges = plan.edges(ranks, step.slot.chunk, step.layer);
    kind.place = recompute_place(plan, ranks, step);
  }
  if (pass == Pass::backward) kind.place.first = true;
  return kind;
}

std::uint32_t ModelTemplates::of(const ModelStepKind& step, std::int32_t layer, const Ranks& ranks) {
  // Where parameters are shared out, replicas differ in what they give up.
  const int replica = plan_.plan().shards_parameters() ? plan_.plan().replica(ranks) : 0;
  const auto key = std::tuple(step, plan_.context(ranks).shard.rank, replica);
  const auto known = made_.find(key);
  if (known != made_.end()) return known->second;
  const auto put = [&](StepTemplate made) { return made_[key] = add_template(trace_, std::move(made)); };
  if (step.kind != StepKind::layer) return put(make_end(step.kind, step.pass, ranks));
  const bool at_boundary = step.edges.input == EdgeKind::remote || step.edges.output == EdgeKind::remote;
  if (!at_boundary || plan_.plan().virtual_stages == 1) {
    return put(make_layer(step.pass, ranks, step.edges, step.place, layer));
  }
  // Chunks differ in the channels of their boundaries alone.
  ModelStepKind first = step;
  first.edges.input_chunk = first.edges.output_chunk = 0;
  const auto [made, fresh] = first_chunks_.try_emplace(std::tuple(first, std::get<1>(key), replica));
  if (fresh) made->second = make_layer(step.pass, ranks, first.edges, step.place, layer);
  return put(with_chunks(made->second, step.pass, step.edges));
}

template <class Emit>
StepTemplate ModelTemplates::make(const char* name, const Ranks& ranks, const std::vector<Bucket>& written,
                                  const std::vector<Bucket>& used, SeenFrom from, Emit&& emit) {
  StepEmitter step(trace_, name, plan_.context(ranks));
  if (plan_.plan().shards_gradients()) {
    for (const Bucket& bucket : written) hold_gradients(step, bucket);
  }
  emit(step);
  if (plan_.plan().shards_parameters()) {
    for (const Bucket& bucket : used) release_parameters(step, plan_.replicas(ranks), bucket, from);
  }
  return step.take();
}

StepTemplate ModelTemplates::make_layer(Pass pass, const Ranks& ranks, const LayerEdges& at, const GroupPlace& place,
                                        std::int32_t layer) {
  const models::Recompute recompute = plan_.input().training.recompute;
  const std::vector<Bucket> own = {plan_.buckets(ranks).at(layer)};
  const bool splits = splits_backward(plan_.plan().schedule);
  if (pass == Pass::weight) return make("layer.weight", ranks, own, {}, SeenFrom::own_step, emit_layer_weight);
  if (pass == Pass::forward) {
    return make("layer.forward", ranks, {}, own, SeenFrom::own_step,
                [&](StepEmitter& step) { emit_layer_forward(step, at, recompute, place); });
  }
  if (pass == Pass::recompute) return make("layer.recompute", ranks, {}, own, SeenFrom::own_step, emit_layer_recompute);
  // Norms have their gradients in the backward step even where the weights have a step of their own, whose buffer
  // theirs, which are small, are counted in.
  const auto weights = splits ? WeightGradients::own_step : WeightGradients::backward_step;
  return make("layer.backward", ranks, splits ? std::vector<Bucket>{} : own, own, SeenFrom::own_step,
              [&](StepEmitter& step) {
                emit_layer_backward(step, at, place.last ? recompute : models::Recompute::none, weights);
              });
}

StepTemplate ModelTemplates::make_end(StepKind kind, Pass pass, const Ranks& ranks) {
  const models::TransformerSpec& model = plan_.input().model;
  const bool forward = pass == Pass::forward;
  const std::map<std::int32_t, Bucket>& all = plan_.buckets(ranks);
  std::vector<Bucket> used, written;
  for (const std::int32_t number : used_buckets(model, kind, -1)) {
    const auto found = all.find(number);
    if (found == all.end()) continue;
    used.push_back(found->second);
    // The head is the first to write to a table that is tied on its stage.
    const bool by_head = kind == StepKind::embedding && number == -1 && plan_.has_head(ranks) && model.tied_embeddings;
    if (!forward && !by_head) written.push_back(found->second);
  }
  if (kind == StepKind::head && !model.tied_embeddings) {
    // The embedding's weights are not the head's.
    std::erase_if(used, [](const Bucket& bucket) { return bucket.layer == -1; });
    std::erase_if(written, [](const Bucket& bucket) { return bucket.layer == -1; });
  }
  // The embedding's parameters are those of its own step's layer.
  if (kind == StepKind::embedding) {
    for (Bucket& bucket : used) bucket.layer = -1;
  }
  const SeenFrom from = kind == StepKind::embedding ? SeenFrom::own_step : SeenFrom::elsewhere;
  const auto made = [&](const char* name, auto emit) { return make(name, ranks, written, used, from, emit); };
  if (kind == StepKind::embedding) {
    const bool replicated = plan_.plan().embedding == EmbeddingTable::replicated;
    const auto look_up = replicated ? emit_replicated_embedding_forward : emit_embedding_forward;
    const auto scatter = replicated ? emit_replicated_embedding_backward : emit_embedding_backward;
    return made(forward ? "embedding.forward" : "embedding.backward", forward ? look_up : scatter);
  }
  return made(forward ? "head.forward" : "head.backward", forward ? emit_head_forward : emit_head_backward);
}

}  // namespace wafersim::workloads
