#pragma once

#include <array>
#include <string>
#include <vector>

#include "topology/mesh.h"
#include "topology/routing.h"

namespace wafersim::sim {

/// topology::Routing::next() for every packet at every router: routes that are straight_first() are decided here from the two
/// tiles' coordinates, all else by the routing function itself.
class RouteLookup {
 public:
  /// `routing` must outlive this.
  RouteLookup(const topology::Mesh& mesh, const topology::Routing& routing) : routing_(&routing) {
    if (!routing.straight_first()) return;
    const bool x_first = routing.straight_first() == topology::Dimension::x;
    using topology::Hop;
    const std::array<Hop, 3> along_x = {Hop::local, Hop::east, Hop::west};
    const std::array<Hop, 3> along_y = {Hop::local, Hop::south, Hop::north};
    const std::array<Hop, 3>& along_first = x_first ? along_x : along_y;
    const std::array<Hop, 3>& along_second = x_first ? along_y : along_x;
    for (unsigned first = 0; first < 3; ++first) {
      for (unsigned second = 0; second < 3; ++second) {
        hops_[3 * first + second] = first != 0 ? along_first[first] : along_second[second];
      }
    }
    places_.reserve(mesh.tile_count());
    for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
      const topology::Coord at = mesh.coord(tile);
      places_.push_back(x_first ? Place{at.x, at.y} : Place{at.y, at.x});
    }
  }

  /// Without a routing function; not to be asked.
  RouteLookup() = default;
  bool has_routing() const { return routing_ != nullptr; }

  topology::Hop next(TileId at, TileId destination) const {
    if (places_.empty()) return routing_->next(at, destination);
    const Place& from = places_[at];
    const Place& to = places_[destination];
    return hops_[3 * side(from.first, to.first) + side(from.second, to.second)];
  }

 private:
  /// Coordinates in the order in which they are corrected.
  struct Place {
    std::int32_t first;
    std::int32_t second;
  };
  /// 0: there already, 1: towards higher coordinates, 2: towards lower ones. Packets turn at random: this must not branch.
  static unsigned side(std::int32_t from, std::int32_t to) {
    return static_cast<unsigned>(from < to) + 2 * static_cast<unsigned>(from > to);
  }

  const topology::Routing* routing_ = nullptr;
  std::vector<Place> places_;  ///< by tile; empty = ask the routing function
  std::array<topology::Hop, 9> hops_{};  ///< by side() in the first and the second dimension
};

}  // namespace wafersim::sim
