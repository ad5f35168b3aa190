#include "analysis/message_timing.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace wafersim::analysis {

namespace {

constexpr int kLanes = topology::kDirections + 1;  ///< of a NIC: one for each direction, one for messages to the tile itself
constexpr double kRounding = 1e-6;

int lane_of(topology::Hop hop, models::NicPorts ports) { return ports == models::NicPorts::single ? 0 : static_cast<int>(hop); }

}  // namespace

Cycle rounded_up(double time) { return static_cast<Cycle>(std::ceil(time - kRounding)); }

MessageTiming::MessageTiming(const models::HardwareModel& hardware, const topology::Mesh& mesh,
                             const topology::RoutingPolicy& routing, CostModel model, std::uint64_t seed)
    : hardware_(hardware), mesh_(mesh), routing_(routing), model_(model), seed_(seed) {
  const auto cost = [](const Rational& rate) { return 1.0 / rate.to_double(); };
  const std::size_t links = mesh.link_slots(), lanes = std::size_t{mesh.tile_count()} * kLanes;
  ports_.reserve(links + 2 * lanes);
  for (topology::LinkId link = 0; link < links; ++link) {
    const models::LinkModel of = hardware.link(mesh.link_classes()[mesh.link_class(link)]);
    ports_.push_back({cost(of.bytes_per_cycle), of.cycles});
  }
  ports_.insert(ports_.end(), lanes, {cost(hardware.injection_bytes_per_cycle), hardware.injection_cycles});
  ports_.insert(ports_.end(), lanes, {cost(hardware.ejection_bytes_per_cycle), hardware.ejection_cycles});
  free_.assign(ports_.size(), 0);
  busy_.assign(ports_.size(), 0);
}

void MessageTiming::clear() {
  for (const std::uint32_t port : used_) free_[port] = busy_[port] = 0;
  used_.clear();
}

std::uint32_t MessageTiming::injection_port(TileId tile, int lane) const {
  return mesh_.link_slots() + tile * kLanes + static_cast<std::uint32_t>(lane);
}

std::uint32_t MessageTiming::ejection_port(TileId tile, int lane) const {
  return injection_port(mesh_.tile_count() + tile, lane);
}

const MessageTiming::Route& MessageTiming::route(TileId source, TileId destination) {
  const std::uint64_t key = std::uint64_t{source} << 32 | destination;
  const auto known = routes_.find(key);
  if (known != routes_.end()) return known->second;
  return routes_.emplace(key, make_route(source, destination)).first->second;
}

/// Of policies that choose, the first output that they permit; of those that draw, the route of the first packet.
MessageTiming::Route MessageTiming::make_route(TileId source, TileId destination) {
  using topology::Hop;
  std::vector<std::uint32_t> links;
  std::vector<Hop> hops;
  topology::Travel travel = routing_.depart(source, destination, topology::packet_draw(seed_, source, destination, 0));
  Hop came = Hop::local;
  for (TileId at = source; at != destination;) {
    if (topology::arrive(travel, at, destination)) came = Hop::local;
    const topology::OutputSet outputs = routing_.outputs(at, came, travel);
    int output = 0;
    while (output < topology::kDirections && (outputs & topology::output_bit(static_cast<Hop>(output))) == 0) ++output;
    require_invariant(output < topology::kDirections && hops.size() < mesh_.tile_count() * 4, "a message finds no way");
    came = static_cast<Hop>(output);
    travel = routing_.leave(travel, at, came);
    hops.push_back(came);
    links.push_back(topology::Mesh::link(at, static_cast<topology::Direction>(output)));
    at = mesh_.neighbour(at, static_cast<topology::Direction>(output));
  }
  const Hop first = hops.empty() ? Hop::local : hops.front(), last = hops.empty() ? Hop::local : hops.back();
  Route route;
  route.ports.push_back(injection_port(source, lane_of(first, hardware_.nic_ports)));
  route.ports.insert(route.ports.end(), links.begin(), links.end());
  route.ports.push_back(ejection_port(destination, lane_of(last, hardware_.nic_ports)));
  for (std::size_t h = 1; h < hops.size() && h < 62; ++h) {
    const bool turn = topology::axis_of(static_cast<topology::Direction>(hops[h])) !=
                      topology::axis_of(static_cast<topology::Direction>(hops[h - 1]));
    if (turn) route.turns |= std::uint64_t{1} << (h + 1);
  }
  return route;
}

MessageTiming::Flight MessageTiming::depart(TileId source, TileId destination, Bytes bytes, Cycle now, Cycle& head) {
  head = now + (model_ == CostModel::roofline ? 0 : hardware_.message_overhead);
  return {&route(source, destination), bytes, 0, 0};
}

bool MessageTiming::pass(Flight& flight, Cycle& head, Cycle& left) {
  if (model_ == CostModel::roofline) {
    left = head;
    return true;
  }
  const std::uint32_t at = flight.route->ports[flight.port];
  const Port& port = ports_[at];
  const double span = static_cast<double>(flight.bytes) * port.cycles_per_byte;
  double start = static_cast<double>(head);
  if (model_ == CostModel::alpha_beta_contention) {
    if (busy_[at] == 0) used_.push_back(at);
    start = std::max(start, free_[at]);
    free_[at] = std::max(start + span, flight.tail);
    busy_[at] += span;
  }
  const double tail = std::max(start + span, flight.tail);
  left = rounded_up(tail);
  ++flight.port;
  if (flight.port == flight.route->ports.size()) {
    head = left + port.wire + hardware_.message_overhead;
    return true;
  }
  const bool turn = flight.port < 64 && (flight.route->turns >> flight.port & 1U) != 0;
  const Cycle on = port.wire + hardware_.router_cycles + (turn ? hardware_.turn_cycles : 0);
  head = static_cast<Cycle>(start + kRounding) + on;
  flight.tail = tail + static_cast<double>(on);
  return false;
}

std::vector<MessageTiming::Usage> MessageTiming::usage() const {
  std::vector<Usage> result;
  result.reserve(used_.size());
  for (const std::uint32_t port : used_) result.push_back({port, busy_[port]});
  std::sort(result.begin(), result.end(), [](const Usage& a, const Usage& b) { return a.port < b.port; });
  return result;
}

std::optional<std::uint32_t> MessageTiming::moved(std::uint32_t port, TileId from, TileId to) const {
  const std::uint32_t links = mesh_.link_slots(), lanes = mesh_.tile_count() * kLanes;
  const std::uint32_t first = port < links ? 0 : port < links + lanes ? links : links + lanes;
  const std::uint32_t width = port < links ? topology::kDirections : kLanes;
  const topology::Coord at = mesh_.coord((port - first) / width), a = mesh_.coord(from), b = mesh_.coord(to);
  const topology::Coord there{at.x + b.x - a.x, at.y + b.y - a.y};
  if (!mesh_.contains(there)) return std::nullopt;
  return first + mesh_.tile_at(there) * width + (port - first) % width;
}

}  // namespace wafersim::analysis
