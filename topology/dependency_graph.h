#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/routing_policy.h"

namespace wafersim::topology {

/// A link as one class of virtual channels sees it.
struct Channel {
  LinkId link = 0;
  unsigned vc_class = 0;
  bool operator==(const Channel&) const = default;
};

/// What the channel dependency graph of a policy on a mesh says. Its vertices are the channels that packets
/// hold, its edges lead from each to those that a packet which holds it may wait for. Without a cycle no
/// packets can wait for each other in a circle (Dally and Seitz 1987); with one they might.
struct DependencyVerdict {
  unsigned classes = 1;        ///< of virtual channels that are told apart
  std::uint64_t channels = 0;  ///< live links times classes
  std::uint64_t dependencies = 0;
  std::vector<Channel> cycle = {};  ///< a short one, in order; empty when there is none

  bool acyclic() const { return cycle.empty(); }
};

/// Builds the graph with Boost.Graph from the turns that the policy permits, within and between its classes;
/// not from simulated traffic. With fewer virtual channels than classes those that share one (vcs_of_class())
/// are one class of the graph.
DependencyVerdict check_dependencies(const RoutingPolicy& policy, const Mesh& mesh,
                                     unsigned virtual_channels);

/// The fewest virtual channels with which the graph has no cycle; nothing when it has one whatever their number.
std::optional<unsigned> channels_without_cycle(const RoutingPolicy& policy, const Mesh& mesh);

/// The cycle tile by tile, "tile_0_0 > tile_1_0 > tile_1_1 > tile_0_0"; with several classes the class of
/// each link behind its arrow: "tile_0_0 >0 tile_1_0 ...".
std::string cycle_text(const DependencyVerdict& verdict, const Mesh& mesh);

}  // namespace wafersim::topology
