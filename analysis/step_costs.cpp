#include "analysis/step_costs.h"

#include <algorithm>

#include "base/error.h"

namespace wafersim::analysis {

namespace {

/// Tiles have their results at different times, before and after a step: makes the sum of their causes that of the last ones.
void fill(CauseCycles& causes, double cycles) {
  const double total = causes.total();
  if (total > cycles) {
    causes = causes * (cycles / total);
  } else {
    causes.other += cycles - total;
  }
}

/// All tiles of a plan, whether they are in its trace or not.
std::vector<TileId> used_tiles(const CostInput& input) {
  std::vector<TileId> tiles;
  workloads::Ranks ranks;
  const auto each = [&](workloads::Axis axis, const auto& inner) {
    for (int rank = 0; rank < input.plan.degree(axis); ++rank) {
      ranks.at(axis) = rank;
      inner();
    }
  };
  using enum workloads::Axis;
  each(dp, [&] {
    each(ep, [&] {
      each(pp, [&] { each(sp, [&] { each(tatp, [&] { each(tp, [&] { tiles.push_back(input.mapping.tile(ranks)); }); }); }); });
    });
  });
  return tiles;
}

}  // namespace

StepCosts::StepCosts(const CostInput& input)
    : trace_(input.trace),
      mesh_(input.mesh),
      code_(input.trace, input.hardware),
      messages_(input.hardware, input.mesh, input.routing, input.model, input.seed),
      replay_(code_, input.hardware, messages_, input.mesh, used_tiles(input), input.memory),
      uniform_(same_everywhere(input.mesh)) {
  const auto stages = static_cast<std::size_t>(trace_.pipeline_stages);
  representatives_.resize(stages);
  members_.resize(stages);
  all_members_.resize(stages);
  for (const workloads::TileBinding& tile : trace_.tiles) {
    const auto stage = static_cast<std::size_t>(tile.stage);
    stage_by_tile_[tile.tile] = tile.stage;
    all_members_[stage].push_back(&tile);
    if (tile.group / trace_.pipeline_stages < input.plan.ep) members_[stage].push_back(&tile);
    workloads::Ranks first;
    first.pp = tile.stage;
    if (input.mapping.tile(first) == tile.tile) representatives_[stage] = &tile;
  }
}

int StepCosts::stage_of_peer(int stage, std::uint32_t peer) const {
  return stage_by_tile_.at(trace_.peer(tile_of(stage), peer));
}

/// The place in another tile's program of a step that has place `number` in that of the representative.
std::uint32_t StepCosts::index_in(const workloads::TileBinding& tile, const workloads::Step& step, std::uint32_t number) {
  const std::vector<workloads::Step>& steps = trace_.programs[tile.program].steps;
  const std::uint64_t key = sim::step_key(workloads::MatchScope::step, step);
  // Most programs of a stage are the same step for step.
  if (number < steps.size() && sim::step_key(workloads::MatchScope::step, steps[number]) == key) return number;
  auto& index = step_index_[tile.program];
  if (index.empty()) {
    for (std::uint32_t i = 0; i < steps.size(); ++i) index.emplace(sim::step_key(workloads::MatchScope::step, steps[i]), i);
  }
  // Several steps may have a key, such as the sums of the embedding's own and of its tied parameters: the nearest one.
  std::uint32_t nearest = ~std::uint32_t{0};
  const auto distance = [number](std::uint32_t place) { return place > number ? place - number : number - place; };
  const auto [first, end] = index.equal_range(key);
  for (auto each = first; each != end; ++each) {
    const std::uint32_t place = each->second;
    const bool nearer = distance(place) < distance(nearest) || (distance(place) == distance(nearest) && place < nearest);
    if (nearest == ~std::uint32_t{0} || nearer) nearest = place;
  }
  return nearest;
}

/// `steps` are those of the stage's representative. A tile that lacks one of them (a sum in which it has no part) is left out.
void StepCosts::add(std::vector<PlayedTile>& tiles, const Members& members, int stage,
                    const std::vector<std::uint32_t>& steps) {
  for (const workloads::TileBinding* const member : members) {
    PlayedTile& tile = tiles.emplace_back();
    tile.binding = member;
    for (const std::uint32_t step : steps) {
      const std::uint32_t index = index_in(*member, program_of(stage).steps[step], step);
      if (index != ~std::uint32_t{0}) tile.steps.push_back(index);
    }
    if (tile.steps.size() != steps.size()) tiles.pop_back();
  }
}

const ForegroundCost& StepCosts::foreground(int stage, std::uint32_t step, std::optional<std::uint32_t> before) {
  const std::vector<workloads::Step>& steps = program_of(stage).steps;
  std::vector<std::uint32_t> played;
  for (std::uint32_t i = before ? *before : step; i <= step; ++i) played.push_back(i);
  std::vector<std::int64_t> key{place_key(stage), before ? 1 : 0};
  for (const std::uint32_t i : played) key.push_back(steps[i].step_template);
  const auto [found, fresh] = foreground_.try_emplace(std::move(key));
  if (fresh) found->second = play_foreground(stage, played, before.has_value());
  return found->second;
}

Cycle StepCosts::pair(int stage, std::uint32_t before, std::uint32_t step) {
  std::vector<PlayedTile> tiles;
  add(tiles, members_[static_cast<std::size_t>(stage)], stage, {before, step});
  const Played both = replay_.play(tiles);
  return both.steps[1].end - std::min(both.steps[0].end, both.steps[1].end);
}

/// On idle tiles. Always that of the stage itself: where memory spills into DRAM, stages differ in how much does.
const ForegroundCost& StepCosts::play_alone(int stage, std::uint32_t step) {
  const auto [found, fresh] = alone_.try_emplace({stage, program_of(stage).steps[step].step_template});
  ForegroundCost& cost = found->second;
  if (!fresh) return cost;
  std::vector<PlayedTile> tiles;
  add(tiles, members_[static_cast<std::size_t>(stage)], stage, {step});
  const Played alone = replay_.play(tiles);
  const PlayedStep& own = alone.steps.front();
  cost.alone = cost.after = own.end;
  cost.waits = own.waits_outside;
  cost.causes = own.causes;
  fill(cost.causes, static_cast<double>(tiles.size()) * static_cast<double>(cost.after));
  cost.ports = alone.ports;
  cost.vector_busy = alone.vector_busy;
  cost.at = tile_of(stage).tile;
  if (own.sent_on != 0) cost.sent = static_cast<std::int64_t>(own.sent_on) - static_cast<std::int64_t>(own.end);
  if (cost.waits) {
    const Cycle outside = alone.end + 1;
    cost.late = replay_.play(tiles, outside).steps.front().end - outside;
  }
  return cost;
}

/// `steps`: the foreground step, with `after` the one before it and the background steps between them first.
ForegroundCost StepCosts::play_foreground(int stage, const std::vector<std::uint32_t>& steps, bool after) {
  ForegroundCost cost = play_alone(stage, steps.back());
  if (!after) return cost;
  const Members& members = members_[static_cast<std::size_t>(stage)];
  std::vector<PlayedTile> tiles;
  const bool background = steps.size() > 2;
  add(tiles, background ? all_members_[static_cast<std::size_t>(stage)] : members, stage, steps);
  const Played both = replay_.play(tiles);
  const PlayedStep &first = both.steps.front(), &last = both.steps.back();
  cost.after = last.end - std::min(first.end, last.end);
  cost.causes = (last.causes - first.causes) * (static_cast<double>(members.size()) / static_cast<double>(tiles.size()));
  fill(cost.causes, static_cast<double>(members.size()) * static_cast<double>(cost.after));
  for (std::size_t i = 1; i + 1 < steps.size(); ++i) {
    cost.background_ends.push_back(both.steps[i].end - std::min(first.end, both.steps[i].end));
    const std::uint32_t used = program_of(stage).steps[steps[i]].step_template;
    const auto& in_order = code_.step_template(used).in_order[static_cast<std::size_t>(sim::Engine::vector)];
    cost.blocked = cost.blocked || !in_order.empty();
  }
  return cost;
}

/// The share of one of the replicas.
CauseCycles StepCosts::per_replica(const Played& played, const std::vector<PlayedTile>& tiles) const {
  const double replicas = static_cast<double>(all_members_.front().size()) / static_cast<double>(members_.front().size());
  CauseCycles causes = played.steps.front().causes;
  fill(causes, static_cast<double>(tiles.size()) * static_cast<double>(played.steps.front().end));
  return causes * (1.0 / replicas);
}

const BackgroundCost& StepCosts::background(int stage, std::uint32_t step) {
  const auto [found, fresh] = background_.try_emplace({place_key(stage), program_of(stage).steps[step].step_template});
  if (fresh) {
    std::vector<PlayedTile> tiles;
    add(tiles, all_members_[static_cast<std::size_t>(stage)], stage, {step});
    const Played played = replay_.play(tiles);
    found->second = {played.steps.front().end, per_replica(played, tiles), played.vector_busy, played.ports,
                     tile_of(stage).tile};
  }
  return found->second;
}

/// Sums of tied tables are played on both ends. The optimizer is played on one stage, without the messages between stages, and
/// by one tile of each stage, with these alone; what its operations cost is in both.
const BackgroundCost& StepCosts::together(const std::vector<std::optional<std::uint32_t>>& steps) {
  std::vector<std::int64_t> key;
  for (std::size_t stage = 0; stage < steps.size(); ++stage) {
    key.push_back(steps[stage] ? std::int64_t{program_of(static_cast<int>(stage)).steps[*steps[stage]].step_template} : -1);
  }
  const auto [found, fresh] = together_.try_emplace(key);
  if (!fresh) return found->second;
  const bool all = std::all_of(steps.begin(), steps.end(), [](const auto& step) { return step.has_value(); });
  found->second = all && steps.size() > 1 ? play_optimizer(steps) : play_ends(steps);
  return found->second;
}

BackgroundCost StepCosts::play_ends(const std::vector<std::optional<std::uint32_t>>& steps) {
  std::vector<PlayedTile> tiles;
  for (std::size_t stage = 0; stage < steps.size(); ++stage) {
    if (steps[stage]) add(tiles, all_members_[stage], static_cast<int>(stage), {*steps[stage]});
  }
  const Played played = replay_.play(tiles);
  return {played.steps.front().end, per_replica(played, tiles), played.vector_busy, played.ports, kNoTile};
}

BackgroundCost StepCosts::play_optimizer(const std::vector<std::optional<std::uint32_t>>& steps) {
  BackgroundCost cost;
  Cycle least = 0;  // of the operations alone
  const auto whole = std::count_if(all_members_.begin(), all_members_.end(),
                                   [this](const Members& members) { return members.size() == all_members_.front().size(); });
  std::vector<PlayedTile> tiles;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const int stage = static_cast<int>(s);
    // A stage of which only the first tile is there computes what another one does.
    if (all_members_[s].size() == all_members_.front().size()) {
      const BackgroundCost& own = background(stage, *steps[s]);
      cost.alone = std::max(cost.alone, own.alone);
      cost.causes += own.causes * (1.0 / static_cast<double>(whole));
    }
    std::vector<PlayedTile> tile;
    add(tile, {&tile_of(stage)}, stage, {*steps[s]});
    least = std::max(least, replay_.play(tile).steps.front().end);
    tiles.push_back(tile.front());
  }
  cost.causes = cost.causes * static_cast<double>(steps.size());
  // Where tiles of a die share its DRAM, one alone may take longer than all of them.
  const Cycle between = std::max(replay_.play(tiles).steps.front().end, least) - least;
  cost.alone += between;
  cost.causes.waiting[static_cast<std::size_t>(workloads::Axis::pp)] +=
      static_cast<double>(between) * static_cast<double>(tiles_per_stage() * steps.size());
  return cost;
}

}  // namespace wafersim::analysis
