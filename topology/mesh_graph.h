#pragma once

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <utility>
#include <vector>

#include "topology/mesh.h"

namespace wafersim::topology {

/// Directed graph whose vertices are plain indices, for the algorithms of Boost.Graph.
using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                 boost::no_property, std::uint32_t, std::uint32_t>;
using GraphEdges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// The live part of a mesh: vertex = TileId, an edge for each live directed link, in the order of LinkId.
/// Dead tiles are vertices without edges.
inline Graph live_graph(const Mesh& mesh) {
  GraphEdges edges;
  edges.reserve(mesh.link_slots());
  for (LinkId link = 0; link < mesh.link_slots(); ++link) {
    if (!mesh.link_alive(link)) continue;
    const TileId source = Mesh::link_source(link);
    edges.emplace_back(source, mesh.neighbour(source, Mesh::link_direction(link)));
  }
  return Graph(boost::edges_are_sorted, edges.begin(), edges.end(), mesh.tile_count());
}

}  // namespace wafersim::topology
