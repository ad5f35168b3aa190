#pragma once

#include <cstdint>

#include "models/hardware.h"
#include "topology/mesh.h"
#include "topology/routing_policy.h"

namespace wafersim::sim {

/// The most ports that lead to links.
inline constexpr unsigned kMostMeshPorts = topology::kDirections;

/// How the ports of a router are numbered: first the directions of the mesh, then local ports: one; or one for each direction
/// and one for a tile's messages to itself (models::NicPorts); or one for each of the tiles that share the router.
struct PortLayout {
  enum class Locals : std::uint8_t { single, per_direction, per_tile };

  PortLayout(const topology::Mesh& mesh, models::NicPorts ports);

  std::uint8_t mesh;   ///< ports that lead to links, 4 or 8, whether there are such links or not
  std::uint8_t local;  ///< ports that lead to tiles
  Locals locals;

  unsigned count() const { return mesh + local; }
  bool per_direction() const { return locals == Locals::per_direction; }
  /// Of an injection port: ports for each direction belong to one network interface, others to one each.
  unsigned lanes() const { return per_direction() ? local : 1; }
  /// With a port for each direction, that of messages of a tile to itself.
  unsigned self_lane() const { return mesh; }
  /// The injection ports, a bit each, that lead to `outputs`.
  std::uint16_t lanes_to(topology::OutputSet outputs) const {
    if (!per_direction()) return 1;
    return outputs == topology::output_bit(topology::Hop::local) ? static_cast<std::uint16_t>(1U << self_lane()) : outputs;
  }
};

/// Whether a packet that came in by `input` and leaves by `output` goes along another dimension than before.
constexpr bool turns(unsigned input, unsigned output, unsigned mesh_ports) {
  return (input < mesh_ports) & (output < mesh_ports) & (((input ^ output) & 1U) != 0);
}

/// A router's output as its neighbour behind it sees it: the input there.
constexpr unsigned opposite_port(unsigned port) { return port ^ 2U; }

/// The direction in which a packet entered by `input`; `local` from the NIC.
constexpr topology::Hop came_by(unsigned input, unsigned mesh_ports) {
  return input < mesh_ports ? static_cast<topology::Hop>(opposite_port(input)) : topology::Hop::local;
}
inline constexpr topology::OutputSet kAllOutputs = 0xffff;
/// The outputs to which an input is wired: an injection port of a direction leads to that alone.
constexpr topology::OutputSet offered_to(unsigned input, unsigned mesh_ports, bool per_direction) {
  if (!per_direction || input < mesh_ports) return kAllOutputs;
  const unsigned lane = input - mesh_ports;
  return topology::output_bit(lane == mesh_ports ? topology::Hop::local : static_cast<topology::Hop>(lane));
}

}  // namespace wafersim::sim
