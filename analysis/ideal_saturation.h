#pragma once

#include <string>

#include "base/rational.h"
#include "models/hardware.h"
#include "topology/mesh.h"
#include "topology/routing_policy.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::analysis {

/// The load at which the busiest channel would be busy all the time.
struct IdealSaturation {
  Rational load;         ///< flits per sending tile and cycle; no stable load is above it
  Rational channel_load; ///< flits over the busiest channel per flit of load (Dally and Towles, section 3.3)
  std::string channel;   ///< "tile_3_0>tile_4_0", a cut (topology::BusiestCut), or a tile's injection or ejection port
  Rational hops;         ///< mean links on a packet's way
  bool bound = false;    ///< routes depend on the run: the channel is that, or the cut, which no routes can relieve
};

/// From the channel loads of the pattern under the routing: links, injection and ejection ports, each with its rate. Links have
/// the mean load over what packets draw; where packets choose, cuts of the mesh take their place. Not for recorded
/// traces. Throws PlanError when some pair has no live route.
IdealSaturation ideal_saturation(const workloads::Destinations& destinations, const topology::RoutingPolicy& routing,
                                 const topology::Mesh& mesh, const models::HardwareModel& hardware);

}  // namespace wafersim::analysis
