#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "workloads/background_steps.h"
#include "workloads/model_steps.h"

namespace wafersim::workloads {

/// What a step of an outline stands for.
struct OutlineSlot {
  enum class What : std::uint8_t { model, sync, gather, tied_sync, optimizer };
  What what = What::model;
  ModelStepKind step{};     ///< model
  std::int32_t number = 0;  ///< model: a layer that has such a step; sync, gather: the bucket
  auto operator<=>(const OutlineSlot&) const = default;
};

/// The program of a stage without its templates: ranks of the stage differ in these alone.
struct ProgramOutline {
  Program program;                 ///< `step_template` of its steps: index into `slots`
  std::vector<OutlineSlot> slots;  ///< in the order in which their templates are to be made
};

/// The numbers of the buckets that a rank holds, and of those whose gradients it sums, ascending.
struct HeldBuckets {
  std::vector<std::int32_t> all;
  std::vector<std::int32_t> summed;
  auto operator<=>(const HeldBuckets&) const = default;
};
/// `syncs`: by bucket.
HeldBuckets held_buckets(const PlanRanks& plan, const Ranks& ranks, const std::map<std::int32_t, std::uint32_t>& syncs);

/// Of `ranks` and all that have the same stage and buckets.
ProgramOutline make_outline(const PlanStages& plan, const Ranks& ranks, const HeldBuckets& held);

}  // namespace wafersim::workloads
