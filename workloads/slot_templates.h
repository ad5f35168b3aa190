#pragma once

#include <cstdint>
#include <map>

#include "workloads/program_outline.h"

namespace wafersim::workloads {

/// Writes the templates of the steps of outlines into a trace, each once.
class SlotTemplates {
 public:
  /// Both must outlive this.
  SlotTemplates(Trace& trace, const PlanRanks& plan) : model_(trace, plan), background_(trace, plan) {}

  /// Of the sums of a rank's gradients, by bucket.
  std::map<std::int32_t, std::uint32_t> syncs(const Ranks& ranks) { return background_.syncs(ranks); }
  /// Of a slot of a rank whose syncs() are these.
  std::uint32_t of(const OutlineSlot& slot, const Ranks& ranks, const std::map<std::int32_t, std::uint32_t>& syncs);

 private:
  ModelTemplates model_;
  BackgroundTemplates background_;
};

/// Parameters, gradients and optimizer states that a rank holds before the first step.
std::array<Bytes, kMemoryClasses> resident_bytes(const PlanRanks& plan, const Ranks& ranks);

}  // namespace wafersim::workloads
