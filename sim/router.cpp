#include "sim/router.h"

namespace wafersim::sim {

Router::Router(sc_core::sc_module_name name, TileId tile, NetworkContext& network)
    : sc_module(name),
      packets_out(new sc_core::sc_port<PacketSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND>[network.layout.mesh]),
      credits_out(new sc_core::sc_port<CreditSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND>[network.layout.mesh]),
      mesh_ports_(network.layout.mesh),
      engine_(network.arena.make<RouterEngine>(tile, network)) {
  packets_in.bind(*this);
  credits_in.bind(*this);
}

void Router::receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) {
  engine_->receive(packet, head_at, tail_at);
}

void Router::credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) { engine_->credit(output, vc, bytes, at); }

void Router::end_of_elaboration() {
  for (unsigned port = 0; port < mesh_ports_; ++port) {
    if (packets_out[port].size() != 0) {
      PacketSink* const sink = packets_out[port].operator->();
      auto* const router = dynamic_cast<Router*>(sink);
      engine_->connect_output(port, router != nullptr ? router->engine_.get() : nullptr, sink);
    }
    if (credits_out[port].size() != 0) {
      CreditSink* const sink = credits_out[port].operator->();
      auto* const router = dynamic_cast<Router*>(sink);
      engine_->connect_input(port, router != nullptr ? router->engine_.get() : nullptr, sink);
    }
  }
  for (int i = 0; i < ejection.size(); ++i) {
    const auto place = static_cast<std::size_t>(i);
    engine_->connect_nic(place < slots.size() ? slots[place] : static_cast<unsigned>(i), ejection[i], injection_credits[i]);
  }
}

}  // namespace wafersim::sim
