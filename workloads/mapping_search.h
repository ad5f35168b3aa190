#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "topology/link_loads.h"
#include "workloads/lowering.h"

namespace wafersim::workloads {

/// What a search for a mapping has found. Loads are bytes of one iteration.
struct MappingReport {
  /// What was chosen for the axes of degree above 1 that were left to the search, as a scenario writes it.
  std::vector<std::pair<Axis, AxisMapping>> chosen;
  std::vector<Axis> order;       ///< nesting from the inside out
  bool order_searched = false;   ///< it was left to the search, too
  bool exhaustive = false;       ///< every candidate was measured
  std::uint64_t candidates = 0;  ///< combinations of placements, shapes and nestings
  std::uint64_t measured = 0;
  std::optional<topology::LoadSummary>
      before;                   ///< of the standard mapping; nothing when it cannot be laid out
  topology::LoadSummary after;  ///< of the chosen one
};

/// A plan whose mapping is written out, and how it came about where something was left to choose.
struct MappingChoice {
  PlanSpec plan;
  std::optional<MappingReport> report;
};

/// How long a search may be.
struct SearchLimits {
  /// Up to this many candidates are measured all, otherwise the search anneals. Large plans measure fewer.
  std::uint64_t exhaustive_candidates = 20'000;
  /// Tiles laid out and measured in all: about a second of time where routes are straight (xy and yx without
  /// faults), some seconds otherwise.
  std::uint64_t tiles = std::uint64_t{1} << 22;
  /// Measurements that annealing makes at least, whatever the plan's size, and at most.
  std::uint64_t least_measured = 64;
  std::uint64_t most_measured = 40'000;
};

/// Chooses the placement, the shape and (unless `plan.order_given`) the nesting of the axes whose placement
/// is `optimized`: the candidate whose largest link load is smallest, then the one with the fewest bytes x
/// hops, then the first. The traffic is that of plan_traffic(), on the routes of `routing`.
///
/// Candidates: for each axis every rows x cols as a block, a snake, and strided where the axis is not the
/// innermost; a block of one row or column is `row` or `col`. All nestings of the axes of degree above 1. The
/// first candidate is the standard mapping, so the result is never worse. Axes of degree 1 become `standard`.
///
/// Few candidates are all measured. Otherwise simulated annealing with a fixed seed and integers only changes
/// one placement or the nesting at a time, and ends with a descent from the best mapping it has met.
///
/// A plan without `optimized` axes comes back as it is, without a report. Throws PlanError when the plan
/// cannot run (validate_plan), when no candidate fits the mesh (the fault of the standard mapping) or when
/// none has live routes.
MappingChoice choose_mapping(const LoweringInput& input, const topology::Routing& routing,
                             const SearchLimits& limits = {});

}  // namespace wafersim::workloads
