#include "topology/mesh_metrics.h"

#include <algorithm>
#include <boost/graph/connected_components.hpp>

#include "topology/mesh_graph.h"

namespace wafersim::topology {
namespace {

constexpr TileId kMaxSearchedTiles = 65'536;

/// Hops between all ordered pairs of a line of n tiles: n (n^2 - 1) / 3; of a ring: n floor(n^2 / 4).
std::int64_t hops_between_all(std::int64_t n, bool ring) { return ring ? n * (n * n / 4) : n * (n * n - 1) / 3; }

/// All pairs of tiles of a mesh without faults: their hops along x and along y add up.
DistanceMetrics closed_form(const Mesh& mesh) {
  const std::int64_t rows = mesh.rows(), cols = mesh.cols(), tiles = rows * cols;
  const bool ring_x = mesh.wraps(Dimension::x), ring_y = mesh.wraps(Dimension::y);
  const Rational mean = Rational(hops_between_all(cols, ring_x), cols * cols) +
                        Rational(hops_between_all(rows, ring_y), rows * rows);
  DistanceMetrics metrics;
  metrics.parts = 1;
  metrics.diameter = (ring_x ? mesh.cols() / 2 : mesh.cols() - 1) + (ring_y ? mesh.rows() / 2 : mesh.rows() - 1);
  metrics.mean = mean;
  if (tiles > 1) metrics.mean_of_others = mean * Rational(tiles, tiles - 1);
  return metrics;
}

/// Breadth-first searches, one tile after the other.
class Searches {
 public:
  explicit Searches(const Mesh& mesh) : mesh_(mesh), graph_(live_graph(mesh)) {}

  DistanceMetrics run() {
    DistanceMetrics metrics;
    metrics.parts = parts();
    for (TileId tile = 0; tile < mesh_.tile_count(); ++tile) {
      if (mesh_.alive(tile)) metrics.diameter = std::max(metrics.diameter, search(tile));
    }
    const auto live = static_cast<std::int64_t>(live_tiles(mesh_));
    if (pairs_ > 0) metrics.mean = Rational(hops_, pairs_);
    if (pairs_ > live) metrics.mean_of_others = Rational(hops_, pairs_ - live);
    return metrics;
  }

 private:
  std::uint32_t parts() const {
    std::vector<std::uint32_t> part(mesh_.tile_count());
    std::uint32_t count = boost::connected_components(
        graph_, boost::make_iterator_property_map(part.begin(), get(boost::vertex_index, graph_)));
    // A dead tile is a part of its own.
    return count - (mesh_.tile_count() - static_cast<std::uint32_t>(live_tiles(mesh_)));
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

/// Cuts across one dimension, whose links lead `up` from one line to the next.
void add_cuts(const Mesh& mesh, bool columns, std::vector<StraightCut>& cuts) {
  const int lines = columns ? mesh.cols() : mesh.rows(), length = columns ? mesh.rows() : mesh.cols();
  const Direction up = columns ? Direction::east : Direction::south;
  const std::uint64_t all = live_tiles(mesh);
  const auto add_link = [&](StraightCut& cut, TileId tile) {
    const LinkId link = Mesh::link(tile, up);
    if (!mesh.link_alive(link)) return;
    ++cut.links;
    cut.rate = cut.rate + mesh.link_classes()[mesh.link_class(link)].rate;
  };
  const auto tile_of = [&](int line, int place) { return mesh.tile_at(columns ? Coord{line, place} : Coord{place, line}); };
  std::uint64_t low = 0;
  for (int line = 0; line + 1 < lines; ++line) {
    StraightCut cut{.between_columns = columns, .before = line};
    for (int place = 0; place < length; ++place) {
      low += mesh.alive(tile_of(line, place)) ? 1 : 0;
      add_link(cut, tile_of(line, place));
      // Of a ring the link from the last line to the first.
      if (mesh.wraps(columns ? Dimension::x : Dimension::y)) add_link(cut, tile_of(lines - 1, place));
    }
    cut.low_tiles = low;
    cut.high_tiles = all - low;
    cuts.push_back(cut);
  }
}

bool through_the_middle(const StraightCut& cut, const Mesh& mesh) {
  const int lines = cut.between_columns ? mesh.cols() : mesh.rows();
  const int before = cut.before + 1;
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
