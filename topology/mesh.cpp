#include "topology/mesh.h"

#include <fmt/format.h>

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

Mesh::Mesh(const MeshSpec& spec)
    : shape_(checked(spec.shape)),
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
}

TileId Mesh::neighbour(TileId tile, Direction direction) const {
  const auto cols = static_cast<TileId>(shape_.cols);
  switch (direction) {
    case Direction::north:
      return tile >= cols ? tile - cols : kNoTile;
    case Direction::east:
      return tile % cols + 1 < cols ? tile + 1 : kNoTile;
    case Direction::south:
      return tile + cols < tile_count() ? tile + cols : kNoTile;
    case Direction::west:
      return tile % cols > 0 ? tile - 1 : kNoTile;
  }
  return kNoTile;
}

std::optional<Direction> Mesh::direction_to(TileId from, TileId to) const {
  for (const Direction direction : kAllDirections) {
    const TileId other = neighbour(from, direction);
    if (other != kNoTile && other == to) return direction;
  }
  return std::nullopt;
}

int Mesh::distance(TileId a, TileId b) const {
  const Coord from = coord(a);
  const Coord to = coord(b);
  return std::abs(from.x - to.x) + std::abs(from.y - to.y);
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
