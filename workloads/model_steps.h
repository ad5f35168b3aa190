#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "workloads/end_steps.h"
#include "workloads/plan_ranks.h"

namespace wafersim::workloads {

/// A foreground step of the model.
struct ModelStep {
  StepKind kind = StepKind::layer;
  ScheduleSlot slot;
  std::int32_t layer = -1;
};

/// The steps of the model in one iteration of a rank, in order.
std::vector<ModelStep> model_steps(const PlanStages& plan, const Ranks& ranks);

/// Where a layer stands among those of its chunk that keep one input together. Its last one makes what it needs again in
/// its backward step; before it, the others have recompute steps of their own.
GroupPlace recompute_place(const PlanStages& plan, const Ranks& ranks, const ModelStep& step);

/// Whether a step makes gradients of weights.
bool fills_gradients(const PlanSpec& plan, const ModelStep& step);

/// The buckets whose gradients are complete for their microbatch after a step.
std::vector<std::int32_t> completed_buckets(const PlanStages& plan, const ModelStep& step);

/// What decides, for a given rank, what a step of the model does: steps with equal kinds share a template.
struct ModelStepKind {
  StepKind kind = StepKind::layer;
  Pass pass = Pass::forward;
  LayerEdges edges;
  GroupPlace place;
  auto operator<=>(const ModelStepKind&) const = default;
};
ModelStepKind kind_of(const PlanStages& plan, const Ranks& ranks, const ModelStep& step);

/// Writes the templates of model steps into a trace, each once.
class ModelTemplates {
 public:
  /// Both must outlive this.
  ModelTemplates(Trace& trace, const PlanRanks& plan) : trace_(trace), plan_(plan) {}

  /// The template of a step of that kind of a layer; -1: of an end.
  std::uint32_t of(const ModelStepKind& step, std::int32_t layer, const Ranks& ranks);

 private:
  /// What zero 2 and 3 hold and give up goes around `emit`. `written`: the buckets whose gradients the step is the first
  /// to write; `used`: those whose weights it uses.
  template <class Emit>
  StepTemplate make(const char* name, const Ranks& ranks, const std::vector<Bucket>& written,
                    const std::vector<Bucket>& used, SeenFrom from, Emit&& emit);
  StepTemplate make_layer(Pass pass, const Ranks& ranks, const LayerEdges& at, const GroupPlace& place, std::int32_t layer);
  StepTemplate make_end(StepKind kind, Pass pass, const Ranks& ranks);

  Trace& trace_;
  const PlanRanks& plan_;
  using Key = std::tuple<ModelStepKind, InnerRank, int>;
  std::map<Key, std::uint32_t> made_;
  std::map<Key, StepTemplate> first_chunks_;  ///< layers at boundaries, as if these were all of the first chunk
};

}  // namespace wafersim::workloads
