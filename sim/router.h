#pragma once

#include <vector>

#include "sim/router_engine.h"

namespace wafersim::sim {

/// The module of a router: its ports, and its engine, which does the work (see RouterEngine). Ports may be bound to routers of
/// ours or to any other module with the same interfaces. Ports are few, and none is an export: each costs every tile of a wafer
/// some 400 bytes of SystemC's.
class Router final : public sc_core::sc_module, public RouterIf {
 public:
  Router(sc_core::sc_module_name name, TileId tile, NetworkContext& network);

  using Link = sc_core::sc_port<RouterIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND>;
  /// The router in each direction of the mesh, to which packets go and from which they come; unbound at the wafer's edge. Each is
  /// named as its direction: SystemC takes a tenth of a tile's time to make a name.
  std::vector<Arena::Owned<Link>> links;
  /// The NICs of its tiles that have one, in the order of their slots (Mesh::slot()).
  sc_core::sc_port<TerminalIf, 0, sc_core::SC_ZERO_OR_MORE_BOUND> terminals{"terminals"};
  /// The slots of what `terminals` is bound to; others than 0, 1, ... have to be named here.
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
