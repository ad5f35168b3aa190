#include "topology/up_down_order.h"

#include <algorithm>
#include <array>
#include <boost/graph/breadth_first_search.hpp>
#include <cstdlib>

#include "topology/live_turns.h"
#include "topology/mesh_graph.h"

namespace wafersim::topology {
namespace {

struct Recorder : boost::default_bfs_visitor {
  explicit Recorder(std::vector<TileId>& tiles) : order(&tiles) {}
  void discover_vertex(TileId tile, const Graph&) { order->push_back(tile); }
  std::vector<TileId>* order;
};

template <class Distance>
std::vector<TileId> live_tiles_by(const Mesh& mesh, const Distance& distance) {
  std::vector<TileId> tiles;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    if (mesh.has_router(tile)) tiles.push_back(tile);
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [&](TileId a, TileId b) { return distance(mesh.coord(a)) < distance(mesh.coord(b)); });
  return tiles;
}

}  // namespace

std::vector<TileId> roots_near_corners(const Mesh& mesh) {
  return live_tiles_by(mesh, [&mesh](Coord c) {
    return std::min(c.x, mesh.cols() - 1 - c.x) + std::min(c.y, mesh.rows() - 1 - c.y);
  });
}

std::vector<TileId> roots_near(const Mesh& mesh, Coord corner) {
  return live_tiles_by(mesh,
                       [corner](Coord c) { return std::abs(c.x - corner.x) + std::abs(c.y - corner.y); });
}

UpDownOrder::UpDownOrder(const Mesh& mesh, const std::vector<TileId>& roots) {
  rank_tiles(mesh, roots);
  collect_up_links(mesh);
}

void UpDownOrder::rank_tiles(const Mesh& mesh, const std::vector<TileId>& roots) {
  const Graph graph = live_graph(mesh);
  std::vector<boost::default_color_type> colors(mesh.tile_count(), boost::white_color);
  const auto color_map = boost::make_iterator_property_map(colors.begin(), get(boost::vertex_index, graph));
  for (const TileId root : roots) {
    if (colors[root] != boost::white_color) continue;
    const auto begin = static_cast<std::uint32_t>(tiles_.size());
    boost::breadth_first_visit(graph, root, boost::visitor(Recorder(tiles_)).color_map(color_map));
    parts_.push_back({begin, static_cast<std::uint32_t>(tiles_.size())});
  }
  rank_of_.resize(mesh.tile_count());
  for (std::uint32_t rank = 0; rank < tiles_.size(); ++rank) rank_of_[tiles_[rank]] = rank;
}

void UpDownOrder::collect_up_links(const Mesh& mesh) {
  using enum Direction;
  constexpr std::array horizontal_first = {express_east,  express_west,  east,  west,
                                           express_north, express_south, north, south};
  first_up_.push_back(0);
  for (std::uint32_t rank = 0; rank < tiles_.size(); ++rank) {
    for (const Direction direction : horizontal_first) {
      if (!mesh.link_alive(Mesh::link(tiles_[rank], direction))) continue;
      const std::uint32_t other = rank_of_[mesh.neighbour(tiles_[rank], direction)];
      if (other < rank) up_links_.push_back({other, direction});
    }
    first_up_.push_back(static_cast<std::uint32_t>(up_links_.size()));
  }
}

TurnSets turn_sets(const UpDownOrder& order, const Mesh& mesh) {
  return live_turns(mesh, [&](LinkId link, TileId through, Direction out) {
    const bool went_down = order.rank(through) > order.rank(Mesh::link_source(link));
    const bool goes_up = order.rank(mesh.neighbour(through, out)) < order.rank(through);
    return out != opposite(Mesh::link_direction(link)) && !(went_down && goes_up);
  });
}

}  // namespace wafersim::topology
