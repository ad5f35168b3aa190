#pragma once

#include <string>
#include <vector>

#include "base/quantity.h"
#include "models/hardware.h"
#include "topology/mesh.h"
#include "topology/network_facts.h"

namespace wafersim::report {

/// What `wafersim topology` tells of a scenario's network.
struct TopologyReport {
  std::string scenario;  ///< its name
  const topology::Mesh& mesh;
  std::vector<models::LinkModel> links;  ///< by class of the mesh's links; the first is the plain one
  Frequency clock;
  const topology::NetworkFacts& facts;
};

/// One JSON object, indented, with a final newline. Keys: docs/results.md, "wafersim topology".
std::string topology_json(const TopologyReport& report);

/// The same for a person, as a block of lines.
std::string topology_text(const TopologyReport& report);

}  // namespace wafersim::report
