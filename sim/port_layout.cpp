#include "sim/port_layout.h"

#include "base/error.h"

namespace wafersim::sim {

PortLayout::PortLayout(const topology::Mesh& mesh_in, models::NicPorts ports)
    : mesh(static_cast<std::uint8_t>(mesh_in.directions())), local(1), locals(Locals::single) {
  if (mesh_in.concentrated()) {
    if (ports != models::NicPorts::single) {
      throw PlanError("wafer.concentration: tiles that share a router have one port each; valid with wafer.nic.ports: single");
    }
    locals = Locals::per_tile;
    local = static_cast<std::uint8_t>(mesh_in.concentration().size());
  } else if (ports == models::NicPorts::per_direction) {
    locals = Locals::per_direction;
    local = static_cast<std::uint8_t>(mesh + 1);
  }
}

}  // namespace wafersim::sim
