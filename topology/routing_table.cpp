#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <limits>

#include "base/error.h"
#include "topology/mesh_graph.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

/// The table holds a byte for each pair of tiles: 4 GiB at this size.
constexpr TileId kMaxTableTiles = 65'536;

/// Tiles from the nearest to the farthest from a corner of the mesh, then by id. The first of each connected
/// part becomes the root of its tree: without faults that is the north-west corner, where up*/down* has a
/// minimal path for every pair.
std::vector<TileId> root_candidates(const Mesh& mesh) {
  const auto corner_distance = [&mesh](TileId tile) {
    const Coord c = mesh.coord(tile);
    return std::min(c.x, mesh.cols() - 1 - c.x) + std::min(c.y, mesh.rows() - 1 - c.y);
  };
  std::vector<TileId> tiles;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    if (mesh.alive(tile)) tiles.push_back(tile);
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [&](TileId a, TileId b) { return corner_distance(a) < corner_distance(b); });
  return tiles;
}

/// A range [begin, end) of ranks.
struct RankRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// A link towards the root.
struct UpLink {
  std::uint32_t parent;  ///< rank of the tile above
  Direction direction;   ///< from the child to the parent
};

/// All live tiles ranked breadth first from the root of their connected part, part after part. `up` means to
/// a lower rank. A mesh is bipartite, so a link joins neighbouring levels, never two tiles of the same level.
class UpDownOrder {
 public:
  explicit UpDownOrder(const Mesh& mesh) {
    rank_tiles(mesh);
    collect_up_links(mesh);
  }

  const std::vector<RankRange>& parts() const { return parts_; }
  TileId tile(std::uint32_t rank) const { return tiles_[rank]; }
  /// Eastward and westward links come first.
  std::pair<const UpLink*, const UpLink*> up_links(std::uint32_t rank) const {
    return {up_links_.data() + first_up_[rank], up_links_.data() + first_up_[rank + 1]};
  }

 private:
  struct Recorder : boost::default_bfs_visitor {
    explicit Recorder(std::vector<TileId>& tiles) : order(&tiles) {}
    void discover_vertex(TileId tile, const Graph&) { order->push_back(tile); }
    std::vector<TileId>* order;
  };

  void rank_tiles(const Mesh& mesh) {
    const Graph graph = live_graph(mesh);
    std::vector<boost::default_color_type> colors(mesh.tile_count(), boost::white_color);
    const auto color_map = boost::make_iterator_property_map(colors.begin(), get(boost::vertex_index, graph));
    for (const TileId root : root_candidates(mesh)) {
      if (colors[root] != boost::white_color) continue;
      const auto begin = static_cast<std::uint32_t>(tiles_.size());
      boost::breadth_first_visit(graph, root, boost::visitor(Recorder(tiles_)).color_map(color_map));
      parts_.push_back({begin, static_cast<std::uint32_t>(tiles_.size())});
    }
  }

  void collect_up_links(const Mesh& mesh) {
    constexpr std::array horizontal_first = {Direction::east, Direction::west, Direction::north,
                                             Direction::south};
    std::vector<std::uint32_t> rank_of(mesh.tile_count());
    for (std::uint32_t rank = 0; rank < tiles_.size(); ++rank) rank_of[tiles_[rank]] = rank;
    first_up_.push_back(0);
    for (std::uint32_t rank = 0; rank < tiles_.size(); ++rank) {
      for (const Direction direction : horizontal_first) {
        if (!mesh.link_alive(Mesh::link(tiles_[rank], direction))) continue;
        const std::uint32_t other = rank_of[mesh.neighbour(tiles_[rank], direction)];
        if (other < rank) up_links_.push_back({other, direction});
      }
      first_up_.push_back(static_cast<std::uint32_t>(up_links_.size()));
    }
  }

  std::vector<TileId> tiles_;     ///< by rank
  std::vector<RankRange> parts_;  ///< connected parts
  std::vector<UpLink> up_links_;  ///< those of rank r start at first_up_[r]
  std::vector<std::uint32_t> first_up_;
};

constexpr bool horizontal(Hop hop) { return hop == Hop::east || hop == Hop::west; }

/// Shortest live paths that go up any number of links and then down any number, never up again. Since every
/// link of a route's second half leads to a higher rank and every link of its first half to a lower one, no
/// cycle of links can wait for itself (up*/down*, Schroeder et al., Autonet, 1991).
///
/// The rule depends on whether a packet has gone down yet; next(at, destination) does not know. It need not:
/// where a purely downward path from `at` exists, all links on it being one level each, it is as long as the
/// difference of the levels, and no path is shorter. So a tile with a downward path takes it, which keeps a
/// packet that goes down going down, and the other tiles take the parent nearest to the destination. Both are
/// the shortest that the rule permits. Ties go along x first. The root reaches everything in its part
/// downwards, so live tiles that are connected always have a route.
class TableRouting final : public Routing {
 public:
  explicit TableRouting(const Mesh& mesh) : tiles_(mesh.tile_count()) {
    if (tiles_ > kMaxTableTiles) {
      throw PlanError(
          fmt::format("'routing: table' keeps a byte for each pair of tiles and takes at most {} tiles; "
                      "the {} mesh has {}",
                      kMaxTableTiles, to_string(mesh.shape()), tiles_));
    }
    hops_.assign(std::size_t{tiles_} * tiles_, Hop::unreachable);
    const UpDownOrder order(mesh);
    std::vector<std::uint32_t> lengths(tiles_, kNoPath);
    for (const RankRange& part : order.parts()) {
      for (std::uint32_t target = part.begin; target < part.end; ++target) {
        fill_routes_to(target, part, order, lengths);
      }
    }
  }

  const std::string& name() const override {
    static const std::string text = "table";
    return text;
  }

  Hop next(TileId at, TileId destination) const override {
    return hops_[std::size_t{destination} * tiles_ + at];
  }

 private:
  static constexpr std::uint32_t kNoPath = std::numeric_limits<std::uint32_t>::max();

  /// `lengths`, by rank, is scratch: the length of the route from each tile of the part.
  void fill_routes_to(std::uint32_t target, const RankRange& part, const UpDownOrder& order,
                      std::vector<std::uint32_t>& lengths) {
    Hop* const hops = hops_.data() + std::size_t{order.tile(target)} * tiles_;
    std::fill(lengths.begin() + part.begin, lengths.begin() + part.end, kNoPath);
    hops[order.tile(target)] = Hop::local;
    lengths[target] = 0;
    spread_downward_paths(target, part, order, lengths, hops);
    climb_where_no_path_descends(part, order, lengths, hops);
  }

  /// From the destination up: every ancestor goes down to a child on the way.
  static void spread_downward_paths(std::uint32_t target, const RankRange& part, const UpDownOrder& order,
                                    std::vector<std::uint32_t>& lengths, Hop* hops) {
    for (std::uint32_t child = target + 1; child-- > part.begin;) {
      if (lengths[child] == kNoPath) continue;
      const auto [first, last] = order.up_links(child);
      for (const UpLink* up = first; up != last; ++up) {
        const Hop down = to_hop(opposite(up->direction));
        if (lengths[up->parent] != kNoPath && !horizontal(down)) continue;
        lengths[up->parent] = lengths[child] + 1;
        hops[order.tile(up->parent)] = down;
      }
    }
  }

  /// From the root down: parents are settled before their children.
  static void climb_where_no_path_descends(const RankRange& part, const UpDownOrder& order,
                                           std::vector<std::uint32_t>& lengths, Hop* hops) {
    for (std::uint32_t child = part.begin; child < part.end; ++child) {
      if (lengths[child] != kNoPath) continue;
      const auto [first, last] = order.up_links(child);
      const UpLink* best = first;
      for (const UpLink* up = first; up != last; ++up) {
        if (lengths[up->parent] < lengths[best->parent]) best = up;
      }
      lengths[child] = lengths[best->parent] + 1;
      hops[order.tile(child)] = to_hop(best->direction);
    }
  }

  TileId tiles_;
  std::vector<Hop> hops_;  ///< by destination, then by tile
};

}  // namespace

std::unique_ptr<Routing> make_table_routing(const Mesh& mesh) { return std::make_unique<TableRouting>(mesh); }

}  // namespace wafersim::topology
