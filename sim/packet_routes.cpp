#include "sim/packet_routes.h"

namespace wafersim::sim {

PacketRoutes::PacketRoutes(const topology::Mesh& mesh, const topology::RoutingPolicy& policy, unsigned virtual_channels,
                           std::uint64_t seed)
    : mesh_(mesh), policy_(policy), seed_(seed), restates_(policy.restates()) {
  bool foreseen = true;
  for (unsigned c = 0; c < policy.vc_classes(); ++c) {
    const topology::Routing* const routing = policy.fixed(c);
    lookups_.push_back(routing != nullptr ? RouteLookup(mesh, *routing) : RouteLookup());
    vcs_.push_back(topology::vcs_of_class(c, policy.vc_classes(), virtual_channels));
    foreseen = foreseen && routing != nullptr;
  }
  if (!foreseen) {
    kind_ = Kind::adaptive;
  } else if (classes() == 1 && !policy.draws() && !restates_) {
    plain_ = std::move(lookups_.front());
  } else {
    kind_ = Kind::foreseen;
  }
}

topology::Travel PacketRoutes::depart(TileId source, TileId destination, std::uint64_t number) const {
  const std::uint64_t draw = policy_.draws() ? topology::packet_draw(seed_, source, destination, number) : 0;
  topology::Travel travel = policy_.depart(source, destination, draw);
  arrive(travel, mesh_.router(source), destination);
  return travel;
}

topology::OutputSet PacketRoutes::outputs(topology::Travel& travel, TileId at, topology::Hop came,
                                          TileId destination) const {
  if (arrive(travel, at, destination)) came = topology::Hop::local;
  const RouteLookup& lookup = lookups_[travel.vc_class];
  if (!lookup.has_routing()) return policy_.outputs(at, came, travel);
  const topology::Hop hop = lookup.next(at, travel.target);
  return hop == topology::Hop::unreachable ? topology::OutputSet{0} : topology::output_bit(hop);
}

}  // namespace wafersim::sim
