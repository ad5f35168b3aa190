#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "models/hardware.h"
#include "topology/mesh.h"
#include "topology/routing_policy.h"

namespace wafersim::analysis {

using models::CostModel;

/// The ports that messages pass: their rates, and until when they are taken. A message passes whole, in the order in which its
/// head comes to a port.
class MessageTiming {
 public:
  /// All must outlive this. `seed` draws the routes of policies that draw.
  MessageTiming(const models::HardwareModel& hardware, const topology::Mesh& mesh, const topology::RoutingPolicy& routing,
                CostModel model, std::uint64_t seed = 1);

  CostModel model() const { return model_; }
  /// All ports are free again.
  void clear();

  /// The ports of a route in order: injection, links, ejection.
  struct Route {
    std::vector<std::uint32_t> ports;
    std::uint64_t turns = 0;  ///< bit h: the route turns at the router before port h
  };
  const Route& route(TileId source, TileId destination);

  /// A message on its way. Times are cycles; `tail` is not rounded.
  struct Flight {
    const Route* route = nullptr;
    Bytes bytes = 0;
    std::uint32_t port = 0;  ///< the one it comes to next
    double tail = 0;         ///< when its tail may leave that port at the earliest
  };
  /// The flight of a message that is posted at `now`, and in `head` the cycle in which it comes to its first port.
  Flight depart(TileId source, TileId destination, Bytes bytes, Cycle now, Cycle& head);
  /// Passes the next port, at which the head is at `head`: moves `head` on to the port after it. At the last port returns
  /// true: the message is then received at `head`. `left`: the cycle in which the tail has left the port.
  bool pass(Flight& flight, Cycle& head, Cycle& left);

  /// A port and for how many cycles it has been busy.
  struct Usage {
    std::uint32_t port = 0;
    double cycles = 0;
  };
  /// The ports used since clear(), ascending.
  std::vector<Usage> usage() const;
  /// The port that lies to `to` as `port` does to `from`; nothing where that is outside the mesh.
  std::optional<std::uint32_t> moved(std::uint32_t port, TileId from, TileId to) const;
  std::size_t ports() const { return ports_.size(); }

 private:
  struct Port {
    double cycles_per_byte = 0;
    Cycle wire = 0;
  };
  std::uint32_t injection_port(TileId tile, int lane) const;
  std::uint32_t ejection_port(TileId tile, int lane) const;
  Route make_route(TileId source, TileId destination);

  const models::HardwareModel& hardware_;
  const topology::Mesh& mesh_;
  const topology::RoutingPolicy& routing_;
  CostModel model_;
  std::uint64_t seed_;
  std::vector<Port> ports_;
  std::vector<double> free_, busy_;
  std::vector<std::uint32_t> used_;  ///< ports that clear() has to reset
  std::unordered_map<std::uint64_t, Route> routes_;
};

/// The cycle that is not before `time`, a sum of a few quotients: errors of rounding are far below a millionth of a cycle.
Cycle rounded_up(double time);

}  // namespace wafersim::analysis
