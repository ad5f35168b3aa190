#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/lowering.h"
#include "workloads/program_outline.h"
#include "workloads/schedule.h"
#include "workloads/step_memory.h"

namespace wafersim::workloads {

/// What the first tiles of the stages of plans may hold. A plan for which these have no room does not fit, and to know that costs
/// a small part of lower().
///
/// Plans have much in common here: what a step holds does not depend on the schedule and the number of microbatches, and what its
/// templates are made from is remembered with it, so that a plan whose steps have all been seen costs a walk along its programs.
/// Inputs may differ in plan, training and routing alone. May be asked by many threads.
class FirstTiles {
 public:
  /// Of a valid plan: the bound of its first tile or, where that fits, of the first tiles of all stages of its first replica.
  /// Equal to the bounds of these tiles in lower(). Throws PlanError when the plan cannot be laid out.
  MemoryBound bound(const LoweringInput& input);
  /// Bytes that are remembered, about; kept below kMostBytes: what would exceed it makes all be forgotten.
  Bytes remembered() const;
  static constexpr Bytes kMostBytes = Bytes{1} << 28;

 private:
  /// A step of a rank, its operations forgotten.
  struct Slot {
    std::string name;  ///< of its template
    StepMemory memory;
  };
  /// What the first rank of a stage holds, whichever layers these are.
  struct Stage {
    TileId tile = kNoTile;
    HeldBuckets others;        ///< than those of layers
    bool sums_layers = false;  ///< their gradients
    std::array<Bytes, kMemoryClasses> resident{};
  };
  class Plan;

  MemoryBound bound(Plan& plan, int stages);
  /// `layers`: how many the stage has.
  Stage stage(Plan& plan, int number, std::size_t layers);
  Slot slot(Plan& plan, int number, std::size_t layers, const OutlineSlot& slot);
  std::vector<std::int32_t> in_flight(const PipelineShape& shape);
  template <class Value, class Make>
  Value recall(std::unordered_map<std::string, Value>& known, const std::string& key, const Make& make);

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Slot> slots_;
  std::unordered_map<std::string, Stage> stages_;
  std::unordered_map<std::string, std::vector<std::int32_t>> in_flight_;
  Bytes remembered_ = 0;
};

}  // namespace wafersim::workloads
