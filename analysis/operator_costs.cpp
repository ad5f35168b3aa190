#include "analysis/operator_costs.h"

#include <limits>
#include <utility>

#include "base/error.h"
#include "workloads/operator_steps.h"

namespace wafersim::analysis {

using workloads::Cut;
using workloads::OperatorDegrees;
using workloads::OperatorStep;
using workloads::PlanSpec;

namespace {

using What = OperatorStep::What;

/// What one step after the other takes on idle tiles.
class OperatorPlayer {
 public:
  OperatorPlayer(const workloads::LoweringInput& input, const workloads::Mapping& mapping, const OperatorGround& ground)
      : input_(input), mapping_(mapping), ground_(ground) {}

  bool valid(const PlanSpec& plan) const {
    try {
      workloads::validate_plan(plan, input_.training, input_.model, input_.mesh);
      return true;
    } catch (const PlanError&) {
      return false;
    }
  }

  std::vector<Cycle> cycles(const PlanSpec& plan, const std::vector<OperatorStep>& steps) const {
    const workloads::LoweringInput input{input_.model,     input_.training, plan,
                                         input_.placement, input_.hardware, input_.mesh};
    const workloads::Trace trace = workloads::lower_operator_steps(input, mapping_, steps);
    const sim::CompiledTrace code(trace, input.hardware);
    MessageTiming messages(input.hardware, input.mesh, ground_.routing, ground_.model, ground_.seed);
    std::vector<TileId> used;
    for (const workloads::TileBinding& tile : trace.tiles) used.push_back(tile.tile);
    StepReplay replay(code, input.hardware, messages, input.mesh, used, ground_.memory);
    std::vector<Cycle> result;
    for (std::uint32_t step = 0; step < steps.size(); ++step) {
      std::vector<PlayedTile> tiles;
      for (const workloads::TileBinding& tile : trace.tiles) tiles.push_back({&tile, {step}});
      result.push_back(replay.play(tiles).steps.front().end);
    }
    return result;
  }

 private:
  const workloads::LoweringInput& input_;
  const workloads::Mapping& mapping_;
  const OperatorGround& ground_;
};

}  // namespace

std::optional<Cycle> OperatorChain::cost(const std::vector<std::size_t>& chosen) const {
  Cycle total = 0;
  std::size_t before = 0;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const std::optional<Cycle>& own = operators[i][chosen[i]];
    if (!own) return std::nullopt;
    total += reshard[before][chosen[i]] + *own;
    before = chosen[i];
  }
  return total + reshard[before][0];
}

ChosenOperators cheapest(const OperatorChain& chain) {
  constexpr Cycle kNone = std::numeric_limits<Cycle>::max();
  const std::size_t options = chain.options.size();
  std::vector<Cycle> until(options, kNone);  // the cheapest way to an option of the operator before
  until[0] = 0;
  std::vector<std::vector<std::size_t>> came_from;
  for (const OperatorChain::Costs& own : chain.operators) {
    std::vector<Cycle> next(options, kNone);
    std::vector<std::size_t>& from = came_from.emplace_back(options, 0);
    for (std::size_t to = 0; to < options; ++to) {
      for (std::size_t before = 0; own[to] && before < options; ++before) {
        if (until[before] == kNone) continue;
        const Cycle cost = until[before] + chain.reshard[before][to] + *own[to];
        if (cost < next[to]) next[to] = cost, from[to] = before;
      }
    }
    until = std::move(next);
  }
  ChosenOperators best{{}, kNone};
  std::size_t last = 0;
  for (std::size_t option = 0; option < options; ++option) {
    if (until[option] == kNone) continue;
    const Cycle cost = until[option] + chain.reshard[option][0];
    if (cost < best.cost) best.cost = cost, last = option;
  }
  require_invariant(best.cost != kNone, "each operator can have some degrees");
  best.options.resize(chain.operators.size());
  for (std::size_t i = best.options.size(); i-- > 0; last = came_from[i][last]) best.options[i] = last;
  return best;
}

OperatorChain operator_chain(const workloads::LoweringInput& input, const workloads::Mapping& mapping,
                             const OperatorGround& ground) {
  const PlanSpec& plan = input.plan;
  const OperatorDegrees own = plan.degrees(Cut::plan);
  OperatorChain chain;
  chain.options.push_back(own);
  for (int tp = 1; tp <= own.tp * own.tatp; ++tp) {
    const OperatorDegrees degrees{tp, own.tp * own.tatp / tp};
    if (degrees.tp * degrees.tatp == own.tp * own.tatp && degrees != own) chain.options.push_back(degrees);
  }
  const OperatorPlayer player(input, mapping, ground);
  const std::size_t options = chain.options.size();
  const Cycle forwards = input.training.recompute == models::Recompute::full ? 2 : 1;
  const auto both_ways = [&](Cycle there, Cycle back) { return forwards * there + back; };
  const auto with = [&plan](std::optional<OperatorDegrees> attention, std::optional<OperatorDegrees> mlp) {
    PlanSpec result = plan;
    result.attention = attention;
    result.mlp = mlp;
    return result;
  };
  chain.operators.assign(2, OperatorChain::Costs(options));
  chain.reshard.assign(options, std::vector<Cycle>(options, 0));
  for (std::size_t i = 0; i < options; ++i) {
    const OperatorDegrees& degrees = chain.options[i];
    for (const Cut cut : {Cut::attention, Cut::mlp}) {
      const bool attends = cut == Cut::attention;
      const PlanSpec divided = attends ? with(degrees, std::nullopt) : with(std::nullopt, degrees);
      if (!player.valid(divided)) continue;
      const std::vector<Cycle> cycles =
          player.cycles(divided, {{What::forward, cut, {}}, {What::backward, cut, {}}, {What::reshard, Cut::plan, cut},
                                  {What::reshard, cut, Cut::plan}});
      chain.operators[attends ? 0 : 1][i] = forwards * cycles[0] + cycles[1];
      chain.reshard[0][i] = both_ways(cycles[2], cycles[3]);
      chain.reshard[i][0] = both_ways(cycles[3], cycles[2]);
    }
  }
  for (std::size_t i = 1; i < options; ++i) {
    for (std::size_t j = 1; j < options; ++j) {
      const PlanSpec divided = with(chain.options[i], chain.options[j]);
      if (i == j || !chain.operators[0][i] || !chain.operators[1][j] || !player.valid(divided)) continue;
      const std::vector<Cycle> cycles =
          player.cycles(divided, {{What::reshard, Cut::attention, Cut::mlp}, {What::reshard, Cut::mlp, Cut::attention}});
      chain.reshard[i][j] = both_ways(cycles[0], cycles[1]);
    }
  }
  return chain;
}

}  // namespace wafersim::analysis
