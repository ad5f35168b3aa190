#include "analysis/ideal_saturation.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "topology/link_loads.h"

namespace wafersim::analysis {
namespace {

/// Channels of one kind: their loads in units of 1/weights, and flits that one of them takes per cycle.
struct Channels {
  const std::vector<Bytes>& loads;
  Rational rate;
};

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

}  // namespace

IdealSaturation ideal_saturation(const workloads::Destinations& destinations, const topology::Routing& routing,
                                 const topology::Mesh& mesh, const models::HardwareModel& hardware) {
  topology::LoadMeter meter(routing, mesh);
  std::uint64_t senders = 0;
  for (TileId source = 0; source < mesh.tile_count(); ++source) {
    if (!destinations.sends(source)) continue;
    ++senders;
    for (TileId to = 0; to < mesh.tile_count(); ++to) {
      const Bytes weight = destinations.weight(source, to);
      if (weight == 0 || source == to || meter.add({source, to, weight})) continue;
      throw PlanError(fmt::format("traffic.pattern: no live way from {} to {}", mesh.name(source), mesh.name(to)));
    }
  }
  IdealSaturation result;
  const auto weights = static_cast<std::int64_t>(destinations.weights());
  const topology::LinkBytes& links = meter.loads();
  const Bytes hops = std::accumulate(links.begin(), links.end(), Bytes{0});
  if (senders != 0) result.hops = Rational(static_cast<std::int64_t>(hops), static_cast<std::int64_t>(senders) * weights);

  const auto consider = [&](const Channels& channels, const auto& name) {
    const auto most = std::max_element(channels.loads.begin(), channels.loads.end());
    if (most == channels.loads.end() || *most == 0) return;
    const Rational load(static_cast<std::int64_t>(*most), weights);
    if (!result.channel.empty() && channels.rate / load >= result.load) return;
    result = {channels.rate / load, load, name(static_cast<std::uint32_t>(most - channels.loads.begin())), result.hops};
  };
  for (std::size_t link_class = 0; link_class < mesh.link_classes().size(); ++link_class) {
    std::vector<Bytes> of_class(links.size(), 0);
    for (topology::LinkId link = 0; link < links.size(); ++link) {
      if (mesh.link_class(link) == link_class) of_class[link] = links[link];
    }
    const models::LinkModel link = hardware.link(mesh.link_classes()[link_class]);
    consider({of_class, flits_per_cycle(link.bytes_per_cycle, hardware)}, [&](std::uint32_t id) { return mesh.link_name(id); });
  }
  if (hardware.nic_ports != models::NicPorts::single) return result;
  consider({per_tile(destinations, mesh, false), flits_per_cycle(hardware.injection_bytes_per_cycle, hardware)},
           [&](std::uint32_t tile) { return "injection of " + mesh.name(tile); });
  consider({per_tile(destinations, mesh, true), flits_per_cycle(hardware.ejection_bytes_per_cycle, hardware)},
           [&](std::uint32_t tile) { return "ejection of " + mesh.name(tile); });
  return result;
}

}  // namespace wafersim::analysis
