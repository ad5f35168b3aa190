#include "analysis/plan_search.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "workloads/mapping_candidates.h"

namespace wafersim::analysis {

using workloads::Axis;
using workloads::PlanSpec;

namespace {

/// Does not depend on who predicts: what is looked at next is decided between batches.
constexpr std::size_t kBatch = 32;
/// Of a batch, at least one in so many is drawn at random.
constexpr std::size_t kDrawn = 8;
/// Of a batch, plans with the same degrees.
constexpr std::size_t kOfSameDegrees = 4;
/// Operators divide the rectangle of a model group.
bool breaks_model_groups(const PlanSpec& plan) {
  return std::any_of(plan.mapping.begin(), plan.mapping.end(),
                     [](const auto& entry) { return entry.second.placement == workloads::Placement::strided; });
}

/// What plans that do not fit, or cannot be lowered, do to the priority of others with the same degrees.
constexpr double kPenalty = 1.25;

class Searcher {
 public:
  Searcher(const PlanSpace& space, PlanFamily family, const PlanPredictor& predictor, const SearchOptions& options)
      : space_(space), predictor_(predictor), options_(options), random_(options.seed, "plan search") {
    result_.family = family;
    result_.space = space.size();
    result_.first_fault = space.first_fault();
  }

  void outer() {
    estimate();
    const std::size_t wanted = std::min(options_.most_plans, waiting_.size());
    target_ = wanted;
    while (result_.plans.size() < wanted && !waiting_.empty() && !options_.stop_outer()) {
      look_at(next_batch(std::min({kBatch, wanted - result_.plans.size(), waiting_.size()})));
    }
    result_.whole = waiting_.empty() && result_.plans.size() == wanted;
  }

  /// The fastest plans with operators of degrees of their own.
  void divide() {
    if (!options_.divide) return;
    std::vector<PlanPoint> points;
    for (const std::size_t base : finalists()) {
      if (options_.stop_inner()) return;
      try {
        if (auto point = options_.divide(result_.plans[base].point)) points.push_back(*std::move(point));
      } catch (const PlanError&) {
        // What cannot be laid out stays as it is.
      }
    }
    if (!points.empty()) add(points, std::nullopt);
  }

  void inner(bool mappings, bool routings) {
    for (const std::size_t base : finalists()) {
      if (options_.stop_inner()) return;
      if (mappings) place(base);
      if (routings && !options_.stop_inner()) route(base);
    }
  }

  SearchResult take() { return std::move(result_); }

 private:
  struct Waiting {
    std::size_t number = 0;  ///< in the space
    double cycles = 0;       ///< estimated
  };
  /// What is known of plans with the same degrees.
  struct Degrees {
    double factor = 0;  ///< predicted / estimated cycles of the fastest; 0 before the first prediction
    double fastest = 0;
    double penalty = 1;  ///< of failures since the last success
  };

  std::vector<std::size_t> finalists() const {
    std::vector<std::size_t> fastest = result_.ranking();
    if (fastest.size() > options_.finalists) fastest.resize(options_.finalists);
    return fastest;
  }

  void estimate() {
    const auto capacity = static_cast<double>(predictor_.capacity());
    for (std::size_t i = 0; i < space_.size(); ++i) {
      const PlanPoint point = space_.at(i);
      if (predictor_.static_bytes(point) > capacity) {
        ++result_.too_large;
      } else {
        waiting_.push_back({i, predictor_.estimated_cycles(point)});
      }
    }
    std::stable_sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) { return a.cycles < b.cycles; });
    degrees_.resize(space_.degrees());
  }

  double priority(const Waiting& plan) const {
    const Degrees& degrees = degrees_[space_.degrees_of(plan.number)];
    const double factor = degrees.factor > 0 ? degrees.factor : std::max(usual_factor_, 1.0) * 0.8;  // rather what is new
    return plan.cycles * factor * degrees.penalty;
  }

  std::vector<Waiting> next_batch(std::size_t size) {
    std::vector<std::size_t> order(waiting_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<double> priorities;
    for (const Waiting& each : waiting_) priorities.push_back(priority(each));
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return priorities[a] < priorities[b]; });
    std::vector<bool> chosen(waiting_.size(), false);
    std::vector<Waiting> batch;
    const auto choose = [&](std::size_t i) {
      if (chosen[i]) return;
      chosen[i] = true;
      batch.push_back(waiting_[i]);
    };
    const std::size_t drawn = size / kDrawn;
    std::vector<std::size_t> of_degrees(degrees_.size(), 0);
    for (const std::size_t i : order) {
      if (batch.size() + drawn >= size) break;
      if (of_degrees[space_.degrees_of(waiting_[i].number)]++ < kOfSameDegrees) choose(i);
    }
    for (std::size_t k = 0; k < drawn; ++k) choose(static_cast<std::size_t>(random_.below(waiting_.size())));
    for (const std::size_t i : order) {
      if (batch.size() >= size) break;
      choose(i);
    }
    std::vector<Waiting> rest;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (!chosen[i]) rest.push_back(waiting_[i]);
    }
    waiting_ = std::move(rest);
    return batch;
  }

  void look_at(const std::vector<Waiting>& batch) {
    std::vector<PlanPoint> points;
    for (const Waiting& each : batch) points.push_back(space_.at(each.number));
    const std::vector<std::optional<std::size_t>> numbers = add(points, std::nullopt);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!numbers[i]) continue;
      const PlanVerdict& verdict = result_.plans[*numbers[i]].verdict;
      Degrees& degrees = degrees_[space_.degrees_of(batch[i].number)];
      if (verdict.outcome != PlanVerdict::Outcome::predicted) {
        degrees.penalty *= kPenalty;
        continue;
      }
      degrees.penalty = 1;
      const auto cycles = static_cast<double>(verdict.cycles);
      const double factor = cycles / std::max(batch[i].cycles, 1.0);
      if (degrees.factor == 0 || cycles < degrees.fastest) degrees.fastest = cycles, degrees.factor = factor;
      usual_factor_ = usual_factor_ == 0 ? factor : 0.9 * usual_factor_ + 0.1 * factor;
    }
  }

  /// Predicts the points; plans of `base`, or of their own. Returns the number of each plan, nothing for what was left out.
  std::vector<std::optional<std::size_t>> add(const std::vector<PlanPoint>& points, std::optional<std::size_t> base) {
    std::vector<std::optional<PlanVerdict>> verdicts = options_.predict(points);
    std::vector<std::optional<std::size_t>> numbers(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!verdicts[i]) continue;
      const std::size_t number = result_.plans.size();
      numbers[i] = number;
      SearchedPlan& added = result_.plans.emplace_back();
      added.point = points[i];
      added.family = result_.family;
      added.base = base.value_or(number);
      added.verdict = *std::move(verdicts[i]);
      const SearchedPlan& plan = result_.plans.back();
      if (plan.fits() && (!best_ || plan.verdict.cycles < result_.plans[*best_].verdict.cycles)) best_ = number;
    }
    options_.progress(result_.plans.size(), std::max(target_, result_.plans.size()), best_ ? &result_.plans[*best_] : nullptr);
    return numbers;
  }

  /// The fastest plan that came from `base`, itself included.
  std::size_t best_of(std::size_t base) const {
    std::size_t best = base;
    for (std::size_t i = base; i < result_.plans.size(); ++i) {
      const SearchedPlan& plan = result_.plans[i];
      if (plan.base == base && plan.fits() && plan.verdict.cycles < result_.plans[best].verdict.cycles) best = i;
    }
    return best;
  }

  void place(std::size_t base) {
    const PlanPoint origin = result_.plans[base].point;
    PlanSpec open = origin.plan;
    for (const Axis axis : workloads::default_order()) open.mapping[axis] = {workloads::Placement::optimized, std::nullopt};
    const workloads::MappingCandidates candidates(open);
    const topology::Shape& mesh = predictor_.ground().mesh.shape();
    std::vector<PlanPoint> points;
    const auto offer = [&](PlanSpec plan) {
      if (plan.splits_operators() && breaks_model_groups(plan)) return;
      PlanPoint point = origin;
      point.plan = std::move(plan);
      points.push_back(std::move(point));
    };
    // Nestings with standard placements, then all axes for the smallest link load.
    workloads::Choices choices(candidates.sizes().size(), 0);
    for (std::size_t order = 1; order < std::min<std::size_t>(candidates.sizes().back(), kBatch / 2); ++order) {
      PlanSpec plan = origin.plan;
      workloads::Choices nested = choices;
      nested.back() = order;
      plan.order = candidates.plan(nested).order;
      offer(std::move(plan));
    }
    try {
      offer(predictor_.mapped(origin));
    } catch (const PlanError&) {
      // No candidate can be laid out: the standard mapping stays.
    }
    if (options_.stop_inner()) return;
    add(points, base);
    // Steps from the best so far: one axis placed otherwise, or another nesting.
    for (std::size_t step = 0; step < options_.walk && !options_.stop_inner(); step += kWalkers) {
      points.clear();
      for (std::size_t i = 0; i < kWalkers; ++i) {
        const std::size_t dimension = static_cast<std::size_t>(random_.below(choices.size()));
        workloads::Choices drawn = choices;
        drawn[dimension] = static_cast<std::size_t>(random_.below(candidates.sizes()[dimension]));
        if (!candidates.is_sensible(drawn, mesh)) continue;
        PlanSpec plan = result_.plans[best_of(base)].point.plan;
        const PlanSpec changed = candidates.plan(drawn);
        if (dimension + 1 == choices.size()) {
          plan.order = changed.order;
        } else {
          const Axis axis = candidates.axes()[dimension];
          plan.mapping[axis] = changed.mapping.at(axis);
        }
        offer(std::move(plan));
      }
      if (!points.empty()) add(points, base);
    }
  }

  void route(std::size_t base) {
    PlanPoint point = result_.plans[best_of(base)].point;
    if (point.routing == kBalanced) return;
    point.routing = kBalanced;
    add({point}, base);
  }

  static constexpr std::size_t kWalkers = 4;
  static constexpr const char* kBalanced = "balanced";

  const PlanSpace& space_;
  const PlanPredictor& predictor_;
  const SearchOptions& options_;
  RandomStream random_;
  SearchResult result_;
  std::vector<Waiting> waiting_;  ///< in the order of the estimates
  std::vector<Degrees> degrees_;
  double usual_factor_ = 0;
  std::size_t target_ = 0;
  std::optional<std::size_t> best_;
};

}  // namespace

std::vector<std::size_t> SearchResult::ranking() const {
  std::vector<std::size_t> best(plans.size(), plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].fits()) continue;
    std::size_t& known = best[plans[i].base];
    if (known == plans.size() || plans[i].verdict.cycles < plans[known].verdict.cycles) known = i;
  }
  std::erase(best, plans.size());
  std::stable_sort(best.begin(), best.end(),
                   [this](std::size_t a, std::size_t b) { return plans[a].verdict.cycles < plans[b].verdict.cycles; });
  return best;
}

SearchResult search_plans(const PlanSpace& space, PlanFamily family, bool mappings, bool routings,
                          const PlanPredictor& predictor, const SearchOptions& options) {
  Searcher searcher(space, family, predictor, options);
  searcher.outer();
  searcher.divide();
  searcher.inner(mappings, routings);
  return searcher.take();
}

}  // namespace wafersim::analysis
