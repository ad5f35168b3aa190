#include "sim/router.h"

namespace wafersim::sim {

Router::Router(sc_core::sc_module_name name, TileId tile, NetworkContext& network)
    : sc_module(name), engine_(network.arena.make<RouterEngine>(tile, network)) {
  packets_in.bind(*this);
  credits_in.bind(*this);
}

void Router::receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) {
  engine_->receive(packet, head_at, tail_at);
}

void Router::credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) { engine_->credit(output, vc, bytes, at); }

void Router::end_of_elaboration() {
  for (unsigned port = 0; port < kMeshPorts; ++port) {
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
  engine_->connect_nic(ejection.size() != 0 ? ejection.operator->() : nullptr,
                      injection_credits.size() != 0 ? injection_credits.operator->() : nullptr);
}

}  // namespace wafersim::sim
