#include "analysis/ideal_saturation.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "topology/link_loads.h"
#include "topology/routing.h"

namespace wafersim::analysis {
namespace {

Rational flits_per_cycle(const Rational& bytes_per_cycle, const models::HardwareModel& hardware) {
  return std::min(Rational(1), bytes_per_cycle / Rational(static_cast<std::int64_t>(hardware.flit.flit_bytes)));
}

/// With a port for each direction, a tile's traffic to and from it is spread over several; the links bound it.
std::vector<Bytes> per_tile(const workloads::Destinations& destinations, const topology::Mesh& mesh, bool arriving) {
  std::vector<Bytes> loads(mesh.tile_count(), 0);
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    if (!destinations.sends(source)) continue;
    for (TileId to = 0; to < mesh.tile_count(); ++to) loads[arriving ? to : source] += destinations.weight(source, to);
  }
  return loads;
}

/// What the pattern loads links with.
struct LinkShare {
  Rational most;      ///< flits over the busiest link, or the mean over the links of the busiest cut, per flit of load
  std::string where;  ///< empty: no link is used
  Rational all;       ///< the same over all links
};

Rational fraction(Bytes numerator, Bytes denominator) {
  const Bytes common = std::gcd(numerator, denominator);
  return {static_cast<std::int64_t>(numerator / common), static_cast<std::int64_t>(denominator / common)};
}

LinkShare share_of(const topology::LinkBytes& loads, Bytes parts, const topology::Mesh& mesh) {
  const auto most = std::max_element(loads.begin(), loads.end());
  LinkShare share{fraction(most == loads.end() ? 0 : *most, parts), "",
                  fraction(std::accumulate(loads.begin(), loads.end(), Bytes{0}), parts)};
  if (share.most > Rational(0)) share.where = mesh.link_name(static_cast<topology::LinkId>(most - loads.begin()));
  return share;
}

template <class Visit>
void for_each_pair(const workloads::Destinations& destinations, const topology::Mesh& mesh, const Visit& visit) {
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    if (!destinations.sends(source)) continue;
    for (TileId to = 0; to < mesh.tile_count(); ++to) {
      const Bytes weight = destinations.weight(source, to);
      if (weight != 0 && source != to) visit(topology::Demand{source, to, weight});
    }
  }
}

/// Without a list of all pairs, which is long for uniform traffic.
LinkShare share_of_routes(const workloads::Destinations& destinations, const topology::Routing& routing,
                          const topology::Mesh& mesh) {
  topology::LoadMeter meter(routing, mesh);
  for_each_pair(destinations, mesh, [&](const topology::Demand& demand) {
    if (meter.add(demand)) return;
    throw PlanError(fmt::format("traffic.pattern: no live way from {} to {}", mesh.name(demand.source),
                                mesh.name(demand.destination)));
  });
  return share_of(meter.loads(), destinations.weights(), mesh);
}

LinkShare share_of_policy(const workloads::Destinations& destinations, const topology::RoutingPolicy& policy,
                          const topology::Mesh& mesh, bool chosen) {
  topology::Demands demands;
  for_each_pair(destinations, mesh, [&](const topology::Demand& demand) { demands.push_back(demand); });
  const topology::ExpectedLoads loads = policy.expected_loads(mesh, demands);
  LinkShare share = share_of(loads.parts, destinations.weights() * loads.parts_per_byte, mesh);
  if (!chosen) return share;
  const topology::BusiestCut cut = topology::busiest_cut(mesh, demands);
  return {fraction(cut.bytes, cut.links * destinations.weights()), cut.name, share.all};
}

}  // namespace

IdealSaturation ideal_saturation(const workloads::Destinations& destinations, const topology::RoutingPolicy& routing,
                                 const topology::Mesh& mesh, const models::HardwareModel& hardware) {
  const topology::Routing* const routes = routing.fixed(0);
  const bool one_route = routes == &routing;
  const bool chosen = routes == nullptr;
  const LinkShare share = one_route ? share_of_routes(destinations, *routes, mesh)
                                    : share_of_policy(destinations, routing, mesh, chosen);
  std::int64_t senders = 0;
  for (TileId source = 0; source < mesh.tile_count(); ++source) senders += destinations.sends(source) ? 1 : 0;
  IdealSaturation result;
  result.bound = chosen;
  if (senders != 0) result.hops = share.all / Rational(senders);
  if (!share.where.empty()) {
    result.channel_load = share.most;
    result.load = flits_per_cycle(hardware.link_bytes_per_cycle, hardware) / share.most;
    result.channel = share.where;
  }
  if (hardware.nic_ports != models::NicPorts::single) return result;
  const auto consider = [&](const std::vector<Bytes>& loads, const Rational& bytes_per_cycle, const char* port) {
    const auto most = std::max_element(loads.begin(), loads.end());
    if (most == loads.end() || *most == 0) return;
    const Rational load = fraction(*most, destinations.weights());
    const Rational saturation = flits_per_cycle(bytes_per_cycle, hardware) / load;
    if (!result.channel.empty() && saturation >= result.load) return;
    result.load = saturation;
    result.channel_load = load;
    result.channel = port + mesh.name(static_cast<TileId>(most - loads.begin()));
  };
  consider(per_tile(destinations, mesh, false), hardware.injection_bytes_per_cycle, "injection of ");
  consider(per_tile(destinations, mesh, true), hardware.ejection_bytes_per_cycle, "ejection of ");
  return result;
}

}  // namespace wafersim::analysis
