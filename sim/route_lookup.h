#pragma once

#include <array>
#include <string>
#include <vector>

#include "topology/mesh.h"
#include "topology/routing.h"

namespace wafersim::sim {

/// topology::Routing::next() for every packet at every router: dimension order on a mesh without faults is decided here from
/// the two tiles' coordinates, all else by the routing function itself.
class RouteLookup {
 public:
  /// `routing` must outlive this. The names are those of topology::make_routing.
  RouteLookup(const topology::Mesh& mesh, const topology::Routing& routing) : routing_(routing) {
    const bool x_first = routing.name() == "xy";
    if (mesh.has_faults() || (!x_first && routing.name() != "yx")) return;
    using topology::Hop;
    const std::array<Hop, 2> along_x = {Hop::west, Hop::east};
    const std::array<Hop, 2> along_y = {Hop::north, Hop::south};
    along_first_ = x_first ? along_x : along_y;
    along_second_ = x_first ? along_y : along_x;
    places_.reserve(mesh.tile_count());
    for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
      const topology::Coord at = mesh.coord(tile);
      places_.push_back(x_first ? Place{at.x, at.y} : Place{at.y, at.x});
    }
  }

  topology::Hop next(TileId at, TileId destination) const {
    if (places_.empty()) return routing_.next(at, destination);
    const Place& from = places_[at];
    const Place& to = places_[destination];
    if (from.first != to.first) return along_first_[from.first < to.first];
    if (from.second != to.second) return along_second_[from.second < to.second];
    return topology::Hop::local;
  }

 private:
  /// Coordinates in the order in which they are corrected.
  struct Place {
    std::int32_t first;
    std::int32_t second;
  };
  const topology::Routing& routing_;
  std::vector<Place> places_;  ///< by tile; empty = ask the routing function
  std::array<topology::Hop, 2> along_first_{};   ///< towards lower and higher coordinates
  std::array<topology::Hop, 2> along_second_{};
};

}  // namespace wafersim::sim
