#include "workloads/program_outline.h"

#include <algorithm>
#include <utility>

namespace wafersim::workloads {

namespace {

using What = OutlineSlot::What;

class Outliner {
 public:
  Outliner(const PlanStages& plan, const Ranks& ranks, const HeldBuckets& held)
      : plan_(plan), ranks_(ranks), held_(held), steps_(model_steps(plan, ranks)) {}

  ProgramOutline run() {
    for (int iteration = 0; iteration < plan_.input().training.iterations; ++iteration) {
      builder_.start_iteration(iteration);
      add_model();
      add_update();
    }
    outline_.program = builder_.finish();
    return std::move(outline_);
  }

 private:
  std::uint32_t slot(OutlineSlot wanted) {
    OutlineSlot alike = wanted;
    if (wanted.what == What::model) alike.number = 0;
    const auto [known, fresh] = known_.try_emplace(alike, static_cast<std::uint32_t>(outline_.slots.size()));
    if (fresh) outline_.slots.push_back(wanted);
    return known->second;
  }

  void add_model() {
    const LoweringInput& input = plan_.input();
    const std::int32_t microbatches = pipeline_shape(input.plan, input.training).microbatches;
    const bool every_microbatch = input.plan.shards_gradients();
    const auto gather = [this](std::int32_t bucket) { return slot({What::gather, {}, bucket}); };
    ParameterPrefetch prefetch = parameter_prefetch(builder_, plan_, held_.all, steps_, gather);
    GradientBuffers buffers;
    for (std::size_t number = 0; number < steps_.size(); ++number) {
      const ModelStep& step = steps_[number];
      const std::vector<std::int32_t> used = used_buckets(input.model, step.kind, step.layer);
      std::vector<std::uint32_t> waits = prefetch.waits_of(number);
      if (every_microbatch && fills_gradients(input.plan, step)) buffers.wait(used, waits);
      builder_.foreground({.step_template = slot({What::model, kind_of(plan_, ranks_, step), step.layer}),
                           .kind = step.kind,
                           .pass = step.slot.pass,
                           .layer = step.layer,
                           .microbatch = step.slot.microbatch},
                          used, waits);
      if (!every_microbatch && step.slot.microbatch != microbatches - 1) continue;
      for (const std::int32_t bucket : completed_buckets(plan_, step)) {
        if (!std::binary_search(held_.summed.begin(), held_.summed.end(), bucket)) continue;
        buffers.add(bucket, builder_.gradient_sync({.step_template = slot({What::sync, {}, bucket}),
                                                    .kind = StepKind::gradient_sync,
                                                    .layer = bucket,
                                                    .microbatch = every_microbatch ? step.slot.microbatch : -1}));
      }
    }
  }

  void add_update() {
    if (plan_.ties(ranks_)) {
      builder_.tied_gradient_sync({.step_template = slot({What::tied_sync, {}, 0}), .kind = StepKind::gradient_sync});
    }
    if (plan_.input().training.optimizer == Optimizer::none) return;
    builder_.optimizer({.step_template = slot({What::optimizer, {}, 0}), .kind = StepKind::optimizer});
    if (!gathers_updates(plan_)) return;
    for (const std::int32_t number : held_.all) {
      builder_.parameter_gather(
          {.step_template = slot({What::gather, {}, number}), .kind = StepKind::parameter_gather, .layer = number});
    }
  }

  const PlanStages& plan_;
  const Ranks& ranks_;
  const HeldBuckets& held_;
  const std::vector<ModelStep> steps_;
  ProgramBuilder builder_;
  ProgramOutline outline_;
  std::map<OutlineSlot, std::uint32_t> known_;
};

}  // namespace

HeldBuckets held_buckets(const PlanRanks& plan, const Ranks& ranks, const std::map<std::int32_t, std::uint32_t>& syncs) {
  HeldBuckets held;
  for (const auto& [number, bucket] : plan.buckets(ranks)) held.all.push_back(number);
  for (const auto& [number, sync] : syncs) held.summed.push_back(number);
  return held;
}

ProgramOutline make_outline(const PlanStages& plan, const Ranks& ranks, const HeldBuckets& held) {
  return Outliner(plan, ranks, held).run();
}

}  // namespace wafersim::workloads
