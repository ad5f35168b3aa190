#include "topology/turn_models.h"

#include <array>

#include "topology/live_turns.h"

namespace wafersim::topology {
namespace {

using enum Direction;

constexpr std::array kClockwise = {Turn{south, west}, Turn{north, east}, Turn{east, south},
                                   Turn{west, north}};
constexpr std::array kCounterclockwise = {Turn{north, west}, Turn{south, east}, Turn{east, north},
                                          Turn{west, south}};

char letter(Direction direction) {
  constexpr std::array letters = {'N', 'E', 'S', 'W'};
  return letters[static_cast<std::size_t>(direction)];
}

std::string text(const Turn& turn) { return {letter(turn.in), '>', letter(turn.out)}; }

/// Without a turn and its reverse, the turns that are left still make a cycle (Glass and Ni, figure 4).
bool leaves_a_cycle(const Turn& a, const Turn& b) { return a.in == b.out && a.out == b.in; }

std::vector<TurnModel> make_models() {
  std::vector<TurnModel> with_xy;
  std::vector<TurnModel> others;
  for (const Turn& clockwise : kClockwise) {
    for (const Turn& counterclockwise : kCounterclockwise) {
      if (leaves_a_cycle(clockwise, counterclockwise)) continue;
      TurnModel model{"no " + text(clockwise) + ", " + text(counterclockwise), clockwise, counterclockwise};
      (model.permits_xy() ? with_xy : others).push_back(std::move(model));
    }
  }
  with_xy.insert(with_xy.end(), others.begin(), others.end());
  return with_xy;
}

}  // namespace

bool TurnModel::permits_xy() const {
  return permits(east, north) && permits(east, south) && permits(west, north) && permits(west, south);
}

const std::vector<TurnModel>& turn_models() {
  static const std::vector<TurnModel> models = make_models();
  return models;
}

TurnSets turn_sets(const TurnModel& model, const Mesh& mesh) {
  return live_turns(mesh, [&model](LinkId link, TileId, Direction out) {
    return model.permits(Mesh::link_direction(link), out);
  });
}

Hop quadrant_order_hop(const TurnModel& model, Coord at, Coord destination) {
  if (at == destination) return Hop::local;
  const Direction row = destination.x > at.x ? east : west;
  const Direction column = destination.y > at.y ? south : north;
  if (at.x == destination.x) return to_hop(column);
  if (at.y == destination.y) return to_hop(row);
  return to_hop(model.permits(row, column) ? row : column);
}

}  // namespace wafersim::topology
