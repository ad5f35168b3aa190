#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/plan_predictor.h"

namespace wafersim::analysis {

/// A plan that a search has looked at.
struct SearchedPlan {
  PlanPoint point;
  PlanFamily family = PlanFamily::all;  ///< of the search that met it first
  std::size_t base = 0;  ///< of a plan with another mapping or routing: the number of the plan it came from; else its own
  PlanVerdict verdict;
  std::optional<Cycle> simulated;
  std::optional<double> simulated_joules;  ///< where energy is modelled
  std::string simulation_fault;  ///< why it was not simulated to the end
  bool fits() const { return verdict.outcome == PlanVerdict::Outcome::predicted; }
};

struct SearchOptions {
  std::size_t most_plans = 2000;  ///< predictions of the outer level
  std::size_t finalists = 10;     ///< plans for which mappings are searched
  std::size_t walk = 12;          ///< mappings of each that are drawn
  std::uint64_t seed = 1;
  /// What PlanPredictor::predict() says of each point, asked in any order and anywhere; nothing for those that an interrupt has
  /// left out. The search goes on without them.
  std::function<std::vector<std::optional<PlanVerdict>>(const std::vector<PlanPoint>&)> predict;
  /// What PlanPredictor::divided() says of a plan; where this is empty, operators have the plan's degrees.
  std::function<std::optional<PlanPoint>(const PlanPoint&)> divide;
  /// Asked before each batch whether the outer, the inner level is to end.
  std::function<bool()> stop_outer = [] { return false; };
  std::function<bool()> stop_inner = [] { return false; };
  /// Called after each batch: plans looked at, plans to look at, the best so far (null: none fits yet).
  std::function<void(std::size_t, std::size_t, const SearchedPlan*)> progress = [](std::size_t, std::size_t,
                                                                                   const SearchedPlan*) {};
};

/// What a search of one family has found.
struct SearchResult {
  PlanFamily family = PlanFamily::all;
  std::size_t space = 0;                     ///< valid plans
  std::size_t too_large = 0;                 ///< of these: whose parameters, gradients and optimizer states alone exceed a tile
  std::string first_fault;                   ///< of a plan that is not valid
  std::vector<SearchedPlan> plans;           ///< in the order in which they were looked at
  bool whole = false;                        ///< the outer level has looked at all but those that are too large
  std::vector<std::size_t> ranking() const;  ///< fitting plans, one mapping of each, the fastest by prediction first
};

/// Dual-level search. Outer level: plans of the space in the order of their estimates, each corrected by what predictions of
/// plans with the same degrees were, in batches of which a share is drawn at random; all of them where `most_plans` allows it.
/// Where operators may have degrees of their own, the fastest plans are looked at with the cheapest ones, too, as plans of their
/// own. Inner level: for the fastest plans, nestings of the axes, the mapping for the smallest link load
/// (workloads::choose_mapping), mappings drawn from those of workloads::MappingCandidates each of which differs in one choice
/// from the best so far, and balanced routes. The same options give the same result, wherever predictions are made, unless a
/// stop cuts it short. `predictor` makes the estimates and the mappings.
SearchResult search_plans(const PlanSpace& space, PlanFamily family, bool mappings, bool routings,
                          const PlanPredictor& predictor, const SearchOptions& options);

}  // namespace wafersim::analysis
