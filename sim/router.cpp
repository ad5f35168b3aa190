#include "sim/router.h"

namespace wafersim::sim {

Router::Router(sc_core::sc_module_name name, TileId tile, NetworkContext& network)
    : sc_module(name),
      mesh_ports_(network.layout.mesh),
      engine_(network.arena.make<RouterEngine>(tile, network)) {
  links.reserve(mesh_ports_);
  for (unsigned port = 0; port < mesh_ports_; ++port) {
    links.push_back(network.arena.make<Link>(topology::to_string(topology::kAllDirections[port])));
  }
}

void Router::receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) {
  engine_->receive(packet, head_at, tail_at);
}

void Router::credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) { engine_->credit(output, vc, bytes, at); }

void Router::end_of_elaboration() {
  for (unsigned port = 0; port < mesh_ports_; ++port) {
    if (links[port]->size() == 0) continue;
    RouterIf* const neighbour = (*links[port]).operator->();
    auto* const ours = dynamic_cast<Router*>(neighbour);
    engine_->connect(port, ours != nullptr ? ours->engine_.get() : nullptr, neighbour);
  }
  for (int i = 0; i < terminals.size(); ++i) {
    const auto place = static_cast<std::size_t>(i);
    engine_->connect_nic(place < slots.size() ? slots[place] : static_cast<unsigned>(i), terminals[i]);
  }
}

}  // namespace wafersim::sim
