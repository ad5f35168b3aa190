#pragma once

#include <vector>

#include "sim/flit_mesh.h"
#include "sim/measurements.h"
#include "sim/tile.h"
#include "sim/trains.h"
#include "topology/mesh.h"

namespace wafersim::sim {

/// What links did so far, whichever engine moves packets over them.
class LinkLoads {
 public:
  /// All must outlive this; `flits` is null but for the flit engine.
  LinkLoads(const topology::Mesh& mesh, const Wafer& wafer, const Trains& trains, const FlitMesh* flits);

  /// Live links, ascending.
  const std::vector<topology::LinkId>& links() const { return links_; }
  PortStatistics statistics(topology::LinkId link) const;
  /// What a link did before cycle `end`, which is now or earlier with nothing granted in between.
  LinkLoad before(topology::LinkId link, Cycle end) const;
  /// The same of all links.
  std::vector<LinkLoad> all_before(Cycle end) const;

 private:
  const Wafer& wafer_;
  const Trains& trains_;
  const FlitMesh* flits_;
  std::vector<topology::LinkId> links_;
};

}  // namespace wafersim::sim
