#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace wafersim::topology {

/// (x, y) = (column, row); the origin is the north-west corner.
struct Coord {
  int x = 0;
  int y = 0;
  bool operator==(const Coord&) const = default;
};

/// The four mesh directions, in the order of arbitration.
enum class Direction : std::uint8_t { north = 0, east = 1, south = 2, west = 3 };
inline constexpr int kDirections = 4;
inline constexpr std::array<Direction, 4> kAllDirections = {Direction::north, Direction::east,
                                                            Direction::south, Direction::west};

constexpr Direction opposite(Direction d) {
  return static_cast<Direction>((static_cast<int>(d) + 2) % kDirections);
}
const char* to_string(Direction direction);

/// A rows x cols shape, written "ROWSxCOLS" in scenarios.
struct Shape {
  int rows = 1;
  int cols = 1;
  bool operator==(const Shape&) const = default;
  int size() const { return rows * cols; }
};
std::string to_string(const Shape& shape);
/// Parses "ROWSxCOLS" with both >= 1.
bool parse_shape(const std::string& text, Shape& out);

/// What a mesh is made of.
struct MeshSpec {
  Shape shape;
  std::vector<Coord> dead_tiles;                    ///< no core, no router, no links
  std::vector<std::pair<Coord, Coord>> dead_links;  ///< neighbours; both directions are dead
  bool operator==(const MeshSpec&) const = default;
};

/// Index of a directed link: the tile it leaves times four plus its direction.
using LinkId = std::uint32_t;

/// A 2D mesh of tiles joined by directed links, some of which may be dead. Immutable after construction.
class Mesh {
 public:
  /// Throws PlanError when a dead tile or link is outside the mesh or a dead link does not join neighbours.
  explicit Mesh(const MeshSpec& spec);

  int rows() const { return shape_.rows; }
  int cols() const { return shape_.cols; }
  const Shape& shape() const { return shape_; }
  TileId tile_count() const { return static_cast<TileId>(shape_.size()); }
  TileId tile_at(Coord c) const { return static_cast<TileId>(c.y * shape_.cols + c.x); }
  Coord coord(TileId tile) const {
    const int id = static_cast<int>(tile);
    return {id % shape_.cols, id / shape_.cols};
  }
  bool contains(Coord c) const { return c.x >= 0 && c.y >= 0 && c.x < shape_.cols && c.y < shape_.rows; }

  bool alive(TileId tile) const { return tile_alive_[tile]; }
  /// The tile one hop away, dead or alive; kNoTile outside the mesh.
  TileId neighbour(TileId tile, Direction direction) const;
  static LinkId link(TileId tile, Direction direction) {
    return tile * kDirections + static_cast<LinkId>(direction);
  }
  static TileId link_source(LinkId link) { return link / kDirections; }
  static Direction link_direction(LinkId link) { return static_cast<Direction>(link % kDirections); }
  /// Both ends exist and live and the link is not dead.
  bool link_alive(LinkId link) const { return link_alive_[link]; }
  LinkId link_slots() const { return tile_count() * kDirections; }
  bool has_faults() const { return has_faults_; }

  /// The direction of the one-hop neighbour `to`, if it is one.
  std::optional<Direction> direction_to(TileId from, TileId to) const;
  /// Number of hops between two tiles when nothing is dead.
  int distance(TileId a, TileId b) const;

  /// "tile_x_y"
  std::string name(TileId tile) const;
  /// "tile_x_y>tile_x_y"
  std::string link_name(LinkId link) const;

 private:
  Shape shape_;
  std::vector<bool> tile_alive_;
  std::vector<bool> link_alive_;
  bool has_faults_ = false;
};

}  // namespace wafersim::topology
