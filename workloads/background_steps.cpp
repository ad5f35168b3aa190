#include "workloads/background_steps.h"

#include <algorithm>
#include <utility>

namespace wafersim::workloads {

namespace {

template <class Emit>
std::uint32_t make_template(const char* name, Trace& trace, const PlanRanks& plan, const Ranks& ranks, Emit&& emit) {
  StepEmitter step(trace, name, plan.context(ranks));
  emit(step);
  return step.finish();
}

/// Over which groups the gradient norm is summed. Replicas hold the same gradients unless they share them out, but for
/// those of experts.
std::vector<Group> norm_groups(const PlanRanks& plan, const Ranks& ranks) {
  const RankContext& context = plan.context(ranks);
  std::vector<Group> result{context.tp, context.tatp, context.sp, plan.group(Axis::pp, ranks.pp)};
  result.push_back(plan.plan().shards_optimizer() ? plan.replicas(ranks).all : context.ep);
  return result;
}

}  // namespace

bool BackgroundTemplates::is_layer(std::int32_t bucket) const { return bucket >= 0 && bucket < plan_.input().model.layers; }

BackgroundTemplates::Key BackgroundTemplates::key(std::int32_t bucket, const Ranks& ranks) const {
  return {plan_.context(ranks).shard.rank, plan_.plan().replica(ranks), is_layer(bucket) ? 0 : bucket};
}

std::map<std::int32_t, std::uint32_t> BackgroundTemplates::syncs(const Ranks& ranks) {
  std::map<std::int32_t, std::uint32_t> result;
  const Replicas replicas = plan_.replicas(ranks);
  const auto make = [&](const Bucket& bucket) -> std::optional<std::uint32_t> {
    StepEmitter step(trace_, "gradient_sync", plan_.context(ranks));
    if (replicas.all.size == 1 && !needs_inner_sync(step, bucket)) return std::nullopt;
    emit_gradient_sync(step, replicas, bucket);
    return step.finish();
  };
  for (const auto& [number, bucket] : plan_.buckets(ranks)) {
    std::optional<std::uint32_t> made;
    if (is_layer(number)) {
      const auto [known, fresh] = syncs_.try_emplace(key(number, ranks));
      if (fresh) known->second = make(bucket);
      made = known->second;
    } else {
      made = make(bucket);
    }
    if (made) result[number] = *made;
  }
  return result;
}

std::uint32_t BackgroundTemplates::tied_sync(const Ranks& ranks) {
  const Bucket& bucket = plan_.buckets(ranks).at(tied_bucket(plan_.input().model));
  return make_template("gradient_sync.tied", trace_, plan_, ranks, [&](StepEmitter& step) {
    emit_tied_gradient_sync(step, plan_.replicas(ranks), plan_.ends(ranks), bucket);
  });
}

std::uint32_t BackgroundTemplates::optimizer(const Ranks& ranks) {
  std::vector<Bucket> all;
  for (const auto& [layer, bucket] : plan_.buckets(ranks)) all.push_back(bucket);
  return make_template("optimizer", trace_, plan_, ranks, [&](StepEmitter& step) {
    emit_optimizer(step, plan_.replicas(ranks), all, norm_groups(plan_, ranks));
  });
}

std::uint32_t BackgroundTemplates::gather(std::int32_t bucket, const Ranks& ranks) {
  const auto make = [&] {
    return make_template("parameter_gather", trace_, plan_, ranks, [&](StepEmitter& step) {
      emit_parameter_gather(step, plan_.replicas(ranks), plan_.buckets(ranks).at(bucket));
    });
  };
  if (!is_layer(bucket)) return make();
  const auto known = gathers_.find(key(bucket, ranks));
  return known != gathers_.end() ? known->second : gathers_.emplace(key(bucket, ranks), make()).first->second;
}

bool gathers_updates(const PlanStages& plan) { return plan.plan().shards_optimizer() && !plan.plan().shards_parameters(); }

ParameterPrefetch parameter_prefetch(ProgramBuilder& program, const PlanStages& plan, const std::vector<std::int32_t>& held,
                                     const std::vector<ModelStep>& steps,
                                     const std::function<std::uint32_t(std::int32_t)>& gather) {
  ParameterPrefetch prefetch(program, plan.plan().overlap_far);
  if (!plan.plan().shards_parameters()) return prefetch;
  const models::TransformerSpec& model = plan.input().model;
  for (const ModelStep& step : steps) {
    std::vector<Step> gathers;
    for (const std::int32_t number : used_buckets(model, step.kind, step.layer)) {
      const bool elsewhere = step.kind == StepKind::head && number == -1 && !model.tied_embeddings;
      if (!std::binary_search(held.begin(), held.end(), number) || elsewhere || step.slot.pass == Pass::weight) continue;
      gathers.push_back({.step_template = gather(number),
                         .kind = StepKind::parameter_gather,
                         .pass = step.slot.pass,
                         .layer = number,
                         .microbatch = step.slot.microbatch});
    }
    prefetch.add(std::move(gathers));
  }
  return prefetch;
}

}  // namespace wafersim::workloads
