#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rational.h"
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

/// The two dimensions: along a row, along a column.
enum class Dimension : std::uint8_t { x, y };
constexpr Dimension axis_of(Direction direction) {
  return direction == Direction::east || direction == Direction::west ? Dimension::x : Dimension::y;
}

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

/// Which rows or columns are closed to rings. A dimension of one or two tiles has no use for it and stays open.
enum class Wrap : std::uint8_t {
  none,  ///< a mesh
  x,     ///< rows are rings
  y,     ///< columns are rings
  both,  ///< a torus
};

/// How a ring lies on the wafer. Folded: out and back in steps of two tiles, so that all its links are two tiles long.
/// Straight: as the open row or column, with one link back over all of it.
enum class WrapLayout : std::uint8_t { folded, straight };

/// Tiles that are exposed together: links over the border of such a rectangle differ from the others.
struct ReticleGrid {
  Shape every;       ///< of one rectangle; the first begins at the north-west corner
  Rational rate{1};  ///< bandwidth of a link over a border, in units of a plain link's
  bool operator==(const ReticleGrid&) const = default;
};

/// What a mesh is made of.
struct MeshSpec {
  Shape shape;
  std::vector<Coord> dead_tiles;                    ///< no core, no router, no links
  std::vector<std::pair<Coord, Coord>> dead_links;  ///< neighbours; both directions are dead
  Wrap wrap = Wrap::none;
  WrapLayout wrap_layout = WrapLayout::folded;
  std::optional<ReticleGrid> reticle = {};
  bool operator==(const MeshSpec&) const = default;
};

/// Two tiles of a mesh are joined by a link, dead or alive.
bool are_neighbours(const MeshSpec& spec, Coord a, Coord b);

/// Index of a directed link: the tile it leaves times four plus its direction.
using LinkId = std::uint32_t;

enum class LinkKind : std::uint8_t {
  plain,   ///< between tiles side by side
  folded,  ///< of a folded ring
  wrap,    ///< back from the last tile of a straight ring to the first, or the other way
};

/// Links that are alike in bandwidth and latency.
struct LinkClass {
  LinkKind kind = LinkKind::plain;
  int borders = 0;   ///< of reticles that it crosses
  Rational rate{1};  ///< its bandwidth, in units of a plain link's
  bool operator==(const LinkClass&) const = default;
};
using LinkClassId = std::uint8_t;

/// A 2D mesh of tiles joined by directed links, some of which may be dead; its rows and columns may be rings. Immutable
/// after construction.
class Mesh {
 public:
  /// Throws PlanError when a dead tile or link is outside the mesh or a dead link does not join neighbours, and for a
  /// reticle without tiles or bandwidth.
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

  /// Rows (x) or columns (y) are rings.
  bool wraps(Dimension dimension) const { return dimension == Dimension::x ? wraps_x_ : wraps_y_; }
  bool wraps() const { return wraps_x_ || wraps_y_; }
  /// "mesh", "torus", "half-torus in x", "half-torus in y"
  const char* topology_name() const;

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

  /// The classes that links belong to; the first is that of plain links, whether there are any or not.
  const std::vector<LinkClass>& link_classes() const { return classes_; }
  LinkClassId link_class(LinkId link) const { return uniform() ? LinkClassId{0} : link_class_[link]; }
  /// All links are plain.
  bool uniform() const { return link_class_.empty(); }
  /// What a plain link carries in the time in which `link` carries `bytes`, rounded up: loads of links of different
  /// bandwidth compare in it.
  Bytes plain_bytes(LinkId link, Bytes bytes) const {
    return uniform() ? bytes : slowed(classes_[link_class_[link]].rate, bytes);
  }

  /// The direction of the one-hop neighbour `to`, if it is one.
  std::optional<Direction> direction_to(TileId from, TileId to) const;
  /// Number of hops between two tiles when nothing is dead.
  int distance(TileId a, TileId b) const { return distance(coord(a), coord(b)); }
  int distance(Coord a, Coord b) const;
  /// Steps from `from` to `to` along a dimension the shorter way, positive to the east or south. Ways round a ring that are
  /// equally long: positive.
  int steps(Dimension dimension, int from, int to) const;

  /// "tile_x_y"
  std::string name(TileId tile) const;
  /// "tile_x_y>tile_x_y"
  std::string link_name(LinkId link) const;

 private:
  static Bytes slowed(const Rational& rate, Bytes bytes);
  LinkClass classify(TileId from, TileId to, Dimension dimension, const MeshSpec& spec) const;
  void classify_links(const MeshSpec& spec);

  Shape shape_;
  bool wraps_x_ = false;
  bool wraps_y_ = false;
  std::vector<LinkClass> classes_ = {LinkClass{}};
  std::vector<LinkClassId> link_class_;  ///< by LinkId; empty where all are plain
  std::vector<bool> tile_alive_;
  std::vector<bool> link_alive_;
  bool has_faults_ = false;
};

}  // namespace wafersim::topology
