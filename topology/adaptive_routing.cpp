#include "topology/adaptive_routing.h"

#include <fmt/format.h>

#include "base/error.h"
#include "topology/blocked_way.h"
#include "topology/even_split.h"
#include "topology/live_turns.h"
#include "topology/tile_distances.h"

namespace wafersim::topology {
namespace {

/// With faults a byte for each pair of tiles is kept: 4 GiB at this size.
constexpr TileId kMaxFaultyTiles = 65'536;

class AdaptiveRouting final : public RoutingPolicy {
 public:
  AdaptiveRouting(const Mesh& mesh, std::string name, std::unique_ptr<AdaptiveRule> rule)
      : mesh_(mesh), name_(std::move(name)), rule_(std::move(rule)) {
    for (TileId tile = 0; tile < mesh.tile_count(); ++tile) coords_.push_back(mesh.router_coord(tile));
    if (mesh.has_faults()) find_open_outputs();
  }

  const std::string& name() const override { return name_; }
  const Routing* fixed(unsigned) const override { return nullptr; }

  OutputSet outputs(TileId at, Hop came, const Travel& travel) const override {
    if (at == mesh_.router(travel.target)) return output_bit(Hop::local);
    const OutputSet permitted = rule_->outputs(coords_[at], came, coords_[travel.target]);
    return open_.empty() ? permitted : permitted & open_[open_index(at, travel.target)];
  }

  TurnSets class_turns(const Mesh& mesh, unsigned) const override {
    return live_turns(mesh, [this](LinkId link, TileId through, Direction out) {
      return rule_->permits(coords_[through], Mesh::link_direction(link), out);
    });
  }

  ExpectedLoads expected_loads(const Mesh& mesh, const Demands& demands) const override {
    return {even_split_loads(*this, mesh, demands), 1};
  }
  std::optional<ExpectedLoads> uniform_loads(const Mesh&) const override { return std::nullopt; }

 private:
  std::size_t open_index(TileId at, TileId destination) const {
    return std::size_t{mesh_.router(destination)} * mesh_.tile_count() + at;
  }

  void find_open_outputs() {
    if (mesh_.tile_count() > kMaxFaultyTiles) {
      throw PlanError(
          fmt::format("'routing: {}' with dead tiles or links keeps a byte for each pair of tiles and takes "
                      "at most {} tiles; the {} mesh has {}",
                      name_, kMaxFaultyTiles, to_string(mesh_.shape()), mesh_.tile_count()));
    }
    open_.assign(std::size_t{mesh_.tile_count()} * mesh_.tile_count(), 0);
    TileDistances nearest_first(mesh_);
    for (TileId destination = 0; destination < mesh_.tile_count(); ++destination) {
      if (!mesh_.has_router(destination)) continue;
      for (const TileId at : nearest_first.from(destination)) {
        if (at == destination || !mesh_.has_router(at)) continue;
        OutputSet& open = open_[open_index(at, destination)];
        for (const Direction out : kAllDirections) {
          if (leads_to(at, out, destination)) open |= turn_bit(out);
        }
        if (outputs(at, Hop::local, {destination}) == 0) throw blocked(at, destination);
      }
    }
  }

  /// Tiles nearer to the destination are known already.
  bool leads_to(TileId at, Direction out, TileId destination) const {
    if (!mesh_.link_alive(Mesh::link(at, out))) return false;
    const TileId next = mesh_.neighbour(at, out);
    if (mesh_.distance(next, destination) > mesh_.distance(at, destination)) return false;
    return outputs(next, to_hop(out), {destination}) != 0;
  }

  /// Follows the rule over links that are alive to the first that is not.
  PlanError blocked(TileId source, TileId destination) const {
    TileId at = source;
    Hop came = Hop::local;
    while (at != destination) {
      const OutputSet permitted = rule_->outputs(coords_[at], came, coords_[destination]);
      for (const Direction out : kAllDirections) {
        if ((permitted & turn_bit(out)) == 0) continue;
        if (!mesh_.link_alive(Mesh::link(at, out)))
          return blocked_way(*this, mesh_, source, destination, Mesh::link(at, out));
        came = to_hop(out);
      }
      at = mesh_.neighbour(at, *to_direction(came));
    }
    throw InternalError("an adaptive way is open and blocked");
  }

  const Mesh& mesh_;
  std::string name_;
  std::unique_ptr<AdaptiveRule> rule_;
  std::vector<Coord> coords_;  ///< by tile
  /// With faults, by destination, then by tile: outputs from which a way leads on.
  std::vector<OutputSet> open_;
};

}  // namespace

std::unique_ptr<RoutingPolicy> make_adaptive_routing(const Mesh& mesh, std::string name,
                                                     std::unique_ptr<AdaptiveRule> rule) {
  return std::make_unique<AdaptiveRouting>(mesh, std::move(name), std::move(rule));
}

}  // namespace wafersim::topology
