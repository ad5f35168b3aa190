#include <cstdlib>

#include "topology/live_turns.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

constexpr std::optional<Direction> step(Dimension axis, Coord from, Coord to) {
  if (axis == Dimension::x && from.x != to.x) return to.x > from.x ? Direction::east : Direction::west;
  if (axis == Dimension::y && from.y != to.y) return to.y > from.y ? Direction::south : Direction::north;
  return std::nullopt;
}

/// Corrects one coordinate completely before the other. Never turns from the second axis back into the first,
/// so no cycle of links can wait for itself (Dally & Seitz 1987). Takes an express link wherever one leads on without leading
/// too far, and plain links else, also where the express link is dead. Knows no way around a dead plain link.
class DimensionOrderRouting final : public Routing {
 public:
  DimensionOrderRouting(const Mesh& mesh, std::string name, Dimension first)
      : mesh_(mesh),
        name_(std::move(name)),
        first_(first),
        second_(first == Dimension::x ? Dimension::y : Dimension::x) {
    coords_.reserve(mesh.tile_count());
    for (TileId tile = 0; tile < mesh.tile_count(); ++tile) coords_.push_back(mesh.router_coord(tile));
  }

  const std::string& name() const override { return name_; }

  std::optional<Dimension> straight_first() const override {
    return mesh_.has_faults() || !mesh_.simple() ? std::nullopt : std::optional(first_);
  }

  Hop next(TileId at, TileId destination) const override {
    const std::optional<Direction> output = wanted(at, destination);
    if (!output) return Hop::local;
    if (mesh_.has_faults() && !mesh_.link_alive(Mesh::link(at, *output))) return Hop::unreachable;
    return to_hop(*output);
  }

  std::optional<Direction> blocked_output(TileId at, TileId destination) const override {
    return wanted(at, destination);
  }

  TurnSets permitted_turns(const Mesh& mesh) const override {
    return live_turns(mesh, [this](LinkId link, TileId, Direction out) {
      const Direction in = Mesh::link_direction(link);
      return same_way(out, in) || (axis_of(in) == first_ && axis_of(out) == second_);
    });
  }

 private:
  std::optional<Direction> wanted(TileId at, TileId destination) const {
    const Coord& from = coords_[at];
    const Coord& to = coords_[destination];
    std::optional<Direction> output = step(first_, from, to);
    if (!output) output = step(second_, from, to);
    return output && mesh_.express() ? fastest(at, *output, from, to) : output;
  }

  Direction fastest(TileId at, Direction way, const Coord& from, const Coord& to) const {
    if (!mesh_.link_alive(Mesh::link(at, express(way)))) return way;
    const bool x = axis_of(way) == Dimension::x;
    const int away = std::abs(x ? to.x - from.x : to.y - from.y);
    return away >= (x ? mesh_.express()->span.cols : mesh_.express()->span.rows) ? express(way) : way;
  }

  const Mesh& mesh_;
  std::string name_;
  Dimension first_;
  Dimension second_;
  std::vector<Coord> coords_;  ///< by tile: next() is on the simulator's hot path and a division is slow
};

std::unique_ptr<Routing> make_dimension_order(const Mesh& mesh, std::string name, Dimension first) {
  if (mesh.wraps()) return make_ring_order_routing(mesh, std::move(name), first);
  return std::make_unique<DimensionOrderRouting>(mesh, std::move(name), first);
}

}  // namespace

std::unique_ptr<Routing> make_xy_routing(const Mesh& mesh) {
  return make_dimension_order(mesh, "xy", Dimension::x);
}

std::unique_ptr<Routing> make_yx_routing(const Mesh& mesh) {
  return make_dimension_order(mesh, "yx", Dimension::y);
}

}  // namespace wafersim::topology
