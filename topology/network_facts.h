#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/dependency_graph.h"
#include "topology/link_loads.h"
#include "topology/mesh_metrics.h"
#include "topology/routing_policy.h"

namespace wafersim::topology {

/// What routes say about link loads; see RoutingPolicy::expected_loads().
enum class LoadKind { exact, expected, even_split };
const char* to_string(LoadKind kind);
LoadKind load_kind(const RoutingPolicy& policy);

struct LinkLoad {
  LinkId link = 0;
  Rational bytes;
};

/// What a policy makes of known traffic.
struct TrafficFacts {
  std::uint64_t pairs = 0;        ///< of tiles that exchange something, a tile and itself left out
  Bytes bytes = 0;                ///< of those pairs
  Rational byte_hops;             ///< sum of all loads
  Rational largest;               ///< bytes on the most loaded link, as plain ones (Mesh::plain_bytes())
  Rational mean;                  ///< over all live links
  Bytes bound = 0;                ///< no routes at all have a smaller largest load (cut_bound())
  std::vector<LinkLoad> hottest;  ///< the longest busy first, equal ones in the order of LinkId
};
/// Throws PlanError when a demand has no live route.
TrafficFacts traffic_facts(const RoutingPolicy& policy, const Mesh& mesh, const Demands& demands,
                           std::size_t hottest = 10);

/// Loads at which uniform traffic saturates the most loaded link, in bytes that each live tile sends in the
/// time in which a plain link carries one byte. Injection and ejection may bind earlier.
struct UniformSaturation {
  bool bound = false;  ///< only that no routes do better is known, from straight cuts
  Rational with_self;  ///< destinations are all live tiles, the sender included
  Rational without_self;
};
/// Nothing where no link is needed or some pair of live tiles has no route (`why_not` then says why).
std::optional<UniformSaturation> uniform_saturation(const RoutingPolicy& policy, const Mesh& mesh,
                                                    std::string& why_not);

/// What is known of a network without simulating it.
struct NetworkFacts {
  std::string routing;
  LoadKind loads = LoadKind::exact;
  unsigned vc_classes = 1;
  unsigned virtual_channels = 1;
  std::uint64_t tiles = 0, live_tiles = 0;
  std::uint64_t links = 0, live_links = 0;  ///< directed
  std::optional<DistanceMetrics> distances;
  std::optional<StraightCut> bisection;
  DependencyVerdict dependencies;
  std::optional<UniformSaturation> uniform;
  std::string no_uniform;               ///< why there is none
  std::optional<TrafficFacts> traffic;  ///< absent without demands, and when `blocked` says why
  std::string blocked;
};
/// `demands` may come from anywhere: a plan's trace, a traffic pattern.
NetworkFacts network_facts(const RoutingPolicy& policy, const Mesh& mesh, unsigned virtual_channels,
                           const Demands& demands);

}  // namespace wafersim::topology
