#include "sim/link_loads.h"

#include <algorithm>

namespace wafersim::sim {

LinkLoads::LinkLoads(const topology::Mesh& mesh, const Wafer& wafer, const Trains& trains, const FlitMesh* flits)
    : wafer_(wafer), trains_(trains), flits_(flits) {
  for (topology::LinkId link = 0; link < mesh.link_slots(); ++link) {
    if (mesh.link_alive(link)) links_.push_back(link);
  }
}

PortStatistics LinkLoads::statistics(topology::LinkId link) const {
  if (flits_ != nullptr) return flits_->statistics(link);
  return wafer_.tile(topology::Mesh::link_source(link)).router->engine().statistics(topology::Mesh::link_direction(link));
}

LinkLoad LinkLoads::before(topology::LinkId link, Cycle end) const {
  if (flits_ != nullptr) {
    const PortStatistics port = flits_->statistics(link);
    return {port.busy, port.queued};
  }
  const RouterEngine& router = wafer_.tile(topology::Mesh::link_source(link)).router->engine();
  const topology::Direction direction = topology::Mesh::link_direction(link);
  const PortStatistics& port = router.statistics(direction);
  const Cycle ahead = std::max(router.held_until(direction), end) - end;
  LinkLoad load{port.busy - std::min(ahead, port.busy), port.queued};
  if (const std::uint32_t train = router.holder(direction); train != kNil) {
    const LinkLoad more = trains_.load_before(train, router, static_cast<unsigned>(direction), end);
    load.busy += more.busy;
    load.queued += more.queued;
  }
  return load;
}

std::vector<LinkLoad> LinkLoads::all_before(Cycle end) const {
  std::vector<LinkLoad> loads;
  loads.reserve(links_.size());
  for (const topology::LinkId link : links_) loads.push_back(before(link, end));
  return loads;
}

}  // namespace wafersim::sim
