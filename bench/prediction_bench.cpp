// Speed of the analytic model on one core: a 2048-tile plan from scratch, and variants of it.
#include <benchmark/benchmark.h>

#include <ctime>

#include "analysis/plan_evaluator.h"
#include "analysis/plan_search.h"
#include "models/hardware.h"
#include "topology/routing.h"
#include "topology/routing_policy.h"
#include "workloads/lowering.h"

namespace wafersim::bench {
namespace {

/// GPT-3 175B as scenarios/gpt3-175b-wafer2048.yaml has it: 4 replicas x 32 stages x 16 tiles of the 32x64 wafer.
struct Gpt3 {
  models::TransformerSpec model;
  workloads::TrainingSpec training;
  workloads::PlanSpec plan;
  workloads::PlacementSpec placement;
  models::HardwareModel hardware;
  topology::Mesh mesh;
  std::unique_ptr<topology::Routing> routing;

  Gpt3() : mesh(wafer_mesh()) {
    model.layers = 96;
    model.hidden = 12288;
    model.heads = model.kv_heads = 96;
    model.head_dim = 128;
    model.ffn = 49152;
    model.vocab = 50257;
    model.context = model.sequence = 2048;
    model.tied_embeddings = true;
    training.global_batch = 128;
    training.recompute = models::Recompute::full;
    plan.dp = 4;
    plan.tp = 16;
    plan.pp = 32;
    plan.sp = workloads::SequenceParallel::megatron;
    plan.sp_degree = 1;
    plan.zero = 1;
    models::WaferSpec wafer;
    wafer.mesh.shape = {32, 64};
    wafer.sram.capacity = DataSize{Bytes{64} << 20};
    wafer.dram = models::DramSpec{DataSize{Bytes{8} << 30}, Bandwidth{Rational(256), true}, {1, 1}};
    wafer.link = {Bandwidth{Rational(256), true}, Duration::of_cycles(4)};
    hardware = models::resolve_hardware(wafer, {}, {});
    routing = topology::make_routing("xy", mesh);
  }
  static topology::Mesh wafer_mesh() { return topology::Mesh({{32, 64}, {}, {}}); }
  workloads::LoweredPlan lower() const { return workloads::lower({model, training, plan, placement, hardware, mesh}); }
  analysis::CostInput input(const workloads::LoweredPlan& lowered) const {
    return {lowered.trace, lowered.mapping, plan, hardware, mesh, *routing, models::CostModel::alpha_beta_contention, 1};
  }
};

void lower_plan(benchmark::State& state) {
  const Gpt3 gpt3;
  for (auto _ : state) benchmark::DoNotOptimize(gpt3.lower().trace.tiles.size());
}
BENCHMARK(lower_plan)->Unit(benchmark::kMillisecond);

void predict_lowered_plan(benchmark::State& state) {
  const Gpt3 gpt3;
  const workloads::LoweredPlan lowered = gpt3.lower();
  for (auto _ : state) {
    analysis::StepCosts costs(gpt3.input(lowered));
    benchmark::DoNotOptimize(analysis::predict(costs, lowered.trace).cycles);
  }
}
BENCHMARK(predict_lowered_plan)->Unit(benchmark::kMillisecond);

void predict_plan(benchmark::State& state) {
  const Gpt3 gpt3;
  for (auto _ : state) {
    const workloads::Mapping mapping(gpt3.plan, gpt3.mesh);
    benchmark::DoNotOptimize(analysis::predict({gpt3.model, gpt3.training, gpt3.plan, gpt3.placement, gpt3.hardware, gpt3.mesh},
                                               mapping, *gpt3.routing, models::CostModel::alpha_beta_contention)
                                 .cycles);
  }
  state.counters["per_minute"] = benchmark::Counter(60 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(predict_plan)->Unit(benchmark::kMillisecond);

/// 8 to 71 microbatches under gpipe and 1f1b, in turn.
void evaluate_variant(benchmark::State& state) {
  const Gpt3 gpt3;
  const workloads::LoweredPlan lowered = gpt3.lower();
  analysis::PlanEvaluator evaluator(gpt3.input(lowered));
  std::int32_t number = 0;
  for (auto _ : state) {
    const auto schedule = number % 2 == 0 ? workloads::PipelineSchedule::gpipe : workloads::PipelineSchedule::one_f_one_b;
    benchmark::DoNotOptimize(evaluator.cycles(8 + number / 2 % 64, schedule));
    ++number;
  }
  state.counters["per_minute"] = benchmark::Counter(60 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(evaluate_variant)->Unit(benchmark::kMicrosecond);

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// A search in the whole space of plans, once: estimates of all of them, then evaluations in the order in which the search comes
/// to them. Its counters are CPU milliseconds for each.
void search_plan_space(benchmark::State& state) {
  using analysis::PlanVerdict;
  const Gpt3 gpt3;
  const analysis::PlanSpace space(
      {gpt3.model, {gpt3.plan, gpt3.training, gpt3.hardware.routing}, gpt3.mesh, analysis::PlanFamily::all, {}});
  const auto routes = [&gpt3](const workloads::LoweringInput& input, const workloads::Trace&) {
    return topology::make_routing_policy(input.hardware.routing, gpt3.mesh);
  };
  double evaluations = 0, whole = 0, rejecting = 0, predicting = 0, fitting = 0;
  for (auto _ : state) {
    analysis::PlanPredictor predictor(
        {gpt3.model, gpt3.placement, gpt3.hardware, gpt3.mesh, models::CostModel::alpha_beta_contention, 1, routes, {}});
    analysis::SearchOptions options;
    options.most_plans = static_cast<std::size_t>(state.range(0));
    options.predict = [&](const std::vector<analysis::PlanPoint>& points) {
      std::vector<std::optional<PlanVerdict>> verdicts;
      for (const analysis::PlanPoint& point : points) {
        const double start = cpu_seconds();
        verdicts.push_back(predictor.predict(point));
        const bool fits = verdicts.back()->outcome == PlanVerdict::Outcome::predicted;
        (fits ? predicting : rejecting) += cpu_seconds() - start;
        fitting += fits ? 1 : 0;
        ++evaluations;
      }
      return verdicts;
    };
    const double start = cpu_seconds();
    search_plans(space, analysis::PlanFamily::all, false, false, predictor, options);
    whole += cpu_seconds() - start;
  }
  const double plans = static_cast<double>(space.size()) * static_cast<double>(state.iterations());
  state.counters["plans_of_space"] = static_cast<double>(space.size());
  state.counters["estimate_ms"] = 1e3 * (whole - predicting - rejecting) / plans;
  state.counters["evaluation_ms"] = 1e3 * (predicting + rejecting) / evaluations;
  state.counters["predicted"] = fitting;
  state.counters["predicted_ms"] = fitting == 0 ? 0 : 1e3 * predicting / fitting;
  state.counters["other_ms"] = 1e3 * rejecting / std::max(evaluations - fitting, 1.0);
  state.counters["per_minute"] = 60 * evaluations / (predicting + rejecting);
}
BENCHMARK(search_plan_space)->Arg(64)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace wafersim::bench
