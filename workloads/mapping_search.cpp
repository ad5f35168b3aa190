#include "workloads/mapping_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "workloads/mapping_candidates.h"
#include "workloads/mapping_loads.h"

namespace wafersim::workloads {
namespace {

using topology::LoadSummary;

/// Combinations that are looked through for those that fit.
constexpr std::uint64_t kMaxEnumerated = 4'000'000;

/// Chances of acceptance out of 2^16: entry i is exp(-i / 16), by repeated multiplication with 61565 / 2^16.
constexpr std::array<std::uint64_t, 128> kAcceptance = [] {
  std::array<std::uint64_t, 128> table{};
  std::uint64_t chance = 1U << 16;
  for (std::uint64_t& entry : table) {
    entry = chance;
    chance = chance * 61565 >> 16;
  }
  return table;
}();

/// Annealing: a load that is larger by this part of 2^16 is accepted with a chance of 1/e.
constexpr std::uint64_t kHottest = 1U << 14;
constexpr int kHalvings = 12;  ///< of the temperature, at equal distances
constexpr int kMaxChains = 64;

/// By how much `worse` is above `better`, in parts of 2^16; more than a whole counts as a whole.
std::uint64_t excess(Bytes worse, Bytes better) {
  constexpr std::uint64_t kOne = 1U << 16;
  const Bytes more = worse - better;
  if (more >= better) return kOne;
  return better >> 32 != 0 ? (more >> 16) * kOne / (better >> 16) : more * kOne / better;
}

class MappingSearch {
 public:
  MappingSearch(const LoweringInput& input, const topology::Routing& routing, const SearchLimits& limits)
      : input_(input),
        limits_(limits),
        candidates_(input.plan),
        traffic_(plan_traffic(input.model, input.training, input.plan)),
        loads_(traffic_, input.plan, input.hardware, routing, input.mesh) {}

  MappingChoice run() {
    measure_standard();
    std::vector<Choices> fitting = enumerate();
    MappingReport report;
    report.exhaustive = enumerated_ && fitting.size() <= affordable();
    report.candidates = enumerated_ ? fitting.size() : candidates_.count();
    if (report.exhaustive) {
      for (const Choices& choices : fitting) consider(choices);
    } else {
      anneal(fitting);
      descend();
    }
    if (!best_) refuse();
    report.order_searched = !input_.plan.order_given;
    report.measured = measured_;
    report.before = standard_;
    report.after = *best_;
    PlanSpec plan = written_out(best_plan_);
    for (const Axis axis : candidates_.axes()) report.chosen.emplace_back(axis, plan.axis_mapping(axis));
    report.order = plan.order;
    return {std::move(plan), std::move(report)};
  }

 private:
  std::uint64_t affordable() const {
    const auto tiles = static_cast<std::uint64_t>(input_.plan.tiles_used());
    return std::min(limits_.exhaustive_candidates, limits_.tiles / tiles);
  }
  std::uint64_t annealing_budget() const {
    const auto tiles = static_cast<std::uint64_t>(input_.plan.tiles_used());
    return std::max(limits_.least_measured, std::min(limits_.most_measured, limits_.tiles / tiles));
  }

  /// Nothing when the plan cannot be laid out or a message has no live route.
  std::optional<LoadSummary> measure(const PlanSpec& plan) {
    ++measured_;
    try {
      return loads_.measure(Mapping(plan, input_.mesh));
    } catch (const PlanError& error) {
      if (fault_.empty()) fault_ = error.what();
      return std::nullopt;
    }
  }

  void measure_standard() {
    PlanSpec plan = candidates_.standard_plan();
    standard_ = measure(plan);
    measured_ = 0;  // it is one of the candidates, where it counts
    if (!standard_) return;
    best_ = standard_;
    best_plan_ = std::move(plan);
  }

  /// All candidates that may fit, in lexicographic order; none when there are too many to look through.
  std::vector<Choices> enumerate() {
    std::vector<Choices> fitting;
    enumerated_ = candidates_.count() <= kMaxEnumerated;
    if (!enumerated_) return fitting;
    Choices choices(candidates_.sizes().size(), 0);
    do {
      if (candidates_.is_sensible(choices, input_.mesh.shape())) fitting.push_back(choices);
    } while (advance(choices));
    return fitting;
  }

  /// The next in order, the nesting slowest; false behind the last.
  bool advance(Choices& choices) const {
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (++choices[i] < candidates_.sizes()[i]) return true;
      choices[i] = 0;
    }
    return false;
  }

  /// Measures a candidate, once, and keeps it if it is the best so far.
  std::optional<LoadSummary> consider(const Choices& choices) {
    const auto known = measured_loads_.find(choices);
    if (known != measured_loads_.end()) return known->second;
    std::optional<LoadSummary> load;
    if (candidates_.is_sensible(choices, input_.mesh.shape())) {
      PlanSpec plan = candidates_.plan(choices);
      load = measure(plan);
      if (load && (!best_ || *load < *best_)) {
        best_ = load;
        best_plan_ = std::move(plan);
      }
      if (load && (!best_choices_ || *load < best_choices_->first)) best_choices_ = {*load, choices};
    }
    measured_loads_.emplace(choices, load);
    return load;
  }

  Choices random_choices(RandomStream& random, const std::vector<Choices>& fitting) const {
    if (!fitting.empty()) return fitting[random.below(fitting.size())];
    Choices choices;
    for (const std::size_t size : candidates_.sizes()) choices.push_back(random.below(size));
    return choices;
  }

  /// Some other choice in one dimension that has another.
  Choices changed(const Choices& from, RandomStream& random) const {
    std::vector<std::size_t> dimensions;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (candidates_.sizes()[i] > 1) dimensions.push_back(i);
    }
    Choices to = from;
    if (dimensions.empty()) return to;
    const std::size_t dimension = dimensions[random.below(dimensions.size())];
    const std::size_t size = candidates_.sizes()[dimension];
    to[dimension] = (from[dimension] + 1 + random.below(size - 1)) % size;
    return to;
  }

  static bool accepts(const LoadSummary& from, const LoadSummary& to, std::uint64_t temperature,
                      RandomStream& random) {
    if (!(from < to)) return true;
    const std::uint64_t more =
        from.largest != to.largest ? excess(to.largest, from.largest) : excess(to.byte_hops, from.byte_hops);
    const std::uint64_t step = more * 16 / temperature;
    return step < kAcceptance.size() && random.below(1U << 16) < kAcceptance[step];
  }

  /// Chains from random starts until the budget is spent. Moves to what was measured before or does not fit
  /// cost next to nothing; the number of chains is bounded for spaces that are smaller than the budget.
  void anneal(const std::vector<Choices>& fitting) {
    RandomStream random(1, "mapping");
    const std::uint64_t budget = annealing_budget();
    for (int chain = 0; chain < kMaxChains && measured_ < budget; ++chain) {
      anneal_chain(random, fitting, budget);
    }
  }

  void anneal_chain(RandomStream& random, const std::vector<Choices>& fitting, std::uint64_t budget) {
    std::optional<LoadSummary> here;
    Choices at;
    for (std::uint64_t move = 0; move < budget && measured_ < budget; ++move) {
      const std::uint64_t temperature = std::max<std::uint64_t>(1, kHottest >> (move * kHalvings / budget));
      Choices next = here ? changed(at, random) : random_choices(random, fitting);
      const std::optional<LoadSummary> there = consider(next);
      if (!there || (here && !accepts(*here, *there, temperature, random))) continue;
      here = there;
      at = std::move(next);
    }
  }

  /// From the best candidate to a better one that differs in one choice, or in one choice and the nesting,
  /// until there is none; as many measurements again as annealing at most.
  void descend() {
    const std::uint64_t budget = measured_ + annealing_budget();
    bool better = true;
    while (better && best_choices_) {
      const auto [load, from] = *best_choices_;
      for (std::size_t order = 0; order < candidates_.sizes().back(); ++order) {
        for (std::size_t i = 0; i + 1 < from.size(); ++i) {
          for (std::size_t choice = 0; choice < candidates_.sizes()[i] && measured_ < budget; ++choice) {
            Choices to = from;
            to[i] = choice;
            to.back() = order;
            consider(to);
          }
        }
      }
      better = best_choices_->first < load;
    }
  }

  [[noreturn]] void refuse() const {
    if (!fault_.empty()) throw PlanError(fault_);
    throw PlanError(
        "plan.mapping: dead tiles or links block some route of every mapping; 'routing: table' or 'routing: "
        "balanced' would avoid them");
  }

  /// The entries of the open axes as they were laid out.
  PlanSpec written_out(PlanSpec plan) const {
    const Mapping mapping(plan, input_.mesh);
    for (const Axis axis : candidates_.axes()) plan.mapping[axis] = mapping.laid_out(axis);
    plan.order_given = true;
    return plan;
  }

  const LoweringInput& input_;
  SearchLimits limits_;
  MappingCandidates candidates_;
  std::vector<AxisTraffic> traffic_;
  MappingLoads loads_;
  bool enumerated_ = false;
  std::uint64_t measured_ = 0;
  std::string fault_;  ///< the first, which is that of the standard mapping if it has one
  std::map<Choices, std::optional<LoadSummary>> measured_loads_;
  std::optional<LoadSummary> standard_;
  std::optional<LoadSummary> best_;
  PlanSpec best_plan_;
  std::optional<std::pair<LoadSummary, Choices>>
      best_choices_;  ///< the best, the standard mapping left aside
};

bool leaves_something(const PlanSpec& plan) {
  return std::any_of(plan.mapping.begin(), plan.mapping.end(),
                     [](const auto& entry) { return entry.second.placement == Placement::optimized; });
}

}  // namespace

MappingChoice choose_mapping(const LoweringInput& input, const topology::Routing& routing,
                             const SearchLimits& limits) {
  validate_plan(input.plan, input.training, input.model, input.mesh);
  if (!leaves_something(input.plan)) return {input.plan, std::nullopt};
  return MappingSearch(input, routing, limits).run();
}

}  // namespace wafersim::workloads
