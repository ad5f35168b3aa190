#pragma once

#include <array>

#include "sim/router_engine.h"

namespace wafersim::sim {

/// The module of a router: its ports, and its engine, which does the work (see RouterEngine). Ports may be bound to routers of
/// ours or to any other module with the same interfaces.
class Router final : public sc_core::sc_module, public PacketSink, public CreditSink {
 public:
  Router(sc_core::sc_module_name name, TileId tile, NetworkContext& network);

  sc_core::sc_export<PacketSink> packets_in;
  sc_core::sc_export<CreditSink> credits_in;
  /// The router behind each mesh output, and where the credits of each mesh input go; unbound at the wafer's edge.
  std::array<sc_core::sc_port<PacketSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND>, kMeshPorts> packets_out;
  std::array<sc_core::sc_port<CreditSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND>, kMeshPorts> credits_out;
  /// The tile's NIC; unbound on tiles without one.
  sc_core::sc_port<EjectionSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND> ejection;
  sc_core::sc_port<CreditSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND> injection_credits;

  void receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) override;
  void credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) override;

  RouterEngine& engine() { return *engine_; }
  const RouterEngine& engine() const { return *engine_; }

 private:
  void end_of_elaboration() override;

  Arena::Owned<RouterEngine> engine_;
};

}  // namespace wafersim::sim
