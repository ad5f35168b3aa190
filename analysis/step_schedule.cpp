#include "analysis/step_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"

namespace wafersim::analysis {

namespace {

using workloads::Axis;
using workloads::Op;
using workloads::OpKind;
using workloads::Step;
using workloads::StepKind;

/// A message between stages that a template sends or receives.
struct Boundary {
  std::uint32_t peer = 0;
  Op op;
  bool sends = false;
};

class Schedule {
 public:
  Schedule(StepCosts& costs, const workloads::Trace& trace) : costs_(costs), trace_(trace) {
    stages_.resize(static_cast<std::size_t>(trace.pipeline_stages));
    for (std::size_t s = 0; s < stages_.size(); ++s) stages_[s].ends.assign(program(s).steps.size(), 0);
    ends_.assign(static_cast<std::size_t>(trace.iterations), 0);
    starts_.resize(stages_.size());
    port_free_.assign(costs.messages().ports() + stages_.size(), 0);
  }

  Prediction run() {
    do {
      // In the order in which steps start, because they queue for links.
      while (const std::optional<Start> next = earliest()) {
        starts_[next->stage].reset();
        advance(next->stage, *next);
      }
    } while (meet());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      require_invariant(stages_[s].next == program(s).steps.size(), "the stages of a plan wait for each other");
    }
    return finish();
  }

 private:
  struct Stage {
    std::uint32_t next = 0;
    std::vector<Cycle> ends;
    std::optional<std::uint32_t> before;  ///< the last foreground step
    bool meets = false;                   ///< its next step waits for the other stages
    Cycle last = 0;
  };

  const workloads::Program& program(std::size_t stage) const { return costs_.program_of(static_cast<int>(stage)); }

  const std::vector<Boundary>& boundaries(std::uint32_t step_template) {
    const auto [found, fresh] = boundaries_.try_emplace(step_template);
    if (fresh) {
      for (const Op& op : trace_.templates[step_template].ops) {
        const bool message = op.kind == OpKind::send || op.kind == OpKind::receive;
        if (message && op.axis == Axis::pp) found->second.push_back({op.peer, op, op.kind == OpKind::send});
      }
    }
    return found->second;
  }

  static std::uint64_t edge(std::size_t from, std::size_t to, const Op& op, const Step& step) {
    return workloads::message_key(op, step) ^ (static_cast<std::uint64_t>(from * 4099 + to) * 0x9e3779b97f4a7c15ULL);
  }

  Cycle ready(const Stage& stage, const workloads::Program& of, const Step& step) const {
    Cycle at = 0;
    for (std::uint32_t i = 0; i < step.wait_count; ++i) at = std::max(at, stage.ends[of.waits[step.first_wait + i]]);
    return at;
  }

  void close(std::size_t s, const Step& step, Cycle end) {
    Stage& stage = stages_[s];
    stage.ends[stage.next] = end;
    if (!step.background) stage.before = stage.next;
    stage.last = std::max(stage.last, end);
    Cycle& iteration = ends_[static_cast<std::size_t>(step.iteration)];
    iteration = std::max(iteration, end);
    ++stage.next;
  }

  /// The next step of a stage, when it can be told.
  struct Start {
    std::size_t stage = 0;
    Cycle at = 0;
    Cycle waits = 0;                       ///< steps of the stage itself
    Cycle arrival = 0, flight = 0;         ///< of what comes from another stage
    std::uint32_t foreground = 0;          ///< the next foreground step, with which background steps before it start
    const ForegroundCost* cost = nullptr;  ///< of that; none when it is one that all stages do together
  };

  std::optional<Start> earliest() {
    std::optional<Start> first;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (!starts_[s]) starts_[s] = start_of(s);
      if (starts_[s] && (!first || starts_[s]->at < first->at)) first = starts_[s];
    }
    return first;
  }

  /// A step in which stages wait for each other: sums of tied tables, and the optimizer unless it goes without the gradient
  /// norm.
  bool is_joint(const Step& step) const {
    const workloads::StepTemplate& of = trace_.templates[step.step_template];
    if (step.kind == StepKind::gradient_sync) return of.name == "gradient_sync.tied";
    if (step.kind != StepKind::optimizer) return false;
    return std::any_of(of.ops.begin(), of.ops.end(),
                       [](const Op& op) { return op.kind == OpKind::send || op.kind == OpKind::receive; });
  }

  std::optional<Start> start_of(std::size_t s) {
    Stage& stage = stages_[s];
    const workloads::Program& of = program(s);
    if (stage.next == of.steps.size()) return std::nullopt;
    const Step& step = of.steps[stage.next];
    stage.meets = is_joint(step);
    if (stage.meets) return std::nullopt;
    Start start{s, 0, ready(stage, of, step), 0, 0, stage.next, nullptr};
    start.at = start.waits;
    const auto joint_or_over = [&] { return start.foreground == of.steps.size() || is_joint(of.steps[start.foreground]); };
    while (!joint_or_over() && of.steps[start.foreground].background) ++start.foreground;
    if (joint_or_over()) return start;
    const Step& foreground = of.steps[start.foreground];
    start.cost = &costs_.foreground(static_cast<int>(s), start.foreground, stage.before);
    if (!start.cost->waits) return start;
    for (const Boundary& in : boundaries(foreground.step_template)) {
      if (in.sends) continue;
      const auto from = static_cast<std::size_t>(costs_.stage_of_peer(static_cast<int>(s), in.peer));
      const auto found = arrivals_.find(edge(from, s, in.op, foreground));
      if (found == arrivals_.end()) return std::nullopt;
      if (found->second.at > start.arrival) start.arrival = found->second.at, start.flight = found->second.flight;
    }
    return start;
  }

  void advance(std::size_t s, const Start& start) {
    Stage& stage = stages_[s];
    if (start.cost == nullptr) {
      return close(s, next_step(s), queue(s, stage.next, start.at, 0).end);
    }
    const ForegroundCost& cost = *start.cost;
    const Cycle before = stage.before ? stage.ends[*stage.before] : 0;
    const Cycle busy = before + cost.after;
    Cycle blocked = share_links(s, cost, before, cost.after);
    std::size_t number = 0;
    while (stage.next < start.foreground) {
      const Cycle from = ready(stage, program(s), next_step(s));
      const Cycle rest = stage.before ? cost.background_ends[number++] : 0;
      const Queued queued = queue(s, stage.next, from, rest);
      if (cost.blocked) blocked = std::max(blocked, queued.end - queued.at_once);
      close(s, next_step(s), queued.end);
    }
    const Step& step = next_step(s);
    const Cycle waits = ready(stage, program(s), step);
    Cycle end = busy + blocked;
    if (waits > before) end = std::max(end, waits + cost.alone);
    const Cycle others = end;
    if (cost.waits) end = std::max(end, start.arrival + cost.late);
    count(cost.causes);
    count_background(others - std::min(busy, others));
    count_outside(end - others, start.flight);
    for (const Boundary& out : boundaries(step.step_template)) {
      if (!out.sends) continue;
      const auto to = static_cast<std::size_t>(costs_.stage_of_peer(static_cast<int>(s), out.peer));
      const auto at = static_cast<Cycle>(static_cast<std::int64_t>(end) + cost.sent);
      arrivals_[edge(s, to, out.op, step)] = {at, cost.sent > 0 ? static_cast<Cycle>(cost.sent) : 0};
    }
    close(s, step, end);
  }

  template <class Visit>
  void for_each_port(std::size_t s, const std::vector<MessageTiming::Usage>& ports, TileId at, const Visit& visit) const {
    const TileId here = costs_.tile_of(static_cast<int>(s)).tile;
    for (const MessageTiming::Usage& usage : ports) {
      const std::optional<std::uint32_t> port =
          at == kNoTile || at == here ? usage.port : costs_.messages().moved(usage.port, at, here);
      if (port) visit(*port, usage.cycles);
    }
  }

  /// When a background step ends, and when it would with nothing before it.
  struct Queued {
    Cycle end = 0, at_once = 0;
  };

  /// The vector engines of a stage are a port more.
  std::uint32_t vector_port(std::size_t s) const { return static_cast<std::uint32_t>(costs_.messages().ports() + s); }

  /// A background step takes its turn at every port behind those before it, and `least` cycles in any case.
  Queued queue(std::size_t s, std::uint32_t step, Cycle start, Cycle least) {
    const BackgroundCost& cost = costs_.background(static_cast<int>(s), step);
    const Cycle at_once = start + std::max(cost.alone, least);
    double end = static_cast<double>(at_once);
    const auto take = [&](std::uint32_t port, double cycles) {
      double& free = port_free_[port];
      free = std::max(free, static_cast<double>(start)) + cycles;
      end = std::max(end, free);
      latest_free_ = std::max(latest_free_, free);
    };
    for_each_port(s, cost.ports, cost.at, take);
    if (cost.vector_busy != 0) take(vector_port(s), static_cast<double>(cost.vector_busy));
    return {rounded_up(end), at_once};
  }

  /// Foreground and background messages have half of a link each while both want it. By how much a foreground step that would
  /// take `span` cycles from `start` on ends later; background steps under way take longer, too.
  Cycle share_links(std::size_t s, const ForegroundCost& cost, Cycle start, Cycle span) {
    if (latest_free_ <= static_cast<double>(start) || span == 0) return 0;
    double waiting = 0;
    for (const double cycles : cost.causes.waiting) waiting += cycles;
    const double exposed = waiting / static_cast<double>(costs_.tiles_per_stage());
    double delay = 0;
    const auto share = [&](std::uint32_t port, double cycles, double hidden) {
      double& free = port_free_[port];
      const double queued = free - static_cast<double>(start);
      if (queued <= 0) return;
      delay = std::max(delay, std::min(cycles, queued) - hidden);
      if (port == vector_port(s)) return;  // its background work is older, and goes first
      free += cycles * std::min(1.0, queued / static_cast<double>(span));
      latest_free_ = std::max(latest_free_, free);
    };
    for_each_port(s, cost.ports, cost.at,
                  [&](std::uint32_t port, double cycles) { share(port, cycles, std::max(0.0, cycles - exposed)); });
    const double links = delay;
    delay = 0;
    share(vector_port(s), static_cast<double>(cost.vector_busy), 0);
    delay += links;
    return static_cast<Cycle>(delay);
  }

  /// Steps in which stages wait for each other, once all that take part have come there.
  bool meet() {
    // Tied tables come before the optimizer, on the two ends only.
    const auto at = [&](std::size_t s, StepKind kind) { return stages_[s].meets && next_step(s).kind == kind; };
    const std::size_t last = stages_.size() - 1;
    const bool tied = at(0, StepKind::gradient_sync) && at(last, StepKind::gradient_sync);
    bool all = true;
    for (std::size_t s = 0; s < stages_.size(); ++s) all = all && at(s, StepKind::optimizer);
    if (!tied && !all) return false;
    std::vector<std::optional<std::uint32_t>> steps(stages_.size());
    Cycle start = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (!stages_[s].meets || (tied && next_step(s).kind != StepKind::gradient_sync)) continue;
      steps[s] = stages_[s].next;
      start = std::max(start, ready(stages_[s], program(s), next_step(s)));
    }
    const BackgroundCost& cost = costs_.together(steps);
    if (!tied) count(cost.causes);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (!steps[s]) continue;
      const Stage& stage = stages_[s];
      const Cycle busy = stage.before ? stage.ends[*stage.before] : 0;
      const Cycle own = ready(stage, program(s), next_step(s));
      if (!tied) count_background(own - std::min(busy, own));
      if (!tied) count_outside(start - own, 0);
      stages_[s].meets = false;
      close(s, next_step(s), start + cost.alone);
    }
    return true;
  }

  const Step& next_step(std::size_t s) const { return program(s).steps[stages_[s].next]; }

  void count(const CauseCycles& causes) {
    breakdown_.compute += causes.compute;
    breakdown_.memory_stall += causes.memory_stall;
    for (std::size_t axis = 0; axis < breakdown_.exposed.size(); ++axis) breakdown_.exposed[axis] += causes.waiting[axis];
    breakdown_.idle += causes.other + causes.waiting[static_cast<std::size_t>(Axis::none)];
  }

  /// All tiles of a stage wait for another stage: for `flight` cycles for a message on its way, before that for its sender.
  void count_outside(Cycle cycles, Cycle flight) {
    const auto tiles = static_cast<double>(costs_.tiles_per_stage());
    breakdown_.exposed[static_cast<std::size_t>(Axis::pp)] += tiles * static_cast<double>(std::min(cycles, flight));
    breakdown_.bubble += tiles * static_cast<double>(cycles - std::min(cycles, flight));
  }

  /// All tiles of a stage wait for a background step.
  void count_background(Cycle cycles) {
    const auto tiles = static_cast<double>(costs_.tiles_per_stage());
    breakdown_.exposed[static_cast<std::size_t>(Axis::dp)] += tiles * static_cast<double>(cycles);
  }

  Prediction finish() {
    Prediction result;
    result.iteration_ends = ends_;
    for (const Stage& stage : stages_) result.cycles = std::max(result.cycles, stage.last);
    for (const Stage& stage : stages_) {
      const Cycle busy = stage.before ? stage.ends[*stage.before] : 0;
      count_background(stage.last - std::min(busy, stage.last));
      (stages_.size() > 1 ? breakdown_.bubble : breakdown_.idle) +=
          static_cast<double>(costs_.tiles_per_stage()) * static_cast<double>(result.cycles - stage.last);
    }
    const double all = static_cast<double>(costs_.tiles_per_stage() * stages_.size()) * static_cast<double>(result.cycles);
    result.breakdown = fractions(all);
    return result;
  }

  /// What of all cycles has another cause is idle.
  Breakdown fractions(double all) const {
    Breakdown part = breakdown_;
    if (all == 0) {
      part.idle = 1;
      return part;
    }
    part.compute /= all;
    part.memory_stall /= all;
    for (double& axis : part.exposed) axis /= all;
    part.bubble /= all;
    part.idle = 0;
    part.idle = std::max(0.0, 1.0 - part.total());
    return part;
  }

  struct Arrival {
    Cycle at = 0, flight = 0;
  };

  StepCosts& costs_;
  const workloads::Trace& trace_;
  std::vector<Stage> stages_;
  std::vector<Cycle> ends_;
  std::vector<std::optional<Start>> starts_;  ///< by stage, as far as they are known
  std::vector<double> port_free_;             ///< when background steps have been through each port
  double latest_free_ = 0;
  std::unordered_map<std::uint64_t, Arrival> arrivals_;
  std::unordered_map<std::uint32_t, std::vector<Boundary>> boundaries_;
  Breakdown breakdown_;  ///< cycles of all tiles
};

}  // namespace

Prediction predict(StepCosts& costs, const workloads::Trace& trace) { return Schedule(costs, trace).run(); }

namespace {

/// What an optimizer computes. Its messages differ from stage to stage, but are played without the other tiles of a stage.
std::vector<std::uint32_t> computation(const workloads::StepTemplate& optimizer) {
  std::vector<std::uint32_t> works{~std::uint32_t{0}};
  for (const Op& op : optimizer.ops) {
    if (op.kind == OpKind::matrix || op.kind == OpKind::vector) works.push_back(op.work);
  }
  return works;
}

/// The stages on which some kind of step comes first, with what stands before it: costs are found there.
std::set<int> stages_to_play(const workloads::Trace& first_tiles) {
  std::set<std::vector<std::uint32_t>> known;
  std::set<int> stages;
  std::vector<const workloads::TileBinding*> tiles;
  for (const workloads::TileBinding& tile : first_tiles.tiles) tiles.push_back(&tile);
  std::sort(tiles.begin(), tiles.end(), [](const auto* a, const auto* b) { return a->stage < b->stage; });
  for (const workloads::TileBinding* tile : tiles) {
    std::vector<std::uint32_t> since;  // templates from the last foreground step on
    for (const Step& step : first_tiles.programs[tile->program].steps) {
      if (step.kind == StepKind::optimizer && first_tiles.iterations == 1) {
        if (known.insert(computation(first_tiles.templates[step.step_template])).second) stages.insert(tile->stage);
        continue;
      }
      since.push_back(step.step_template);
      bool fresh = known.insert({step.step_template}).second;
      if (!step.background) {
        fresh = known.insert(since).second || fresh;
        since = {step.step_template};
      }
      if (fresh) stages.insert(tile->stage);
    }
  }
  return stages;
}

}  // namespace

Prediction predict(const workloads::LoweringInput& input, const workloads::Mapping& mapping,
                   const topology::RoutingPolicy& routing, CostModel model, std::uint64_t seed) {
  workloads::validate_plan(input.plan, input.training, input.model, input.mesh);
  std::set<int> whole;
  if (StepCosts::same_everywhere(input.mesh)) {
    whole = stages_to_play(workloads::lower_stages(input, mapping, {}));
    if (input.model.tied_embeddings) whole.insert({0, input.plan.pp - 1});
  } else {
    for (int stage = 0; stage < input.plan.pp; ++stage) whole.insert(stage);
  }
  const workloads::Trace trace = workloads::lower_stages(input, mapping, whole);
  StepCosts costs({trace, mapping, input.plan, input.hardware, input.mesh, routing, model, seed});
  return predict(costs, trace);
}

}  // namespace wafersim::analysis
