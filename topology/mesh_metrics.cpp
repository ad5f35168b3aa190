#include "topology/mesh_metrics.h"

#include <algorithm>
#include <boost/graph/connected_components.hpp>

#include "topology/mesh_graph.h"

namespace wafersim::topology {
namespace {

constexpr TileId kMaxSearchedTiles = 65'536;

/// Hops between the lines of routers of one dimension.
struct LineHops {
  std::int64_t total = 0;  ///< of all ordered pairs
  int longest = 0;
};

/// Of a line of n without express links n (n^2 - 1) / 3 and n - 1; of a ring n floor(n^2 / 4) and floor(n / 2).
LineHops hops_between_all(const Mesh& mesh, Dimension dimension, int lines) {
  const std::int64_t n = lines;
  if (mesh.wraps(dimension)) return {n * (n * n / 4), lines / 2};
  if (!mesh.express()) return {n * (n * n - 1) / 3, lines - 1};
  LineHops hops;
  for (int from = 0; from < lines; ++from) {
    for (int to = 0; to < lines; ++to) {
      const int apart = mesh.hops(dimension, from, to);
      hops.total += apart;
      hops.longest = std::max(hops.longest, apart);
    }
  }
  return hops;
}

/// All pairs of tiles of a mesh without faults: their hops along x and along y add up.
DistanceMetrics closed_form(const Mesh& mesh) {
  const Shape grid = mesh.router_grid();
  const std::int64_t rows = grid.rows, cols = grid.cols, tiles = mesh.tile_count();
  const LineHops x = hops_between_all(mesh, Dimension::x, grid.cols), y = hops_between_all(mesh, Dimension::y, grid.rows);
  const Rational mean = Rational(x.total, cols * cols) + Rational(y.total, rows * rows);
  DistanceMetrics metrics;
  metrics.parts = 1;
  metrics.diameter = x.longest + y.longest;
  metrics.mean = mean;
  if (tiles > 1) metrics.mean_of_others = mean * Rational(tiles, tiles - 1);
  return metrics;
}

/// Breadth-first searches, one router after the other.
class Searches {
 public:
  explicit Searches(const Mesh& mesh) : mesh_(mesh), graph_(live_graph(mesh)) {}

  DistanceMetrics run() {
    DistanceMetrics metrics;
    metrics.parts = parts();
    for (TileId tile = 0; tile < mesh_.tile_count(); ++tile) {
      if (mesh_.has_router(tile)) metrics.diameter = std::max(metrics.diameter, search(tile));
    }
    const auto live = static_cast<std::int64_t>(live_tiles(mesh_));
    // Each pair of routers stands for all pairs of their tiles.
    const std::int64_t sharing = mesh_.concentration().size(), pairs_of_tiles = pairs_ * sharing * sharing;
    if (pairs_ > 0) metrics.mean = Rational(hops_, pairs_);
    if (pairs_of_tiles > live) metrics.mean_of_others = Rational(hops_ * sharing * sharing, pairs_of_tiles - live);
    return metrics;
  }

 private:
  std::uint32_t parts() const {
    std::vector<std::uint32_t> part(mesh_.tile_count());
    std::uint32_t count = boost::connected_components(
        graph_, boost::make_iterator_property_map(part.begin(), get(boost::vertex_index, graph_)));
    // A tile that no live router goes by is a part of its own.
    for (TileId tile = 0; tile < mesh_.tile_count(); ++tile) count -= mesh_.has_router(tile) ? 0 : 1;
    return count;
  }

  /// Level by level. Returns the number of the last one.
  int search(TileId from) {
    visited_.assign(mesh_.tile_count(), false);
    visited_[from] = true;
    level_.assign(1, from);
    int distance = 0;
    for (;; ++distance) {
      hops_ += static_cast<std::int64_t>(level_.size()) * distance;
      pairs_ += static_cast<std::int64_t>(level_.size());
      next_.clear();
      for (const TileId at : level_) {
        const auto [first, last] = adjacent_vertices(at, graph_);
        for (auto other = first; other != last; ++other) {
          if (visited_[*other]) continue;
          visited_[*other] = true;
          next_.push_back(*other);
        }
      }
      if (next_.empty()) return distance;
      level_.swap(next_);
    }
  }

  const Mesh& mesh_;
  Graph graph_;
  std::vector<bool> visited_;
  std::vector<TileId> level_, next_;
  std::int64_t hops_ = 0;
  std::int64_t pairs_ = 0;
};

/// Cuts across one dimension, between the lines of routers.
void add_cuts(const Mesh& mesh, bool columns, std::vector<StraightCut>& cuts) {
  const Shape& sharing = mesh.concentration();
  const int wide = columns ? sharing.cols : sharing.rows, lines = columns ? mesh.router_grid().cols : mesh.router_grid().rows;
  const auto line_of = [&](TileId tile) { return columns ? mesh.router_coord(tile).x : mesh.router_coord(tile).y; };
  std::vector<std::uint64_t> tiles(static_cast<std::size_t>(lines), 0);
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    tiles[static_cast<std::size_t>(line_of(tile))] += mesh.alive(tile) ? 1 : 0;
  }
  const std::size_t first = cuts.size();
  const std::uint64_t all = live_tiles(mesh);
  std::uint64_t low = 0;
  for (int line = 0; line + 1 < lines; ++line) {
    low += tiles[static_cast<std::size_t>(line)];
    cuts.push_back({.between_columns = columns, .before = (line + 1) * wide - 1, .low_tiles = low, .high_tiles = all - low});
  }
  for (LinkId link = 0; link < mesh.link_slots(); ++link) {
    const Direction up = Mesh::link_direction(link);
    if (!mesh.link_alive(link) || !is_upwards(up) || (axis_of(up) == Dimension::x) != columns) continue;
    const TileId source = Mesh::link_source(link);
    const int from = line_of(source), to = line_of(mesh.neighbour(source, up));
    // The link that closes a ring lies across all cuts.
    for (int line = from < to ? from : 0; line < (from < to ? to : lines - 1); ++line) {
      StraightCut& cut = cuts[first + static_cast<std::size_t>(line)];
      ++cut.links;
      cut.rate = cut.rate + mesh.link_classes()[mesh.link_class(link)].rate;
    }
  }
}

bool through_the_middle(const StraightCut& cut, const Mesh& mesh) {
  const int wide = cut.between_columns ? mesh.concentration().cols : mesh.concentration().rows;
  const int lines = (cut.between_columns ? mesh.cols() : mesh.rows()) / wide;
  const int before = (cut.before + 1) / wide;
  return before == lines / 2 || before == (lines + 1) / 2;
}

}  // namespace

std::uint64_t live_tiles(const Mesh& mesh) {
  std::uint64_t count = 0;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) count += mesh.alive(tile) ? 1 : 0;
  return count;
}

std::optional<DistanceMetrics> measure_distances(const Mesh& mesh) {
  if (!mesh.has_faults()) return closed_form(mesh);
  if (mesh.tile_count() > kMaxSearchedTiles) return std::nullopt;
  return Searches(mesh).run();
}

std::vector<StraightCut> straight_cuts(const Mesh& mesh) {
  std::vector<StraightCut> cuts;
  add_cuts(mesh, true, cuts);
  add_cuts(mesh, false, cuts);
  return cuts;
}

std::optional<StraightCut> bisection(const Mesh& mesh) {
  std::optional<StraightCut> smallest;
  for (const StraightCut& cut : straight_cuts(mesh)) {
    if (!through_the_middle(cut, mesh)) continue;
    if (!smallest || cut.rate < smallest->rate) smallest = cut;
  }
  return smallest;
}

std::optional<Rational> uniform_cut_bound(const Mesh& mesh) {
  std::optional<Rational> bound;
  for (const StraightCut& cut : straight_cuts(mesh)) {
    if (cut.low_tiles == 0 || cut.high_tiles == 0) continue;
    // Each tile of one side sends the share of the other side over the cut.
    const auto low = static_cast<std::int64_t>(cut.low_tiles),
               high = static_cast<std::int64_t>(cut.high_tiles);
    const Rational allowed = Rational(low + high, low) * cut.rate / Rational(high);
    if (!bound || allowed < *bound) bound = allowed;
  }
  return bound;
}

}  // namespace wafersim::topology
