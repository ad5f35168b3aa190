#include "topology/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace wafersim::topology {
namespace {

/// Links are numbered with 32 bits, eight to a tile; a margin is left so that no index computation can wrap.
constexpr std::int64_t kMaxTiles = std::int64_t{1} << 27;

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
  const int tiles = x ? spec.shape.cols : spec.shape.rows, shared = x ? spec.concentration.cols : spec.concentration.rows;
  return tiles >= kShortestRing * std::max(shared, 1);
}

/// Routers that an express link of a dimension leads on by; 1 where there is none.
int express_span(const std::optional<ExpressGrid>& express, Dimension dimension) {
  if (!express) return 1;
  return dimension == Dimension::x ? express->span.cols : express->span.rows;
}
int express_every(const ExpressGrid& express, Dimension dimension) {
  return dimension == Dimension::x ? express.every.cols : express.every.rows;
}

/// Where place `i` of a ring of `length` tiles lies when it is folded.
constexpr int folded_place(int i, int length) { return i < (length + 1) / 2 ? 2 * i : 2 * (length - i) - 1; }

}  // namespace

const char* to_string(Direction direction) {
  static constexpr std::array names = {"north",         "east",         "south",         "west",
                                       "express_north", "express_east", "express_south", "express_west"};
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
  const Shape& shared = spec.concentration;
  for (const Coord end : {a, b}) {
    if (end.x % shared.cols != 0 || end.y % shared.rows != 0) return false;
  }
  const auto joined = [&spec](Dimension dimension, int tiles, int from, int to, int every) {
    const int steps = std::abs(from - to) / every;
    if (steps == 1 || (is_ring(spec, dimension) && steps == tiles / every - 1)) return true;
    return steps > 1 && steps == express_span(spec.express, dimension) &&
           from / every % express_every(*spec.express, dimension) == 0;
  };
  if (a.y == b.y) return joined(Dimension::x, spec.shape.cols, a.x, b.x, shared.cols);
  return a.x == b.x && joined(Dimension::y, spec.shape.rows, a.y, b.y, shared.rows);
}

Mesh::Mesh(const MeshSpec& spec)
    : shape_(checked(spec.shape)),
      concentration_(spec.concentration),
      express_(spec.express),
      wafer_shape_(spec.wafers ? spec.wafers->each : spec.shape),
      wraps_x_(is_ring(spec, Dimension::x)),
      wraps_y_(is_ring(spec, Dimension::y)),
      tile_alive_(tile_count(), true),
      link_alive_(link_slots(), true),
      has_faults_(!spec.dead_tiles.empty() || !spec.dead_links.empty()) {
  check_concentration(spec);
  check_express(spec);
  check_wafers(spec);
  for (const Coord dead : spec.dead_tiles) {
    require_inside(*this, dead, "dead tile " + coord_text(dead));
    tile_alive_[tile_at(dead)] = false;
  }
  for (TileId tile = 0; concentrated() && tile < tile_count(); ++tile) {
    if (tile_alive_[tile] == tile_alive_[router(tile)]) continue;
    throw PlanError(fmt::format("dead tiles share the router {} with live ones: a router of a concentrated mesh is dead with all "
                                "of its {} tiles", this->name(router(tile)), concentration_.size()));
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

void Mesh::check_concentration(const MeshSpec& spec) const {
  const Shape& shared = spec.concentration;
  const bool even = shared.rows >= 1 && shared.cols >= 1 && spec.shape.rows % shared.rows == 0 &&
                    spec.shape.cols % shared.cols == 0;
  if (!even) {
    throw PlanError(fmt::format("the {} mesh is not made of whole rectangles of {} tiles that share a router",
                                to_string(spec.shape), to_string(shared)));
  }
  if (shared.size() > kMaxConcentration) {
    throw PlanError(fmt::format("{} tiles cannot share a router; at most {} can", shared.size(), kMaxConcentration));
  }
}

void Mesh::check_express(const MeshSpec& spec) const {
  if (!spec.express) return;
  const ExpressGrid& grid = *spec.express;
  if (wraps()) throw PlanError("express links are for meshes; a torus has none");
  if (grid.span.size() < 2 || grid.rate <= Rational(0) || grid.every.rows < 1 || grid.every.cols < 1 || grid.span.rows < 1 ||
      grid.span.cols < 1) {
    throw PlanError("express links need a span of two routers or more in some dimension, and a bandwidth");
  }
  for (const Dimension dimension : {Dimension::x, Dimension::y}) {
    const int span = express_span(express_, dimension), every = express_every(grid, dimension);
    if (span == 1 || span % every == 0) continue;
    throw PlanError(fmt::format("express links of span {} begin at every {} routers and would end between these; the span has to "
                                "be a multiple", span, every));
  }
}

void Mesh::check_wafers(const MeshSpec& spec) const {
  if (!spec.wafers) return;
  const Shape& each = spec.wafers->each;
  if (each.rows < 1 || each.cols < 1 || spec.shape.rows % each.rows != 0 || spec.shape.cols % each.cols != 0 ||
      each.rows % concentration_.rows != 0 || each.cols % concentration_.cols != 0 || spec.wafers->rate <= Rational(0)) {
    throw PlanError(fmt::format("the {} mesh does not lie on whole wafers of {} tiles, with links between them",
                                to_string(spec.shape), to_string(each)));
  }
  if (wraps() || spec.express) throw PlanError("several wafers are joined as one mesh, without rings and express links");
}

LinkClass Mesh::classify(TileId from, TileId to, Dimension dimension, const MeshSpec& spec) const {
  const Coord a = router_coord(from), b = router_coord(to);
  const bool x = dimension == Dimension::x;
  const int shared = x ? concentration_.cols : concentration_.rows;
  const int length = (x ? shape_.cols : shape_.rows) / shared;
  int first = x ? a.x : a.y, second = x ? b.x : b.y;
  LinkClass found;
  found.tiles = shared;
  if (wraps(dimension) && spec.wrap_layout == WrapLayout::folded) {
    found.kind = LinkKind::folded;
    first = folded_place(first, length);
    second = folded_place(second, length);
  } else if (std::abs(first - second) > 1) {
    found.kind = wraps(dimension) ? LinkKind::wrap : LinkKind::express;
    if (found.kind == LinkKind::express) {
      found.tiles = shared * std::abs(first - second);
      found.rate = express_->rate;
    }
  }
  first *= shared;
  second *= shared;
  const int wafer = x ? wafer_shape_.cols : wafer_shape_.rows;
  if (first / wafer != second / wafer) return {LinkKind::wafer, 0, spec.wafers->rate, 1};
  if (!spec.reticle) return found;
  first %= wafer;
  second %= wafer;
  const int every = x ? spec.reticle->every.cols : spec.reticle->every.rows;
  found.borders = std::abs(first / every - second / every);
  if (found.borders > 0) found.rate = std::min(found.rate, spec.reticle->rate);
  return found;
}

void Mesh::classify_links(const MeshSpec& spec) {
  if (spec.reticle) {
    const ReticleGrid& grid = *spec.reticle;
    if (grid.every.rows < 1 || grid.every.cols < 1 || grid.rate <= Rational(0)) {
      throw PlanError("a reticle needs at least one row and column of tiles, and links with a bandwidth");
    }
  }
  if (!spec.reticle && !spec.wafers && !wraps() && simple()) return;
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
  if (express_) return concentrated() ? "concentrated mesh with express links" : "mesh with express links";
  if (concentrated() && !wraps()) return "concentrated mesh";
  if (wraps_x_) return wraps_y_ ? "torus" : "half-torus in x";
  return wraps_y_ ? "half-torus in y" : "mesh";
}

TileId Mesh::shared_router(TileId tile) const {
  const Coord at = coord(tile);
  return tile_at({at.x - at.x % concentration_.cols, at.y - at.y % concentration_.rows});
}

unsigned Mesh::slot(TileId tile) const {
  const Coord at = coord(tile);
  return static_cast<unsigned>(at.y % concentration_.rows * concentration_.cols + at.x % concentration_.cols);
}

TileId Mesh::member(TileId router, unsigned slot) const {
  const Coord first = coord(router);
  const int place = static_cast<int>(slot);
  return tile_at({first.x + place % concentration_.cols, first.y + place / concentration_.cols});
}

TileId Mesh::neighbour_in_grid(TileId tile, Direction direction) const {
  if (router(tile) != tile) return kNoTile;
  const Dimension along = axis_of(direction);
  const bool x = along == Dimension::x;
  const Shape grid = router_grid();
  const int length = x ? grid.cols : grid.rows;
  Coord to = router_coord(tile);
  int& line = x ? to.x : to.y;
  int step = 1;
  if (is_express(direction)) {
    step = express_span(express_, along);
    if (step == 1 || line % express_every(*express_, along) != 0) return kNoTile;
  }
  line += is_upwards(direction) ? step : -step;
  if (line < 0 || line >= length) {
    if (!wraps(along)) return kNoTile;
    line = line < 0 ? length - 1 : 0;
  }
  return tile_at({to.x * concentration_.cols, to.y * concentration_.rows});
}

TileId Mesh::neighbour(TileId tile, Direction direction) const {
  if (!simple()) return neighbour_in_grid(tile, direction);
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
    default:
      return kNoTile;
  }
}

int Mesh::steps(Dimension dimension, int from, int to) const {
  const int ahead = to - from;
  if (!wraps(dimension)) return ahead;
  const Shape grid = router_grid();
  const int length = dimension == Dimension::x ? grid.cols : grid.rows;
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
  const Coord from{a.x / concentration_.cols, a.y / concentration_.rows};
  const Coord to{b.x / concentration_.cols, b.y / concentration_.rows};
  return hops(Dimension::x, from.x, to.x) + hops(Dimension::y, from.y, to.y);
}

int Mesh::hops(Dimension dimension, int from, int to) const {
  const int away = std::abs(steps(dimension, from, to));
  const int span = express_span(express_, dimension);
  if (span == 1) return away;
  const int every = express_every(*express_, dimension);
  // Plain links to the first router with an express link, those that fit, plain links to the end.
  const int before = from < to ? (every - from % every) % every : from % every;
  if (away < before + span) return away;
  const int fast = (away - before) / span;
  return away - fast * (span - 1);
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
