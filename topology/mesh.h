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

/// The directions of links, in the order of arbitration: to the routers side by side, then by express links to routers farther
/// off.
enum class Direction : std::uint8_t {
  north = 0,
  east = 1,
  south = 2,
  west = 3,
  express_north = 4,
  express_east = 5,
  express_south = 6,
  express_west = 7
};
inline constexpr int kDirections = 8;
/// Those of meshes without express links: the first of all.
inline constexpr int kPlainDirections = 4;
inline constexpr std::array<Direction, kDirections> kAllDirections = {
    Direction::north,         Direction::east,         Direction::south,         Direction::west,
    Direction::express_north, Direction::express_east, Direction::express_south, Direction::express_west};

/// The plain ones.
inline constexpr std::array<Direction, kPlainDirections> kCompass = {Direction::north, Direction::east, Direction::south,
                                                                     Direction::west};

constexpr bool is_express(Direction d) { return static_cast<int>(d) >= kPlainDirections; }
constexpr Direction opposite(Direction d) { return static_cast<Direction>(static_cast<int>(d) ^ 2); }
/// The express link that leads the same way.
constexpr Direction express(Direction d) { return static_cast<Direction>(static_cast<int>(d) | kPlainDirections); }
/// Both lead the same way, by plain or by express links.
constexpr bool same_way(Direction a, Direction b) { return ((static_cast<int>(a) ^ static_cast<int>(b)) & 3) == 0; }
/// East or south, where coordinates grow.
constexpr bool is_upwards(Direction d) { return same_way(d, Direction::east) || same_way(d, Direction::south); }
const char* to_string(Direction direction);

/// The two dimensions: along a row, along a column.
enum class Dimension : std::uint8_t { x, y };
constexpr Dimension axis_of(Direction direction) {
  return (static_cast<int>(direction) & 1) != 0 ? Dimension::x : Dimension::y;
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

/// Links that skip routers. A router has one in a dimension where its row or column, counted in routers, is a multiple of
/// `every` and the router `span` further on exists. With `every` = 1 these are Ruche networks (Jung et al., NOCS 2020), with
/// `every` = `span` express cubes (Dally 1991).
struct ExpressGrid {
  Shape span;         ///< routers from one end of a link to the other; 1: no express links in that dimension
  Shape every{1, 1};  ///< divides `span`
  Rational rate{1};   ///< bandwidth of an express link, in units of a plain link's
  bool operator==(const ExpressGrid&) const = default;
};

/// A mesh that lies on several wafers side by side, each a whole rectangle of it.
struct WaferGrid {
  Shape each;        ///< tiles of a wafer; divides the shape of the mesh
  Rational rate{1};  ///< bandwidth of a link from wafer to wafer, in units of a plain link's
  bool operator==(const WaferGrid&) const = default;
};

/// What a mesh is made of.
struct MeshSpec {
  Shape shape;                                      ///< of the tiles, those of all wafers
  std::vector<Coord> dead_tiles;                    ///< no core, no router, no links
  std::vector<std::pair<Coord, Coord>> dead_links;  ///< neighbours; both directions are dead
  Wrap wrap = Wrap::none;
  WrapLayout wrap_layout = WrapLayout::folded;
  std::optional<ReticleGrid> reticle = {};
  Shape concentration{1, 1};  ///< tiles that share a router, a rectangle that divides `shape`
  std::optional<ExpressGrid> express = {};
  std::optional<WaferGrid> wafers = {};
  bool operator==(const MeshSpec&) const = default;
};

/// Two tiles of a mesh, or the routers that go by them, are joined by a link, dead or alive.
bool are_neighbours(const MeshSpec& spec, Coord a, Coord b);

/// Tiles that can share a router.
inline constexpr int kMaxConcentration = 8;

/// Index of a directed link: the tile whose router it leaves times kDirections plus its direction.
using LinkId = std::uint32_t;

enum class LinkKind : std::uint8_t {
  plain,   ///< between routers side by side
  folded,  ///< of a folded ring
  wrap,    ///< back from the last tile of a straight ring to the first, or the other way
  express, ///< over routers between its ends
  wafer,   ///< from a wafer to the next
};

/// Links that are alike in bandwidth and latency.
struct LinkClass {
  LinkKind kind = LinkKind::plain;
  int borders = 0;   ///< of reticles that it crosses
  Rational rate{1};  ///< its bandwidth, in units of a plain link's
  int tiles = 1;     ///< that it is long; `folded`: half of that; not of `wrap` and `wafer`
  bool operator==(const LinkClass&) const = default;
};
using LinkClassId = std::uint8_t;

/// A 2D mesh of tiles joined by directed links, some of which may be dead; its rows and columns may be rings. Each tile has a
/// router, or in a concentrated mesh each rectangle of tiles has one, which goes by the name of its north-west tile: links join
/// routers. Immutable after construction.
class Mesh {
 public:
  /// Throws PlanError when a dead tile or link is outside the mesh or a dead link does not join neighbours, for a
  /// reticle without tiles or bandwidth, for tiles that cannot share routers evenly, where some but not all tiles of a router
  /// are dead, for express links that cannot be laid, and for wafers that cannot be joined.
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
  /// "mesh", "torus", "half-torus in x", "half-torus in y", "concentrated mesh", "mesh with express links", ...
  const char* topology_name() const;

  /// Tiles of one wafer: all, unless there are several.
  const Shape& wafer_shape() const { return wafer_shape_; }
  /// The number of a tile's wafer, row by row.
  int wafer(TileId tile) const {
    const Coord at = coord(tile);
    return at.y / wafer_shape_.rows * wafer_grid().cols + at.x / wafer_shape_.cols;
  }
  /// Rows and columns of wafers.
  Shape wafer_grid() const { return {shape_.rows / wafer_shape_.rows, shape_.cols / wafer_shape_.cols}; }

  bool alive(TileId tile) const { return tile_alive_[tile]; }

  /// Several tiles share a router.
  bool concentrated() const { return concentration_.size() > 1; }
  const Shape& concentration() const { return concentration_; }
  /// Rows and columns of routers.
  Shape router_grid() const { return {shape_.rows / concentration_.rows, shape_.cols / concentration_.cols}; }
  /// The tile that the router of a tile goes by.
  TileId router(TileId tile) const { return concentrated() ? shared_router(tile) : tile; }
  /// Row and column in router_grid().
  Coord router_coord(TileId tile) const {
    const Coord at = coord(tile);
    return {at.x / concentration_.cols, at.y / concentration_.rows};
  }
  /// A live router goes by this tile.
  bool has_router(TileId tile) const { return tile_alive_[tile] && router(tile) == tile; }
  /// The place of a tile among those of its router, row by row; and the tile in that place.
  unsigned slot(TileId tile) const;
  TileId member(TileId router, unsigned slot) const;
  const std::optional<ExpressGrid>& express() const { return express_; }
  /// Links that a router may have: the first of all directions.
  int directions() const { return express_ ? kDirections : kPlainDirections; }
  /// Tiles side by side have routers side by side, and nothing else is joined but the ends of rings.
  bool simple() const { return !concentrated() && !express_; }

  /// The tile of the router one hop away, dead or alive; kNoTile outside the mesh, where there is no such link, and for tiles
  /// that no router goes by.
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
  /// Number of hops between the routers of two tiles when nothing is dead; with express links, of the dimension-ordered route.
  int distance(TileId a, TileId b) const { return distance(coord(a), coord(b)); }
  int distance(Coord a, Coord b) const;
  /// The same along one dimension, between two lines of routers.
  int hops(Dimension dimension, int from, int to) const;
  /// Steps of routers from `from` to `to` along a dimension the shorter way, positive to the east or south. Ways round a ring
  /// that are equally long: positive.
  int steps(Dimension dimension, int from, int to) const;

  /// "tile_x_y"
  std::string name(TileId tile) const;
  /// "tile_x_y>tile_x_y"
  std::string link_name(LinkId link) const;

 private:
  static Bytes slowed(const Rational& rate, Bytes bytes);
  TileId shared_router(TileId tile) const;
  TileId neighbour_in_grid(TileId tile, Direction direction) const;
  void check_concentration(const MeshSpec& spec) const;
  void check_express(const MeshSpec& spec) const;
  void check_wafers(const MeshSpec& spec) const;
  LinkClass classify(TileId from, TileId to, Dimension dimension, const MeshSpec& spec) const;
  void classify_links(const MeshSpec& spec);

  Shape shape_;
  Shape concentration_{1, 1};
  std::optional<ExpressGrid> express_;
  Shape wafer_shape_;
  bool wraps_x_ = false;
  bool wraps_y_ = false;
  std::vector<LinkClass> classes_ = {LinkClass{}};
  std::vector<LinkClassId> link_class_;  ///< by LinkId; empty where all are plain
  std::vector<bool> tile_alive_;
  std::vector<bool> link_alive_;
  bool has_faults_ = false;
};

}  // namespace wafersim::topology
