#include "workloads/mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "topology/shapes.h"

namespace wafersim::workloads {
namespace {

using topology::Coord;
using topology::Mesh;
using topology::Shape;

constexpr std::size_t kNamedDeadTiles = 4;

/// What is asked of one axis.
struct AxisRequest {
  Axis axis = Axis::none;
  int degree = 1;
  Placement placement = Placement::standard;
  std::vector<Shape> shapes;  ///< to be tried, best first
};

}  // namespace

std::vector<Shape> factorizations(int count) {
  std::vector<Shape> shapes;
  for (int rows = 1; rows * rows <= count; ++rows) {
    if (count % rows != 0) continue;
    const int cols = count / rows;
    if (rows != cols) shapes.push_back({cols, rows});
    shapes.push_back({rows, cols});
  }
  std::reverse(shapes.begin(), shapes.end());
  return shapes;
}

namespace {

std::vector<Shape> candidate_shapes(const AxisRequest& request, const AxisMapping& wanted) {
  const int degree = request.degree;
  if (wanted.placement == Placement::row) return {{1, degree}};
  if (wanted.placement == Placement::col) return {{degree, 1}};
  if (!wanted.shape) return factorizations(degree);
  if (wanted.shape->size() != degree) {
    throw PlanError(fmt::format("plan.mapping.{}: shape {} has {} places, the degree is {}",
                                to_string(request.axis), topology::to_string(*wanted.shape),
                                wanted.shape->size(), degree));
  }
  return {*wanted.shape};
}

Placement resolve(Axis axis, Placement wanted) {
  require_invariant(wanted != Placement::optimized, "an axis is laid out before its mapping was chosen");
  if (wanted != Placement::standard) return wanted;
  return axis == Axis::pp || axis == Axis::tatp ? Placement::snake : Placement::block;
}

std::vector<AxisRequest> requests(const PlanSpec& plan) {
  for (int i = 0; i < kAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    const auto times = std::count(plan.order.begin(), plan.order.end(), axis);
    if (times > 1 || (times == 0 && plan.degree(axis) > 1)) {
      throw PlanError(fmt::format("plan.mapping.order names {} {} times instead of once", to_string(axis), times));
    }
  }
  std::vector<AxisRequest> all;
  for (const Axis axis : plan.order) {
    const AxisMapping wanted = plan.axis_mapping(axis);
    AxisRequest request{axis, plan.degree(axis), resolve(axis, wanted.placement), {}};
    if (request.degree < 1) {
      throw PlanError(
          fmt::format("plan.{} {} is below 1; nearest valid: 1", to_string(axis), request.degree));
    }
    request.shapes = candidate_shapes(request, wanted);
    all.push_back(std::move(request));
  }
  return all;
}

/// Chooses a shape for each axis such that the whole rectangle fits the mesh.
class ShapeSearch {
 public:
  ShapeSearch(const std::vector<AxisRequest>& axes, const Shape& mesh) : axes_(axes), mesh_(mesh) {}

  std::vector<Shape> run() {
    if (!place({1, 1})) refuse();
    return chosen_;
  }

 private:
  /// Depth first from the inside out, so that the shape of the outermost axis changes first.
  bool place(const Shape& inner) {
    const std::size_t depth = chosen_.size();
    if (depth == axes_.size()) return true;
    if (depth >= reached_) {
      reached_ = depth + 1;
      stuck_inner_ = inner;
    }
    for (const Shape& shape : axes_[depth].shapes) {
      const Shape outer{inner.rows * shape.rows, inner.cols * shape.cols};
      if (outer.rows > mesh_.rows || outer.cols > mesh_.cols) continue;
      chosen_.push_back(shape);
      if (place(outer)) return true;
      chosen_.pop_back();
    }
    return false;
  }

  [[noreturn]] void refuse() const {
    const AxisRequest& axis = axes_[reached_ - 1];
    const Shape& shape = axis.shapes.front();
    throw PlanError(fmt::format(
        "plan.mapping.{0}: {1} copies of a rectangle of {2} tiles do not fit the mesh of {3}: as {4} they "
        "take {5}{6}",
        to_string(axis.axis), axis.degree, topology::to_string(stuck_inner_), topology::to_string(mesh_),
        topology::to_string(shape),
        topology::to_string(Shape{stuck_inner_.rows * shape.rows, stuck_inner_.cols * shape.cols}),
        axis.shapes.size() > 1 ? ", and no other factorization fits" : ""));
  }

  const std::vector<AxisRequest>& axes_;
  Shape mesh_;
  std::vector<Shape> chosen_;
  std::size_t reached_ = 0;  ///< axes that were ever tried
  Shape stuck_inner_;        ///< the rectangle inside the last of them, at the first try
};

/// Tiles inside their rectangle; the rank of the innermost axis runs fastest.
struct Layout {
  Shape rectangle{1, 1};
  std::vector<Coord> places{{0, 0}};
};

Layout copies(const Layout& inner, const Shape& shape, const std::vector<Coord>& positions) {
  const auto [rows, cols] = inner.rectangle;
  Layout outer{{rows * shape.rows, cols * shape.cols}, {}};
  outer.places.reserve(inner.places.size() * positions.size());
  for (const Coord& position : positions) {
    for (const Coord& place : inner.places) {
      outer.places.push_back({position.x * cols + place.x, position.y * rows + place.y});
    }
  }
  return outer;
}

Layout strides(const Layout& inner, const Shape& shape) {
  const auto [rows, cols] = inner.rectangle;
  const int stride = rows * cols;
  Layout outer{{rows * shape.rows, cols * shape.cols}, {}};
  outer.places.reserve(inner.places.size() * static_cast<std::size_t>(shape.size()));
  for (int rank = 0; rank < shape.size(); ++rank) {
    for (const Coord& place : inner.places) {
      const int number = rank * stride + place.y * cols + place.x;
      outer.places.push_back({number % outer.rectangle.cols, number / outer.rectangle.cols});
    }
  }
  return outer;
}

Layout add_axis(const Layout& inner, const AxisRequest& axis, const Shape& shape) {
  if (axis.placement == Placement::strided) return strides(inner, shape);
  const bool snake = axis.placement == Placement::snake;
  return copies(inner, shape, snake ? topology::snake(shape) : topology::row_major(shape));
}

/// Counts dead tiles in any rectangle in constant time (two-dimensional prefix sums).
class DeadTiles {
 public:
  explicit DeadTiles(const Mesh& mesh)
      : mesh_(mesh), width_(mesh.cols() + 1), sums_(static_cast<std::size_t>(width_ * (mesh.rows() + 1)), 0) {
    for (int y = 0; y < mesh.rows(); ++y) {
      for (int x = 0; x < mesh.cols(); ++x) {
        const int dead = mesh.alive(mesh.tile_at({x, y})) ? 0 : 1;
        sums_[at(x + 1, y + 1)] = dead + sums_[at(x, y + 1)] + sums_[at(x + 1, y)] - sums_[at(x, y)];
      }
    }
  }

  bool any(Coord corner, const Shape& shape) const {
    const int right = corner.x + shape.cols, below = corner.y + shape.rows;
    return sums_[at(right, below)] - sums_[at(corner.x, below)] - sums_[at(right, corner.y)] +
               sums_[at(corner.x, corner.y)] >
           0;
  }

  /// Names of the first dead tiles of the north-west corner, row-major.
  std::string names(const Shape& shape) const {
    std::vector<std::string> names;
    for (const Coord& place : topology::row_major(shape)) {
      const TileId tile = mesh_.tile_at(place);
      if (mesh_.alive(tile)) continue;
      if (names.size() == kNamedDeadTiles) return join(names) + ", ...";
      names.push_back(mesh_.name(tile));
    }
    return join(names);
  }

 private:
  std::size_t at(int x, int y) const { return static_cast<std::size_t>(y * width_ + x); }

  const Mesh& mesh_;
  int width_;
  std::vector<int> sums_;
};

/// The first place of the rectangle, row-major, where every tile lives.
Coord find_corner(const Shape& rectangle, const Mesh& mesh) {
  const DeadTiles dead(mesh);
  for (int y = 0; y + rectangle.rows <= mesh.rows(); ++y) {
    for (int x = 0; x + rectangle.cols <= mesh.cols(); ++x) {
      if (!dead.any({x, y}, rectangle)) return {x, y};
    }
  }
  throw PlanError(fmt::format(
      "plan.mapping: no place on the mesh of {} for a rectangle of {} live tiles; in the north-west corner "
      "these are dead: {}",
      topology::to_string(mesh.shape()), topology::to_string(rectangle), dead.names(rectangle)));
}

/// Each place as an index among the distinct values of its axis: a grid with its gaps closed.
std::vector<Coord> compress(const std::vector<Coord>& places, Shape& grid) {
  std::set<int> columns, rows;
  for (const Coord& place : places) {
    columns.insert(place.x);
    rows.insert(place.y);
  }
  grid = {static_cast<int>(rows.size()), static_cast<int>(columns.size())};
  const auto index_in = [](const std::set<int>& values, int value) {
    return static_cast<int>(std::distance(values.begin(), values.find(value)));
  };
  std::vector<Coord> positions;
  for (const Coord& place : places)
    positions.push_back({index_in(columns, place.x), index_in(rows, place.y)});
  return positions;
}

/// Whether one group lies as another does, some way off.
bool is_moved(const std::vector<Coord>& group, const std::vector<Coord>& other) {
  const int x = other.front().x - group.front().x, y = other.front().y - group.front().y;
  return std::equal(group.begin(), group.end(), other.begin(),
                    [&](Coord a, Coord b) { return a.x + x == b.x && a.y + y == b.y; });
}

}  // namespace

AxisMapping explicit_mapping(Placement placement, const Shape& shape) {
  const bool line = placement == Placement::block || placement == Placement::snake;
  if (line && shape.rows == 1 && shape.cols > 1) return {Placement::row, {}};
  if (line && shape.cols == 1 && shape.rows > 1) return {Placement::col, {}};
  if (placement == Placement::row || placement == Placement::col) return {placement, {}};
  return {placement, shape};
}

Mapping::Mapping(const PlanSpec& plan, const Mesh& mesh) {
  std::size_t tiles = 1;
  for (std::size_t i = 0; i < degrees_.size(); ++i) {
    degrees_[i] = plan.degree(static_cast<Axis>(i));
    strides_[i] = tiles;
    tiles *= static_cast<std::size_t>(degrees_[i]);
  }
  const std::vector<AxisRequest> axes = requests(plan);
  const auto depth = [&](Axis axis) { return std::find(plan.order.begin(), plan.order.end(), axis); };
  ep_inside_ = depth(Axis::ep) <= depth(Axis::dp);
  const std::vector<Shape> shapes = ShapeSearch(axes, mesh.shape()).run();
  Layout layout;
  bool strided = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    layout = add_axis(layout, axes[i], shapes[i]);
    strided |= axes[i].placement == Placement::strided;
    const bool snake = axes[i].placement == Placement::snake;
    shapes_[axes[i].axis] = shapes[i];
    laid_out_[axes[i].axis] = explicit_mapping(axes[i].placement, shapes[i]);
    positions_[axes[i].axis] = snake ? topology::snake(shapes[i]) : topology::row_major(shapes[i]);
  }
  const Coord corner = find_corner(layout.rectangle, mesh);
  tiles_.resize(layout.places.size());
  for (std::size_t number = 0; number < layout.places.size(); ++number) {
    const Coord place = layout.places[number];
    std::size_t at = 0, outer = number;
    for (const AxisRequest& axis : axes) {
      const auto degree = static_cast<std::size_t>(axis.degree);
      at += outer % degree * strides_[static_cast<std::size_t>(axis.axis)];
      outer /= degree;
    }
    tiles_[at] = mesh.tile_at({corner.x + place.x, corner.y + place.y});
  }
  if (strided) {
    for (const AxisRequest& axis : axes) observe(axis.axis, mesh);
  }
  find_closed(mesh);
}

namespace {

/// Of the tiles of a group: its places in a single row or column, one after the other, are equally far apart, round the end.
bool closes(const std::vector<TileId>& tiles, const Shape& shape, const std::vector<Coord>& positions, const Mesh& mesh) {
  if (shape.size() < 3 || (shape.rows != 1 && shape.cols != 1)) return false;
  std::vector<TileId> line(tiles.size());
  for (std::size_t rank = 0; rank < tiles.size(); ++rank) {
    line[static_cast<std::size_t>(positions[rank].x + positions[rank].y)] = tiles[rank];
  }
  const int apart = mesh.distance(line[0], line[1]);
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (mesh.distance(line[i], line[(i + 1) % line.size()]) != apart) return false;
  }
  return true;
}

}  // namespace

void Mapping::find_closed(const Mesh& mesh) {
  if (!mesh.wraps()) return;
  for (const auto& [axis, shape] : shapes_) {
    bool all = true;
    for (const std::size_t start : first_members(axis)) {
      std::vector<TileId> members;
      for (int rank = 0; rank < shape.size(); ++rank) {
        members.push_back(tiles_[start + static_cast<std::size_t>(rank) * strides_[static_cast<std::size_t>(axis)]]);
      }
      all = all && closes(members, shape, positions_.at(axis), mesh);
    }
    if (all) closed_.insert(axis);
  }
}

bool Mapping::replicas_closed() const {
  const bool one_dp = degrees_[static_cast<std::size_t>(Axis::dp)] == 1, one_ep = degrees_[static_cast<std::size_t>(Axis::ep)] == 1;
  return (one_ep && axis_closed(Axis::dp)) || (one_dp && axis_closed(Axis::ep));
}

std::size_t Mapping::index(const Ranks& ranks) const {
  static_assert(kAxes == 6);
  const auto term = [this](Axis axis, int rank) {
    return static_cast<std::size_t>(rank) * strides_[static_cast<std::size_t>(axis)];
  };
  return term(Axis::tp, ranks.tp) + term(Axis::tatp, ranks.tatp) + term(Axis::sp, ranks.sp) +
         term(Axis::ep, ranks.ep) + term(Axis::dp, ranks.dp) + term(Axis::pp, ranks.pp);
}

std::vector<TileId> Mapping::group(Axis axis, Ranks ranks) const {
  std::vector<TileId> members;
  for (int rank = 0; rank < degrees_[static_cast<std::size_t>(axis)]; ++rank) {
    ranks.at(axis) = rank;
    members.push_back(tile(ranks));
  }
  return members;
}

/// Where the member with rank 0 of each group of an axis stands in tiles_.
std::vector<std::size_t> Mapping::first_members(Axis axis) const {
  const auto own = static_cast<std::size_t>(axis);
  std::vector<std::size_t> members;
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    if (i / strides_[own] % static_cast<std::size_t>(degrees_[own]) == 0) members.push_back(i);
  }
  return members;
}

Shape Mapping::axis_shape(Axis axis) const {
  const auto found = shapes_.find(axis);
  return found == shapes_.end() ? Shape{} : found->second;
}

const std::vector<Coord>& Mapping::axis_positions(Axis axis) const {
  static const std::vector<Coord> kAlone{{0, 0}};
  const auto found = positions_.find(axis);
  return found == positions_.end() ? kAlone : found->second;
}

std::vector<TileId> Mapping::replicas(Ranks ranks) const {
  std::vector<TileId> members;
  for (ranks.dp = 0; ranks.dp < degrees_[static_cast<std::size_t>(Axis::dp)]; ++ranks.dp) {
    for (ranks.ep = 0; ranks.ep < degrees_[static_cast<std::size_t>(Axis::ep)]; ++ranks.ep) {
      members.push_back(tile(ranks));
    }
  }
  return members;
}

Shape Mapping::replica_shape() const {
  const Shape dp = axis_shape(Axis::dp), ep = axis_shape(Axis::ep);
  return {dp.rows * ep.rows, dp.cols * ep.cols};
}

std::vector<Coord> Mapping::replica_positions() const {
  const Shape inner = axis_shape(ep_inside_ ? Axis::ep : Axis::dp);
  std::vector<Coord> positions;
  for (const Coord& dp : axis_positions(Axis::dp)) {
    for (const Coord& ep : axis_positions(Axis::ep)) {
      const Coord& in = ep_inside_ ? ep : dp;
      const Coord& out = ep_inside_ ? dp : ep;
      positions.push_back({out.x * inner.cols + in.x, out.y * inner.rows + in.y});
    }
  }
  return positions;
}

/// Takes the shape and positions of an axis from the tiles, when all groups of the axis make the same grid.
void Mapping::observe(Axis axis, const Mesh& mesh) {
  const int degree = degrees_[static_cast<std::size_t>(axis)];
  if (degree == 1) return;
  Shape common;
  std::vector<Coord> positions, first, places;
  bool grid = true;
  for (const std::size_t start : first_members(axis)) {
    places.clear();
    for (int rank = 0; rank < degree; ++rank) {
      const auto further = static_cast<std::size_t>(rank) * strides_[static_cast<std::size_t>(axis)];
      places.push_back(mesh.coord(tiles_[start + further]));
    }
    if (first.empty()) {
      first = places;
      positions = compress(places, common);
      grid = common.size() == degree;
    } else if (!is_moved(first, places)) {
      Shape shape;
      const std::vector<Coord> found = compress(places, shape);
      grid = shape == common && found == positions;
    }
    if (!grid) break;
  }
  shapes_[axis] = grid ? common : Shape{1, degree};
  positions_[axis] = grid ? positions : topology::row_major({1, degree});
}

}  // namespace wafersim::workloads
