#include "workloads/background_steps.h"

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

std::map<std::int32_t, std::uint32_t> sync_templates(Trace& trace, const PlanRanks& plan, const Ranks& ranks) {
  std::map<std::int32_t, std::uint32_t> result;
  const Replicas replicas = plan.replicas(ranks);
  for (const auto& [layer, bucket] : plan.buckets(ranks)) {
    StepEmitter step(trace, "gradient_sync", plan.context(ranks));
    if (replicas.all.size == 1 && !needs_inner_sync(step, bucket)) continue;
    emit_gradient_sync(step, replicas, bucket);
    result[layer] = step.finish();
  }
  return result;
}

void add_tied_gradient_sync(ProgramBuilder& program, Trace& trace, const PlanRanks& plan, const Ranks& ranks) {
  if (!plan.ties(ranks)) return;
  const Bucket bucket = plan.buckets(ranks).at(tied_bucket(plan.input().model));
  program.tied_gradient_sync(
      {.step_template = make_template(
           "gradient_sync.tied", trace, plan, ranks,
           [&](StepEmitter& step) { emit_tied_gradient_sync(step, plan.replicas(ranks), plan.ends(ranks), bucket); }),
       .kind = StepKind::gradient_sync});
}

void add_update(ProgramBuilder& program, Trace& trace, const PlanRanks& plan, const Ranks& ranks) {
  if (plan.input().training.optimizer == Optimizer::none) return;
  const std::map<std::int32_t, Bucket> buckets = plan.buckets(ranks);
  std::vector<Bucket> all;
  for (const auto& [layer, bucket] : buckets) all.push_back(bucket);
  program.optimizer(
      {.step_template = make_template(
           "optimizer", trace, plan, ranks,
           [&](StepEmitter& step) { emit_optimizer(step, plan.replicas(ranks), all, norm_groups(plan, ranks)); }),
       .kind = StepKind::optimizer});
  if (!plan.plan().shards_optimizer() || plan.plan().shards_parameters()) return;
  for (const auto& [layer, bucket] : buckets) {
    const std::uint32_t gather =
        make_template("parameter_gather", trace, plan, ranks,
                      [&](StepEmitter& step) { emit_parameter_gather(step, plan.replicas(ranks), bucket); });
    program.parameter_gather({.step_template = gather, .kind = StepKind::parameter_gather, .layer = layer});
  }
}

ParameterPrefetch parameter_prefetch(ProgramBuilder& program, Trace& trace, const PlanRanks& plan, const Ranks& ranks,
                                     const std::vector<ModelStep>& steps) {
  ParameterPrefetch prefetch(program, plan.plan().overlap_far);
  if (!plan.plan().shards_parameters()) return prefetch;
  const models::TransformerSpec& model = plan.input().model;
  const std::map<std::int32_t, Bucket> held = plan.buckets(ranks);
  std::map<std::int32_t, std::uint32_t> made;
  for (const ModelStep& step : steps) {
    std::vector<Step> gathers;
    for (const std::int32_t number : used_buckets(model, step.kind, step.layer)) {
      const auto found = held.find(number);
      const bool elsewhere = step.kind == StepKind::head && number == -1 && !model.tied_embeddings;
      if (found == held.end() || elsewhere || step.slot.pass == Pass::weight) continue;
      const auto [known, fresh] = made.emplace(number, 0U);
      if (fresh) {
        known->second = make_template(
            "parameter_gather", trace, plan, ranks,
            [&](StepEmitter& emitter) { emit_parameter_gather(emitter, plan.replicas(ranks), found->second); });
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

}  // namespace wafersim::workloads
