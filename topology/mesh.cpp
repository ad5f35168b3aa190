#include "topology/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace wafersim::topology {
namespace {

/// Links are numbered with 32 bits, four to a tile; a margin is left so that no index computation can wrap.
constexpr std::int64_t kMaxTiles = std::int64_t{1} << 28;

std::string coord_text(Coord c) { return fmt::format("({}, {})", c.x, c.y); }

void require_inside(const Mesh& mesh, Coord c, const std::string& what) {
  if (mesh.contains(c)) return;
  throw PlanError(fmt::format("{} is outside the {} mesh: (x, y) = (column, row) within (0..{}, 0..{})", what,
                              to_string(mesh.shape()), mesh.cols() - 1, mesh.rows() - 1));
}

Shape checked(const Shape& shape) {
  const bool positive = shape.rows >= 1 && shape.cols >= 1;
  if (positive && std::int64_t{shape.rows} * shape.cols <= kMaxTiles) return shape;
  throw PlanError(fmt::format(
      "a mesh of {} tiles cannot be built: rows and columns must be at least 1 and their product at "
      "most {}",
      to_string(shape), kMaxTiles));
}

/// Parses all of `text` as an integer >= 1.
bool parse_extent(std::string_view text, int& out) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out);
  return status == std::errc{} && end == text.data() + text.size() && out >= 1;
}

/// A ring of fewer tiles would join two neighbours twice.
constexpr int kShortestRing = 3;

bool is_ring(const MeshSpec& spec, Dimension dimension) {
  const bool x = dimension == Dimension::x;
  if (spec.wrap != Wrap::both && spec.wrap != (x ? Wrap::x : Wrap::y)) return false;
  return (x ? spec.shape.cols : spec.shape.rows) >= kShortestRing;
}

/// Where place `i` of a ring of `length` tiles lies when it is folded.
constexpr int folded_place(int i, int length) { return i < (length + 1) / 2 ? 2 * i : 2 * (length - i) - 1; }

}  // namespace

const char* to_string(Direction direction) {
  static constexpr std::array names = {"north", "east", "south", "west"};
  return names[static_cast<std::size_t>(direction)];
}

std::string to_string(const Shape& shape) { return fmt::format("{}x{}", shape.rows, shape.cols); }

bool parse_shape(const std::string& text, Shape& out) {
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos) return false;
  const std::string_view view = text;
  Shape parsed;
  if (!parse_extent(view.substr(0, cross), parsed.rows) ||
      !parse_extent(view.substr(cross + 1), parsed.cols)) {
    return false;
  }
  out = parsed;
  return true;
}

bool are_neighbours(const MeshSpec& spec, Coord a, Coord b) {
  const int dx = std::abs(a.x - b.x), dy = std::abs(a.y - b.y);
  if (dx + dy == 1) return true;
  if (dy == 0) return is_ring(spec, Dimension::x) && dx == spec.shape.cols - 1;
  return dx == 0 && is_ring(spec, Dimension::y) && dy == spec.shape.rows - 1;
}

Mesh::Mesh(const MeshSpec& spec)
    : shape_(checked(spec.shape)),
      wraps_x_(is_ring(spec, Dimension::x)),
      wraps_y_(is_ring(spec, Dimension::y)),
      tile_alive_(tile_count(), true),
      link_alive_(link_slots(), true),
      has_faults_(!spec.dead_tiles.empty() || !spec.dead_links.empty()) {
  for (const Coord dead : spec.dead_tiles) {
    require_inside(*this, dead, "dead tile " + coord_text(dead));
    tile_alive_[tile_at(dead)] = false;
  }
  for (TileId tile = 0; tile < tile_count(); ++tile) {
    for (const Direction direction : kAllDirections) {
      const TileId other = neighbour(tile, direction);
      link_alive_[link(tile, direction)] = other != kNoTile && tile_alive_[tile] && tile_alive_[other];
    }
  }
  for (const auto& [a, b] : spec.dead_links) {
    const std::string what = "dead link " + coord_text(a) + "-" + coord_text(b);
    require_inside(*this, a, what);
    require_inside(*this, b, what);
    const std::optional<Direction> direction = direction_to(tile_at(a), tile_at(b));
    if (!direction) throw PlanError(what + " does not join two neighbours");
    link_alive_[link(tile_at(a), *direction)] = false;
    link_alive_[link(tile_at(b), opposite(*direction))] = false;
  }
  classify_links(spec);
}

LinkClass Mesh::classify(TileId from, TileId to, Dimension dimension, const MeshSpec& spec) const {
  const Coord a = coord(from), b = coord(to);
  const bool x = dimension == Dimension::x;
  const int length = x ? shape_.cols : shape_.rows;
  int first = x ? a.x : a.y, second = x ? b.x : b.y;
  LinkClass found;
  if (wraps(dimension) && spec.wrap_layout == WrapLayout::folded) {
    found.kind = LinkKind::folded;
    first = folded_place(first, length);
    second = folded_place(second, length);
  } else if (std::abs(first - second) > 1) {
    found.kind = LinkKind::wrap;
  }
  if (!spec.reticle) return found;
  const int every = x ? spec.reticle->every.cols : spec.reticle->every.rows;
  found.borders = std::abs(first / every - second / every);
  if (found.borders > 0) found.rate = spec.reticle->rate;
  return found;
}

void Mesh::classify_links(const MeshSpec& spec) {
  if (spec.reticle) {
    const ReticleGrid& grid = *spec.reticle;
    if (grid.every.rows < 1 || grid.every.cols < 1 || grid.rate <= Rational(0)) {
      throw PlanError("a reticle needs at least one row and column of tiles, and links with a bandwidth");
    }
  }
  if (!spec.reticle && !wraps()) return;
  link_class_.assign(link_slots(), 0);
  for (TileId tile = 0; tile < tile_count(); ++tile) {
    for (const Direction direction : kAllDirections) {
      const TileId other = neighbour(tile, direction);
      if (other == kNoTile) continue;
      const LinkClass found = classify(tile, other, axis_of(direction), spec);
      const auto known = std::find(classes_.begin(), classes_.end(), found);
      link_class_[link(tile, direction)] = static_cast<LinkClassId>(known - classes_.begin());
      if (known == classes_.end()) classes_.push_back(found);
    }
  }
  if (classes_.size() == 1) link_class_.clear();
}

/// bytes / rate, rounded up.
Bytes Mesh::slowed(const Rational& rate, Bytes bytes) {
  __extension__ using Wide = unsigned __int128;
  const auto num = static_cast<std::uint64_t>(rate.num());
  return static_cast<Bytes>((Wide{bytes} * static_cast<std::uint64_t>(rate.den()) + num - 1) / num);
}

const char* Mesh::topology_name() const {
  if (wraps_x_) return wraps_y_ ? "torus" : "half-torus in x";
  return wraps_y_ ? "half-torus in y" : "mesh";
}

TileId Mesh::neighbour(TileId tile, Direction direction) const {
  const auto cols = static_cast<TileId>(shape_.cols);
  switch (direction) {
    case Direction::north:
      if (tile >= cols) return tile - cols;
      return wraps_y_ ? tile + tile_count() - cols : kNoTile;
    case Direction::east:
      if (tile % cols + 1 < cols) return tile + 1;
      return wraps_x_ ? tile + 1 - cols : kNoTile;
    case Direction::south:
      if (tile + cols < tile_count()) return tile + cols;
      return wraps_y_ ? tile + cols - tile_count() : kNoTile;
    case Direction::west:
      if (tile % cols > 0) return tile - 1;
      return wraps_x_ ? tile + cols - 1 : kNoTile;
  }
  return kNoTile;
}

int Mesh::steps(Dimension dimension, int from, int to) const {
  const int ahead = to - from;
  if (!wraps(dimension)) return ahead;
  const int length = dimension == Dimension::x ? shape_.cols : shape_.rows;
  if (2 * ahead > length) return ahead - length;
  return 2 * ahead <= -length ? ahead + length : ahead;
}

std::optional<Direction> Mesh::direction_to(TileId from, TileId to) const {
  for (const Direction direction : kAllDirections) {
    const TileId other = neighbour(from, direction);
    if (other != kNoTile && other == to) return direction;
  }
  return std::nullopt;
}

int Mesh::distance(Coord a, Coord b) const {
  return std::abs(steps(Dimension::x, a.x, b.x)) + std::abs(steps(Dimension::y, a.y, b.y));
}

std::string Mesh::name(TileId tile) const {
  const Coord c = coord(tile);
  return fmt::format("tile_{}_{}", c.x, c.y);
}

std::string Mesh::link_name(LinkId link) const {
  const TileId source = link_source(link);
  const TileId target = neighbour(source, link_direction(link));
  return name(source) + ">" + (target == kNoTile ? "outside" : name(target));
}

}  // namespace wafersim::topology
