#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/plan_search.h"
#include "topology/mesh.h"

namespace wafersim::report {

/// Names of the files of a search; docs/results.md describes their content.
inline constexpr const char* kSearchTable = "search.csv";
inline constexpr const char* kSearchPicture = "search.svg";
inline constexpr const char* kSearchBest = "best.yaml";

/// What a process has done for a search.
struct RankShare {
  std::size_t predicted = 0;  ///< plans
  std::size_t simulated = 0;
};

/// What a search has found: of the plans that were asked for, then of baselines.
struct SearchReport {
  std::string name;
  Frequency clock;
  const topology::Mesh& mesh;
  Bytes capacity = 0;        ///< of a tile, both memories
  std::uint64_t tokens = 0;  ///< of an iteration
  std::vector<analysis::SearchResult> searches;
  bool baselines_compete = true;  ///< the plans of the baselines are among those asked for
  bool interrupted = false;
  std::vector<RankShare> shares;  ///< by rank
};

/// A plan of a report.
struct FoundPlan {
  std::size_t search = 0;
  std::size_t plan = 0;
};

/// The fastest plan of a search: of those that were simulated, otherwise by prediction; nothing when none fits.
std::optional<FoundPlan> best_of(const SearchReport& report, std::size_t search);
/// The plan that the search is for.
std::optional<FoundPlan> winner(const SearchReport& report);
const analysis::SearchedPlan& at(const SearchReport& report, const FoundPlan& found);
/// Simulated cycles, otherwise predicted ones.
Cycle cycles_of(const analysis::SearchedPlan& plan);

/// Why a plan was not predicted or simulated; empty when it was.
std::string reason_of(const SearchReport& report, const analysis::SearchedPlan& plan);

/// What plans are compared by: less is better.
enum class PlanMeasure : std::uint8_t { time, memory, energy };
/// By prediction and memory bound; cycles, bytes, joules. The plan fits; energy is 0 where it is not modelled.
double measure_of(const analysis::SearchedPlan& plan, PlanMeasure measure);
/// Some plan of the first search that fits has an energy; then all have.
bool energy_modelled(const SearchReport& report);

/// Plans of the first search that fit and than which no other is better in one of the measures without being worse in another,
/// the fastest first; of several that are equal in all, the first.
std::vector<std::size_t> pareto_front(const SearchReport& report, std::span<const PlanMeasure> measures);
/// By time and memory, and by energy where it is modelled.
std::vector<std::size_t> pareto_front(const SearchReport& report);

/// A row for each plan that was looked at.
std::string search_csv(const SearchReport& report);
/// What was looked at, what each process did where there were several, the fastest plans, the gain over each baseline, and the
/// Pareto front, for people.
std::string search_text(const SearchReport& report);
/// Time over memory, and below over energy where it is modelled, as SVG: the plans, the front, what was simulated, the best of
/// each baseline.
std::string search_picture(const SearchReport& report);

}  // namespace wafersim::report
