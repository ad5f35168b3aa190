#include "analysis/plan_predictor.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/operator_costs.h"
#include "analysis/predicted_energy.h"
#include "analysis/step_schedule.h"
#include "base/error.h"
#include "workloads/axis_traffic.h"
#include "workloads/check_routes.h"
#include "workloads/operator_steps.h"
#include "workloads/shard.h"
#include "workloads/trace_demands.h"

namespace wafersim::analysis {

using workloads::Axis;
using workloads::PipelineSchedule;
using workloads::PlanSpec;
using workloads::TrafficPattern;

namespace {

/// Of a vector that a collective works on, what a member sends.
double sent_share(TrafficPattern pattern, int members) {
  const double others = 1 - 1.0 / members;
  switch (pattern) {
    case TrafficPattern::all_reduce:
      return 2 * others;
    case TrafficPattern::exchange:
      return others / members;
    case TrafficPattern::pairs:
      return 1.0 / members;
    case TrafficPattern::stream_outward:
    case TrafficPattern::stream_inward:
      return others / 2;  // both ways at once
    default:
      return others;
  }
}

/// How much longer a pipeline is than its busiest stage works, where forward, input gradient and weight gradient take the same.
double bubble_factor(const PlanSpec& plan, std::int64_t microbatches) {
  const double slots = 3 * static_cast<double>(microbatches), others = plan.pp - 1;
  switch (plan.schedule) {
    case PipelineSchedule::zb_h1:
      return 1 + others / slots;
    case PipelineSchedule::zb_h2:
      return 1;
    default:
      return 1 + 3 * others / plan.virtual_stages / slots;
  }
}

bool open(const PlanSpec& plan) {
  return std::any_of(plan.mapping.begin(), plan.mapping.end(),
                     [](const auto& entry) { return entry.second.placement == workloads::Placement::optimized; });
}

/// Tells points of one ground apart.
std::string key_of(const PlanPoint& point) {
  return fmt::format("{}; {}; {}", plan_text(point), mapping_text(point.plan), point.routing);
}

}  // namespace

workloads::LoweringInput PlanPredictor::input(const PlanPoint& point, const models::HardwareModel& hardware) const {
  return {ground_.model, point.training, point.plan, ground_.placement, hardware, ground_.mesh};
}

double PlanPredictor::estimated_cycles(const PlanPoint& point) const {
  const PlanSpec& plan = point.plan;
  const models::HardwareModel& hardware = ground_.hardware;
  const models::TransformerSpec& model = ground_.model;
  const std::int64_t microbatches = point.training.microbatches(plan.dp);
  const double tiles = plan.tiles_used();
  const double stage_layers = static_cast<double>(ceil_div(model.layers, plan.pp)) * plan.pp / model.layers;

  double flops = static_cast<double>(models::model_flops(model, 1)) * static_cast<double>(point.training.global_batch);
  if (point.training.recompute == models::Recompute::full) flops *= 4.0 / 3;
  double cycles = flops * stage_layers / tiles / hardware.matrix_flops_per_cycle.to_double();

  double bytes = 0;
  for (const workloads::AxisTraffic& traffic : 
       workloads::plan_traffic(model, point.training, workloads::cut_plan(plan, workloads::Cut::plan))) {
    const int members = traffic.members();
    if (members < 2) continue;
    const double stages = traffic.axis == Axis::pp ? 1 : static_cast<double>(traffic.span(Axis::pp).count) / plan.pp;
    bytes += static_cast<double>(traffic.times) * static_cast<double>(traffic.bytes()) * sent_share(traffic.pattern, members) *
             stages;
  }
  cycles += bytes / hardware.link_bytes_per_cycle.to_double();
  return cycles * bubble_factor(plan, microbatches);
}

double PlanPredictor::static_bytes(const PlanPoint& point) const {
  const PlanSpec& plan = point.plan;
  const models::TransformerSpec& model = ground_.model;
  const auto parameters = static_cast<double>(models::count_parameters(model).total(model.layers));
  const auto shared = [&plan](bool by_replicas, Bytes of) { return static_cast<double>(of) / (by_replicas ? plan.dp : 1); };
  const double per_parameter = shared(plan.shards_parameters(), workloads::element_bytes(point.training.precision)) +
                               shared(plan.shards_gradients(), workloads::gradient_bytes(point.training)) +
                               shared(plan.shards_optimizer(), workloads::optimizer_bytes_per_parameter(
                                                                   point.training.optimizer, point.training.precision));
  const double cuts = static_cast<double>(plan.tp) * plan.tatp * plan.pp * plan.ep;
  return parameters * per_parameter / cuts;
}

PlanPredictor::Routes PlanPredictor::routes(const workloads::LoweringInput& input, const workloads::Trace& trace) {
  const std::string& name = input.hardware.routing;
  if (name == "balanced") return {ground_.make_routes(input, trace), nullptr};
  const std::lock_guard lock(mutex_);
  Routes& known = routes_[name];
  if (known.policy == nullptr) known = {ground_.make_routes(input, trace), std::make_shared<ReplayMemory>()};
  return known;
}

std::optional<double> PlanPredictor::joules_of(const workloads::Trace& trace, const models::HardwareModel& hardware,
                                               const topology::RoutingPolicy& routing, Cycle cycles) const {
  if (!hardware.energy.any()) return std::nullopt;
  const topology::ExpectedLoads loads = routing.expected_loads(ground_.mesh, workloads::demands_of(trace));
  const auto energy = predicted_energy({hardware, ground_.mesh, trace, loads, cycles});
  return energy ? std::optional(energy->joules) : std::nullopt;
}

PlanVerdict PlanPredictor::ask(const PlanPoint& point) {
  PlanVerdict verdict;
  try {
    models::HardwareModel hardware = ground_.hardware;
    hardware.routing = point.routing;
    PlanPoint placed = point;
    if (open(point.plan)) placed.plan = ground_.choose_mapping(input(point, hardware));
    const workloads::LoweringInput lowering = input(placed, hardware);
    workloads::validate_plan(placed.plan, placed.training, ground_.model, ground_.mesh);
    // Most plans of a search do not fit, and few tiles tell.
    verdict.memory = first_tiles_.bound(lowering);
    verdict.outcome = PlanVerdict::Outcome::does_not_fit;
    if (!verdict.memory.fits) return verdict;
    const workloads::LoweredPlan lowered = workloads::lower(lowering);
    verdict.memory = lowered.memory;
    if (!lowered.memory.fits) return verdict;
    const auto [policy, plays] = routes(lowering, lowered.trace);
    workloads::check_routes(lowered.trace, ground_.mesh, *policy);
    StepCosts costs({lowered.trace, lowered.mapping, placed.plan, hardware, ground_.mesh, *policy, ground_.cost_model,
                     ground_.seed, plays.get()});
    verdict.cycles = analysis::predict(costs, lowered.trace).cycles;
    verdict.joules = joules_of(lowered.trace, hardware, *policy, verdict.cycles);
    verdict.outcome = PlanVerdict::Outcome::predicted;
  } catch (const PlanError& error) {
    verdict.outcome = PlanVerdict::Outcome::refused;
    verdict.fault = error.what();
  }
  return verdict;
}

PlanVerdict PlanPredictor::predict(const PlanPoint& point) {
  if (auto known = recall(point)) return *std::move(known);
  PlanVerdict verdict = ask(point);
  remember(point, verdict);
  return verdict;
}

std::optional<PlanVerdict> PlanPredictor::recall(const PlanPoint& point) {
  const std::string key = key_of(point);
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  if (found == known_.end()) return std::nullopt;
  return found->second;
}

void PlanPredictor::remember(const PlanPoint& point, const PlanVerdict& verdict) {
  const std::string key = key_of(point);
  const std::lock_guard lock(mutex_);
  known_.emplace(key, verdict);
}

std::optional<PlanPoint> PlanPredictor::divided(const PlanPoint& point) {
  using workloads::Cut;
  const bool divisible = point.plan.tp * point.plan.tatp > 1 && !ground_.model.routes() && !ground_.model.parallel_residual;
  if (!divisible) return std::nullopt;
  models::HardwareModel hardware = ground_.hardware;
  hardware.routing = point.routing;
  PlanPoint result = point;
  if (open(point.plan)) result.plan = ground_.choose_mapping(input(point, hardware));
  result.plan.attention.reset();
  result.plan.mlp.reset();
  const PlanPoint own = result;
  const workloads::LoweringInput lowering = input(own, hardware);
  const workloads::Mapping mapping(own.plan, ground_.mesh);
  const workloads::Trace traffic =
      workloads::lower_operator_steps(lowering, mapping, {{workloads::OperatorStep::What::forward, Cut::attention, {}}});
  const auto [policy, plays] = routes(lowering, traffic);
  const OperatorChain chain = operator_chain(lowering, mapping, {*policy, ground_.cost_model, ground_.seed, plays.get()});
  const std::vector<std::size_t> chosen = cheapest(chain).options;
  if (chosen[0] == chosen[1]) return std::nullopt;
  if (chosen[0] != 0) result.plan.attention = chain.options[chosen[0]];
  if (chosen[1] != 0) result.plan.mlp = chain.options[chosen[1]];
  return result;
}

PlanSpec PlanPredictor::mapped(const PlanPoint& point) const {
  models::HardwareModel hardware = ground_.hardware;
  hardware.routing = point.routing;
  PlanPoint open_point = point;
  for (const Axis axis : workloads::default_order()) {
    open_point.plan.mapping[axis] = {workloads::Placement::optimized, std::nullopt};
  }
  return ground_.choose_mapping(input(open_point, hardware));
}

}  // namespace wafersim::analysis
