#include <algorithm>
#include <boost/graph/depth_first_search.hpp>

#include "topology/mesh_graph.h"
#include "topology/routing.h"

namespace wafersim::topology {
namespace {

/// Vertex = LinkId; an edge from a link to each link that a packet may hold it for.
Graph dependency_graph(const TurnSets& turns, const Mesh& mesh) {
  GraphEdges edges;
  for (LinkId link = 0; link < mesh.link_slots(); ++link) {
    if (turns[link] == 0) continue;
    const TileId through = mesh.neighbour(Mesh::link_source(link), Mesh::link_direction(link));
    for (const Direction out : kAllDirections) {
      if ((turns[link] & turn_bit(out)) != 0) edges.emplace_back(link, Mesh::link(through, out));
    }
  }
  return Graph(boost::edges_are_sorted, edges.begin(), edges.end(), mesh.link_slots());
}

struct CycleFound {
  std::vector<LinkId> links;
};

/// Ends the search by throwing CycleFound at the first edge that closes a cycle.
class CycleFinder : public boost::default_dfs_visitor {
 public:
  explicit CycleFinder(std::vector<LinkId>& predecessors) : predecessors_(predecessors) {}

  template <class Edge>
  void tree_edge(Edge edge, const Graph& graph) {
    predecessors_[target(edge, graph)] = source(edge, graph);
  }

  template <class Edge>
  void back_edge(Edge edge, const Graph& graph) {
    const LinkId first = target(edge, graph);
    CycleFound cycle;
    for (LinkId link = source(edge, graph); link != first; link = predecessors_[link])
      cycle.links.push_back(link);
    cycle.links.push_back(first);
    std::reverse(cycle.links.begin(), cycle.links.end());
    throw cycle;
  }

 private:
  std::vector<LinkId>& predecessors_;
};

}  // namespace

std::vector<LinkId> find_dependency_cycle(const Routing& routing, const Mesh& mesh) {
  const Graph graph = dependency_graph(routing.permitted_turns(mesh), mesh);
  std::vector<LinkId> predecessors(mesh.link_slots());
  try {
    boost::depth_first_search(graph, boost::visitor(CycleFinder(predecessors)));
  } catch (const CycleFound& cycle) {
    return cycle.links;
  }
  return {};
}

}  // namespace wafersim::topology
