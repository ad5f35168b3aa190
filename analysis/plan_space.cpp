#include "analysis/plan_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "topology/mesh_metrics.h"
#include "workloads/mapping.h"
#include "workloads/plan_words.h"

namespace wafersim::analysis {

using workloads::Axis;
using workloads::PipelineSchedule;
using workloads::PlanSpec;
using workloads::SequenceParallel;

namespace {

constexpr std::pair<PlanKey, const char*> kKeys[] = {
    {PlanKey::dp, "plan.dp"},
    {PlanKey::tp, "plan.tp"},
    {PlanKey::tatp, "plan.tatp"},
    {PlanKey::sp, "plan.sp"},
    {PlanKey::ep, "plan.ep"},
    {PlanKey::pp, "plan.pp"},
    {PlanKey::schedule, "plan.schedule"},
    {PlanKey::zero, "plan.zero"},
    {PlanKey::recompute, "training.recompute"},
    {PlanKey::microbatch, "training.microbatch"},
    {PlanKey::mapping, "plan.mapping"},
    {PlanKey::routing, "router.routing"},
};

template <class Number>
std::vector<Number> divisors(Number of) {
  std::vector<Number> result;
  for (Number d = 1; d <= of; ++d) {
    if (of % d == 0) result.push_back(d);
  }
  return result;
}

bool open_mapping(const PlanSpec& plan) {
  return std::any_of(plan.mapping.begin(), plan.mapping.end(),
                     [](const auto& entry) { return entry.second.placement == workloads::Placement::optimized; });
}

}  // namespace

std::string to_string(PlanKey key) {
  for (const auto& [each, name] : kKeys) {
    if (each == key) return name;
  }
  throw InternalError("a key of a plan without a name");
}

const std::vector<PlanKey>& plan_keys() {
  static const std::vector<PlanKey> keys = [] {
    std::vector<PlanKey> all;
    for (const auto& [key, name] : kKeys) all.push_back(key);
    return all;
  }();
  return keys;
}

const char* to_string(PlanFamily family) {
  switch (family) {
    case PlanFamily::all:
      return "all";
    case PlanFamily::megatron:
      return "megatron";
    case PlanFamily::megatron_sp:
      return "megatron_sp";
    case PlanFamily::fsdp:
      return "fsdp";
  }
  return "?";
}

std::string plan_text(const PlanPoint& point) {
  const PlanSpec& plan = point.plan;
  std::string degrees;
  for (const auto& [name, degree] :
       {std::pair{"dp", plan.dp}, {"ep", plan.ep}, {"tp", plan.tp}, {"tatp", plan.tatp}, {"pp", plan.pp}}) {
    if (degree > 1) degrees += fmt::format("{}{} {}", degrees.empty() ? "" : " x ", name, degree);
  }
  std::string text = degrees.empty() ? "dp 1" : degrees;
  if (plan.sp_degree > 1) text += fmt::format(" x {} {}", workloads::to_string(plan.sp), plan.sp_degree);
  if (const std::string operators = operators_text(plan); !operators.empty()) text += ", " + operators;
  if (plan.sp == SequenceParallel::megatron) text += ", sp megatron";
  if (plan.pp > 1) text += fmt::format(", {}", to_string(plan.schedule));
  if (plan.virtual_stages > 1) text += fmt::format(" {}", plan.virtual_stages);
  if (plan.dp > 1) text += fmt::format(", zero {}", plan.zero);
  if (point.training.recompute != models::Recompute::none)
    text += fmt::format(", recompute {}", workloads::to_string(point.training.recompute));
  return text + fmt::format(", microbatch {}", point.training.microbatch);
}

std::string operators_text(const PlanSpec& plan) {
  std::vector<std::string> parts;
  for (const workloads::Cut cut : {workloads::Cut::attention, workloads::Cut::mlp}) {
    const workloads::OperatorDegrees degrees = plan.degrees(cut);
    if (degrees == plan.degrees(workloads::Cut::plan)) continue;
    std::string text = to_string(cut);
    if (degrees.tp > 1) text += fmt::format(" tp {}", degrees.tp);
    if (degrees.tp > 1 && degrees.tatp > 1) text += " x";
    if (degrees.tatp > 1) text += fmt::format(" tatp {}", degrees.tatp);
    parts.push_back(std::move(text));
  }
  return join(parts);
}

std::string mapping_text(const PlanSpec& plan) {
  std::vector<std::string> parts;
  for (const auto& [axis, mapping] : plan.mapping) {
    if (plan.degree(axis) > 1) parts.push_back(fmt::format("{} {}", to_string(axis), to_string(mapping)));
  }
  if (plan.order != workloads::default_order()) {
    std::vector<std::string> axes;
    for (const Axis axis : plan.order) {
      if (plan.degree(axis) > 1) axes.emplace_back(to_string(axis));
    }
    parts.push_back("order " + join(axes, " "));
  }
  return parts.empty() ? "default" : join(parts);
}

PlanSpace::PlanSpace(const PlanSpaceRequest& request)
    : request_(request), live_tiles_(static_cast<std::int64_t>(topology::live_tiles(request.mesh))) {
  PlanSpec plan = request_.base.plan;
  if (!kept(PlanKey::mapping)) {
    plan.mapping.clear();
    plan.order = workloads::default_order();
    plan.order_given = false;
  }
  if (!kept(PlanKey::tp) || !kept(PlanKey::tatp)) plan.attention.reset(), plan.mlp.reset();
  // Layers of stages are those of a number of stages and chunks.
  if (!kept(PlanKey::pp) || !kept(PlanKey::schedule)) plan.layers_per_stage.clear();
  for (const int tp : degrees_for(PlanKey::tp, plan.tp)) {
    for (const int tatp : degrees_for(PlanKey::tatp, plan.tatp)) {
      for (const int pp : degrees_for(PlanKey::pp, plan.pp)) {
        if (std::int64_t{tp} * tatp * pp > live_tiles_) continue;
        for (const auto& [sp, degree] : sequences(tp)) {
          plan.tp = tp, plan.tatp = tatp, plan.pp = pp, plan.sp = sp, plan.sp_degree = degree;
          add_degrees(plan);
        }
      }
    }
  }
  drop_small();
  for (std::uint32_t i = 0; i < degrees_.size(); ++i) add_choices(i);
  // Degrees that are kept may leave nothing to refuse.
  if (choices_.empty() && first_fault_.empty()) valid(request_.base);
}

std::vector<int> PlanSpace::degrees_for(PlanKey key, int given) const {
  const bool only_replicas = request_.family == PlanFamily::fsdp;
  const bool no_streams = request_.family != PlanFamily::all && key == PlanKey::tatp;
  if (only_replicas || no_streams) return {1};
  if (kept(key)) return {given};
  return divisors(static_cast<int>(request_.mesh.tile_count()));
}

std::vector<PlanSpace::Sequence> PlanSpace::sequences(int tp) const {
  switch (request_.family) {
    case PlanFamily::megatron:
    case PlanFamily::fsdp:
      return {{SequenceParallel::none, 1}};
    case PlanFamily::megatron_sp:
      return {{tp > 1 ? SequenceParallel::megatron : SequenceParallel::none, 1}};
    case PlanFamily::all:
      break;
  }
  if (kept(PlanKey::sp)) return {{request_.base.plan.sp, request_.base.plan.sp_degree}};
  std::vector<Sequence> all{{SequenceParallel::none, 1}};
  if (tp > 1) all.emplace_back(SequenceParallel::megatron, 1);
  for (const int degree : divisors(static_cast<int>(request_.mesh.tile_count()))) {
    if (degree == 1) continue;
    all.emplace_back(SequenceParallel::ulysses, degree);
    all.emplace_back(SequenceParallel::ring, degree);
  }
  return all;
}

/// With the replicas that there are tiles for.
void PlanSpace::add_degrees(PlanSpec plan) {
  const std::int64_t replica = std::int64_t{plan.tp} * plan.tatp * plan.sp_degree * plan.pp;
  if (replica > live_tiles_) return;
  const std::int64_t batch = request_.base.training.global_batch;
  std::vector<int> experts{1};
  if (kept(PlanKey::ep)) {
    experts = {plan.ep};
  } else if (request_.model.routes()) {
    experts = divisors(static_cast<int>(request_.model.experts));
  }
  for (const int ep : experts) {
    plan.ep = ep;
    if (kept(PlanKey::dp)) {
      plan.dp = request_.base.plan.dp;
      if (can_be_laid_out(plan)) degrees_.push_back(plan);
      continue;
    }
    for (std::int64_t dp = std::min(live_tiles_ / replica, batch); dp >= 1; --dp) {
      if (batch % dp != 0 || dp % ep != 0) continue;
      plan.dp = static_cast<int>(dp);
      if (!can_be_laid_out(plan)) continue;
      degrees_.push_back(plan);
      break;
    }
  }
}

/// In its plainest form: the schedule and all that follows from it are still to come.
bool PlanSpace::can_be_laid_out(const PlanSpec& plan) {
  PlanPoint plain{plan, request_.base.training, {}};
  plain.plan.schedule = PipelineSchedule::one_f_one_b;
  plain.plan.virtual_stages = 1;
  plain.plan.layers_per_stage.clear();
  if (!kept(PlanKey::microbatch)) plain.training.microbatch = 1;
  if (!valid(plain)) return false;
  if (open_mapping(plan)) return true;
  try {
    workloads::Mapping(plan, request_.mesh);
  } catch (const PlanError& error) {
    if (first_fault_.empty()) first_fault_ = error.what();
    return false;
  }
  return true;
}

void PlanSpace::drop_small() {
  int most = 0;
  for (const PlanSpec& plan : degrees_) most = std::max(most, plan.tiles_used());
  std::erase_if(degrees_, [most](const PlanSpec& plan) { return 2 * plan.tiles_used() < most; });
}

bool PlanSpace::valid(const PlanPoint& point) {
  try {
    workloads::validate_plan(point.plan, point.training, request_.model, request_.mesh);
    return true;
  } catch (const PlanError& error) {
    if (first_fault_.empty()) first_fault_ = error.what();
    return false;
  }
}

void PlanSpace::add_choices(std::uint32_t number) {
  const PlanSpec& plan = degrees_[number];
  const PlanPoint& base = request_.base;
  const bool megatron = request_.family == PlanFamily::megatron || request_.family == PlanFamily::megatron_sp;

  std::vector<std::pair<PipelineSchedule, int>> schedules{{PipelineSchedule::one_f_one_b, 1}};
  if (kept(PlanKey::schedule)) {
    schedules = {{base.plan.schedule, base.plan.virtual_stages}};
  } else if (plan.pp > 1) {
    schedules.emplace_back(PipelineSchedule::gpipe, 1);
    for (int chunks = 2; chunks <= request_.model.layers / plan.pp; chunks *= 2) {
      schedules.emplace_back(PipelineSchedule::interleaved, chunks);
    }
    if (!megatron) {
      schedules.emplace_back(PipelineSchedule::zb_h1, 1);
      schedules.emplace_back(PipelineSchedule::zb_h2, 1);
    }
  }
  std::vector<int> zeros{0};
  if (request_.family == PlanFamily::fsdp) {
    zeros = {3};
  } else if (kept(PlanKey::zero)) {
    zeros = {base.plan.zero};
  } else if (plan.dp > 1) {
    zeros = megatron ? std::vector{0, 1} : std::vector{0, 1, 2, 3};
  }
  std::vector<models::Recompute> recomputes{models::Recompute::none, models::Recompute::full};
  if (request_.model.attention_kernel == models::AttentionKernel::materialized)
    recomputes.push_back(models::Recompute::selective);
  if (kept(PlanKey::recompute)) recomputes = {base.training.recompute};
  std::vector<std::int64_t> microbatches{base.training.microbatch};
  if (!kept(PlanKey::microbatch)) microbatches = divisors(std::max<std::int64_t>(1, base.training.global_batch / plan.dp));

  for (const auto& [schedule, chunks] : schedules) {
    for (const int zero : zeros) {
      for (const models::Recompute recompute : recomputes) {
        for (const std::int64_t microbatch : microbatches) {
          choices_.push_back({number, schedule, chunks, zero, recompute, microbatch});
          if (!valid(at(choices_.size() - 1))) choices_.pop_back();
        }
      }
    }
  }
}

PlanPoint PlanSpace::at(std::size_t number) const {
  const Choice& choice = choices_[number];
  PlanPoint point{degrees_[choice.degrees], request_.base.training, request_.base.routing};
  point.plan.schedule = choice.schedule;
  point.plan.virtual_stages = choice.virtual_stages;
  point.plan.zero = choice.zero;
  point.training.microbatch = choice.microbatch;
  point.training.recompute = choice.recompute;
  if (!kept(PlanKey::recompute)) point.training.recompute_every = 1;
  return point;
}

}  // namespace wafersim::analysis
