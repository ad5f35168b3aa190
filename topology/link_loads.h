#pragma once

#include <vector>

#include "topology/routing.h"

namespace wafersim::topology {

/// What a set of link loads comes to. Smaller is better: by the largest load, then by the hops.
struct LoadSummary {
  Bytes largest = 0;    ///< bytes on the most loaded link
  Bytes byte_hops = 0;  ///< sum over all links of their bytes, which is bytes x hops over the demands
  auto operator<=>(const LoadSummary&) const = default;
};

/// Bytes by link slot (LinkId).
using LinkBytes = std::vector<Bytes>;
LoadSummary summarize(const LinkBytes& loads);

/// The bytes that each link carries when every demand takes its route. Time: the hops of all routes.
/// Throws PlanError, as route() does, when a demand has no live route.
LinkBytes link_loads(const Routing& routing, const Mesh& mesh, const Demands& demands);

}  // namespace wafersim::topology
