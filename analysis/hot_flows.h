#pragma once

#include <vector>

#include "topology/mesh.h"
#include "topology/routing.h"
#include "workloads/trace.h"

namespace wafersim::analysis {

/// What one tile sends another for one axis; of a multicast each receiver gets all of it.
struct Flow {
  TileId source = kNoTile;
  TileId destination = kNoTile;
  workloads::Axis axis = workloads::Axis::none;
  Bytes bytes = 0;
};

/// The flows whose routes cross a link.
struct LinkFlows {
  topology::LinkId link = 0;
  std::uint64_t flows = 0;
  Bytes bytes = 0;             ///< of all of them
  std::vector<Flow> heaviest;  ///< heaviest first, then by source, destination and axis
};

/// For each of `links` what all iterations of a trace send across it, with at most `most` flows named. Time:
/// routes of all pairs of tiles that exchange messages.
std::vector<LinkFlows> flows_across(const workloads::Trace& trace, const topology::Routing& routing,
                                    const topology::Mesh& mesh, const std::vector<topology::LinkId>& links,
                                    std::size_t most);

}  // namespace wafersim::analysis
