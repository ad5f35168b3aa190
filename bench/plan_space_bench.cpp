// What plans of the space of a search cost that have little in common: each is looked at once.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <numeric>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/plan_predictor.h"
#include "base/random.h"
#include "config/scenario.h"
#include "topology/routing_policy.h"
#include "workloads/first_tiles.h"

namespace wafersim::bench {
namespace {

using analysis::PlanPoint;
using analysis::PlanVerdict;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The space of a scenario, with standard mappings.
struct Ground {
  explicit Ground(const char* name)
      : scenario(config::load_scenario(std::string(WAFERSIM_SOURCE_DIR "/scenarios/") + name)),
        hardware(models::resolve_hardware(scenario.wafer, scenario.router, scenario.network)),
        mesh(models::mesh_spec(scenario.wafer)),
        space({scenario.model,
               {scenario.plan, scenario.training, hardware.routing},
               mesh,
               analysis::PlanFamily::all,
               {}}) {}
  analysis::PlanPredictor predictor() const {
    const auto routes = [this](const workloads::LoweringInput& input, const workloads::Trace&) {
      return topology::make_routing_policy(input.hardware.routing, mesh);
    };
    return analysis::PlanPredictor({scenario.model, scenario.placement, hardware, mesh,
                                    models::CostModel::alpha_beta_contention, scenario.seed, routes, {}});
  }
  /// Plans whose parameters alone do not make them too large, drawn without return.
  std::vector<PlanPoint> draw(std::size_t count, const analysis::PlanPredictor& predictor) const {
    std::vector<std::size_t> numbers(space.size());
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    RandomStream random(scenario.seed, "plan space");
    std::vector<PlanPoint> points;
    while (points.size() < count && !numbers.empty()) {
      std::swap(numbers[random.below(numbers.size())], numbers.back());
      PlanPoint point = space.at(numbers.back());
      numbers.pop_back();
      if (predictor.static_bytes(point) <= static_cast<double>(predictor.capacity())) points.push_back(std::move(point));
    }
    return points;
  }

  config::Scenario scenario;
  models::HardwareModel hardware;
  topology::Mesh mesh;
  analysis::PlanSpace space;
};

/// Another plan with the degrees, microbatch and recomputation of each, where there is one.
std::vector<PlanPoint> siblings_of(const std::vector<PlanPoint>& points, const Ground& ground) {
  const auto family = [](const PlanPoint& point) {
    PlanPoint plain = point;
    plain.plan.schedule = workloads::PipelineSchedule::one_f_one_b;
    plain.plan.virtual_stages = 1;
    plain.plan.zero = 0;
    return analysis::plan_text(plain);
  };
  std::unordered_map<std::string, std::vector<std::size_t>> families;
  for (std::size_t i = 0; i < ground.space.size(); ++i) families[family(ground.space.at(i))].push_back(i);
  std::unordered_set<std::string> taken;
  for (const PlanPoint& point : points) taken.insert(analysis::plan_text(point));
  RandomStream random(ground.scenario.seed, "siblings");
  std::vector<PlanPoint> siblings;
  for (const PlanPoint& point : points) {
    std::vector<std::size_t>& members = families.at(family(point));
    for (bool found = false; !found && !members.empty();) {
      std::swap(members[random.below(members.size())], members.back());
      PlanPoint sibling = ground.space.at(members.back());
      members.pop_back();
      found = taken.insert(analysis::plan_text(sibling)).second;
      if (found) siblings.push_back(std::move(sibling));
    }
  }
  return siblings;
}

/// CPU time of looking at plans, by what came of them.
struct Costs {
  double fitting_seconds = 0, other_seconds = 0;
  std::size_t fitting = 0, others = 0;

  template <class Look>
  void add(const std::vector<PlanPoint>& points, const Look& look) {
    for (const PlanPoint& point : points) {
      const double start = cpu_seconds();
      const bool fits = look(point);
      (fits ? fitting_seconds : other_seconds) += cpu_seconds() - start;
      ++(fits ? fitting : others);
    }
  }
  void report(benchmark::State& state, const std::string& name) const {
    const double plans = static_cast<double>(std::max<std::size_t>(fitting + others, 1));
    state.counters[name + "_plans"] = static_cast<double>(fitting + others);
    state.counters[name + "_fit"] = static_cast<double>(fitting);
    state.counters[name + "_fitting_ms"] = 1e3 * fitting_seconds / static_cast<double>(std::max<std::size_t>(fitting, 1));
    state.counters[name + "_other_ms"] = 1e3 * other_seconds / static_cast<double>(std::max<std::size_t>(others, 1));
    state.counters[name + "_ms"] = 1e3 * (fitting_seconds + other_seconds) / plans;
    state.counters[name + "_per_minute"] = 60 * plans / (fitting_seconds + other_seconds);
  }
};

/// `cold`: random plans of a space, one after the other; then `warm`: as many others, each of which has degrees, microbatch and
/// recomputation in common with one of the first; `look`: what is asked of a plan, whether it fits. Where that keeps no verdicts,
/// `known`: the first plans again, all steps of which are known.
template <class Look>
void look_at_space(benchmark::State& state, const Ground& ground, const analysis::PlanPredictor& predictor, bool again,
                   const Look& look) {
  const std::vector<PlanPoint> points = ground.draw(static_cast<std::size_t>(state.range(0)), predictor);
  const std::vector<PlanPoint> siblings = siblings_of(points, ground);
  Costs cold, warm, known;
  for (auto _ : state) {
    cold.add(points, look);
    warm.add(siblings, look);
    if (again) known.add(points, look);
  }
  state.counters["space"] = static_cast<double>(ground.space.size());
  cold.report(state, "cold");
  warm.report(state, "warm");
  if (again) known.report(state, "known");
}

/// Whole evaluations, to the cycles and joules of plans that fit.
void predict_plan_space(benchmark::State& state, const char* scenario) {
  const Ground ground(scenario);
  analysis::PlanPredictor predictor = ground.predictor();
  look_at_space(state, ground, predictor, false, [&predictor](const PlanPoint& point) {
    return predictor.predict(point).outcome == PlanVerdict::Outcome::predicted;
  });
}
BENCHMARK_CAPTURE(predict_plan_space, gpt3_6_7b_temp, "gpt3-6.7b-temp.yaml")->Arg(2000)->Iterations(1)->Unit(benchmark::kSecond);

/// Whether there is room on the first tiles of the stages: what most plans of a large space fail at.
void bound_plan_space(benchmark::State& state, const char* scenario) {
  const Ground ground(scenario);
  const analysis::PlanPredictor predictor = ground.predictor();
  workloads::FirstTiles tiles;
  look_at_space(state, ground, predictor, true, [&](const PlanPoint& point) {
    return tiles
        .bound({ground.scenario.model, point.training, point.plan, ground.scenario.placement, ground.hardware, ground.mesh})
        .fits;
  });
  state.counters["remembered_MB"] = 1e-6 * static_cast<double>(tiles.remembered());
}
BENCHMARK_CAPTURE(bound_plan_space, gpt3_6_7b_temp, "gpt3-6.7b-temp.yaml")->Arg(2000)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(bound_plan_space, gpt3_175b_wafer2048, "gpt3-175b-wafer2048.yaml")
    ->Arg(200)
    ->Arg(2000)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace wafersim::bench
