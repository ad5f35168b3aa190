#pragma once

#include <memory>
#include <vector>

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
  std::unique_ptr<sc_core::sc_port<PacketSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND>[]> packets_out;
  std::unique_ptr<sc_core::sc_port<CreditSink, 1, sc_core::SC_ZERO_OR_MORE_BOUND>[]> credits_out;
  /// The NICs of its tiles that have one, in the order of their slots (Mesh::slot()).
  sc_core::sc_port<EjectionSink, 0, sc_core::SC_ZERO_OR_MORE_BOUND> ejection;
  sc_core::sc_port<CreditSink, 0, sc_core::SC_ZERO_OR_MORE_BOUND> injection_credits;
  /// The slots of what `ejection` and `injection_credits` are bound to; others than 0, 1, ... have to be named here.
  std::vector<unsigned> slots;

  void receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) override;
  void credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) override;

  RouterEngine& engine() { return *engine_; }
  const RouterEngine& engine() const { return *engine_; }

 private:
  void end_of_elaboration() override;

  unsigned mesh_ports_;
  Arena::Owned<RouterEngine> engine_;
};

}  // namespace wafersim::sim
