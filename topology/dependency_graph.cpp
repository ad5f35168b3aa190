#include "topology/dependency_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/depth_first_search.hpp>

#include "base/error.h"
#include "topology/mesh_graph.h"

namespace wafersim::topology {
namespace {

/// Turns from links of one class to those of another.
struct ClassTurns {
  unsigned from;
  unsigned to;
  TurnSets turns;
};

/// Vertices are numbered class by class, in each by LinkId.
class DependencyGraph {
 public:
  DependencyGraph(const RoutingPolicy& policy, const Mesh& mesh, unsigned virtual_channels) : mesh_(mesh) {
    const unsigned wanted = policy.vc_classes();
    require_invariant(wanted >= 1 && virtual_channels >= 1, "a policy without classes or virtual channels");
    classes_ = std::min(wanted, virtual_channels);
    const auto shared = [&](unsigned vc_class) { return vcs_of_class(vc_class, wanted, classes_).first; };
    for (unsigned c = 0; c < wanted; ++c) {
      permit({shared(c), shared(c), policy.class_turns(mesh, c)});
      for (unsigned next = 0; next < wanted; ++next) {
        if (next != c) permit({shared(c), shared(next), policy.handover_turns(mesh, c, next)});
      }
    }
  }

  unsigned classes() const { return classes_; }

  Graph build() const {
    GraphEdges edges;
    for (unsigned from = 0; from < classes_; ++from) {
      for (LinkId link = 0; link < mesh_.link_slots(); ++link) {
        for (const ClassTurns& part : permitted_) {
          if (part.from == from) add_edges(edges, part, link);
        }
      }
    }
    return Graph(boost::edges_are_sorted, edges.begin(), edges.end(), classes_ * mesh_.link_slots());
  }

 private:
  std::uint32_t vertex(unsigned vc_class, LinkId link) const { return vc_class * mesh_.link_slots() + link; }

  void permit(ClassTurns fresh) {
    for (ClassTurns& known : permitted_) {
      if (known.from != fresh.from || known.to != fresh.to) continue;
      for (LinkId link = 0; link < mesh_.link_slots(); ++link) known.turns[link] |= fresh.turns[link];
      return;
    }
    permitted_.push_back(std::move(fresh));
  }

  void add_edges(GraphEdges& edges, const ClassTurns& part, LinkId link) const {
    if (part.turns[link] == 0) return;
    const TileId through = mesh_.neighbour(Mesh::link_source(link), Mesh::link_direction(link));
    for (const Direction out : kAllDirections) {
      if ((part.turns[link] & turn_bit(out)) == 0) continue;
      edges.emplace_back(vertex(part.from, link), vertex(part.to, Mesh::link(through, out)));
    }
  }

  const Mesh& mesh_;
  unsigned classes_ = 1;
  std::vector<ClassTurns> permitted_;
};

struct CycleFound {
  std::uint32_t vertex;
};

/// Ends the search by throwing CycleFound at the first edge that closes a cycle.
class CycleFinder : public boost::default_dfs_visitor {
 public:
  template <class Edge>
  void back_edge(Edge edge, const Graph& graph) {
    throw CycleFound{static_cast<std::uint32_t>(target(edge, graph))};
  }
};

/// The shortest cycle through a vertex that lies on one, breadth first; starts with the vertex.
std::vector<std::uint32_t> shortest_cycle(const Graph& graph, std::uint32_t start) {
  constexpr std::uint32_t kUnseen = ~std::uint32_t{0};
  std::vector<std::uint32_t> predecessors(num_vertices(graph), kUnseen);
  std::vector<std::uint32_t> queue = {start};
  for (std::size_t head = 0; head < queue.size() && predecessors[start] == kUnseen; ++head) {
    const auto [first, last] = adjacent_vertices(queue[head], graph);
    for (auto next = first; next != last; ++next) {
      if (predecessors[*next] != kUnseen) continue;
      predecessors[*next] = queue[head];
      queue.push_back(static_cast<std::uint32_t>(*next));
    }
  }
  require_invariant(predecessors[start] != kUnseen, "a cycle of the dependency graph is none");
  std::vector<std::uint32_t> cycle;
  std::uint32_t vertex = start;
  do {
    vertex = predecessors[vertex];
    cycle.push_back(vertex);
  } while (vertex != start);
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

std::vector<std::uint32_t> find_cycle(const Graph& graph) {
  try {
    boost::depth_first_search(graph, boost::visitor(CycleFinder()));
  } catch (const CycleFound& found) {
    return shortest_cycle(graph, found.vertex);
  }
  return {};
}

}  // namespace

DependencyVerdict check_dependencies(const RoutingPolicy& policy, const Mesh& mesh,
                                     unsigned virtual_channels) {
  const DependencyGraph dependencies(policy, mesh, virtual_channels);
  const Graph graph = dependencies.build();
  DependencyVerdict verdict;
  verdict.classes = dependencies.classes();
  for (LinkId link = 0; link < mesh.link_slots(); ++link) verdict.channels += mesh.link_alive(link) ? 1 : 0;
  verdict.channels *= verdict.classes;
  verdict.dependencies = num_edges(graph);
  for (const std::uint32_t vertex : find_cycle(graph))
    verdict.cycle.push_back({vertex % mesh.link_slots(), vertex / mesh.link_slots()});
  return verdict;
}

std::optional<unsigned> channels_without_cycle(const RoutingPolicy& policy, const Mesh& mesh) {
  for (unsigned channels = 1; channels <= policy.vc_classes(); ++channels) {
    if (check_dependencies(policy, mesh, channels).acyclic()) return channels;
  }
  return std::nullopt;
}

std::string cycle_text(const DependencyVerdict& verdict, const Mesh& mesh) {
  if (verdict.acyclic()) return {};
  std::string text;
  for (const Channel& channel : verdict.cycle) {
    text += mesh.name(Mesh::link_source(channel.link)) + " >";
    if (verdict.classes > 1) text += std::to_string(channel.vc_class);
    text += " ";
  }
  return text + mesh.name(Mesh::link_source(verdict.cycle.front().link));
}

}  // namespace wafersim::topology
