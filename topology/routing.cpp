#include "topology/routing.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/text.h"
#include "topology/balanced_routing.h"
#include "topology/blocked_way.h"
#include "topology/link_loads.h"
#include "topology/pair_loads.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

struct Policy {
  const char* name;
  std::unique_ptr<Routing> (*make)(const Mesh& mesh, const Demands& demands);
};
using Traffic = const Demands&;
constexpr std::array kPolicies = {
    Policy{"xy", [](const Mesh& mesh, Traffic) { return make_xy_routing(mesh); }},
    Policy{"yx", [](const Mesh& mesh, Traffic) { return make_yx_routing(mesh); }},
    Policy{"table", [](const Mesh& mesh, Traffic) { return make_table_routing(mesh); }},
    Policy{"balanced",
           [](const Mesh& mesh, Traffic demands) { return balance_routes(mesh, demands).routing; }}};

/// The dead link that a route insists on at `at`, if it is one.
std::optional<LinkId> obstacle(const Routing& routing, TileId at, TileId destination) {
  const std::optional<Direction> output = routing.blocked_output(at, destination);
  if (!output) return std::nullopt;
  return Mesh::link(at, *output);
}

}  // namespace

std::optional<Direction> Routing::blocked_output(TileId, TileId) const { return std::nullopt; }

OutputSet Routing::outputs(TileId at, Hop, const Travel& travel) const {
  const Hop hop = next(at, travel.target);
  return hop == Hop::unreachable ? OutputSet{0} : output_bit(hop);
}

TurnSets Routing::class_turns(const Mesh& mesh, unsigned) const { return permitted_turns(mesh); }

ExpectedLoads Routing::expected_loads(const Mesh& mesh, const Demands& demands) const {
  return {link_loads(*this, mesh, demands), 1};
}

std::optional<ExpectedLoads> Routing::uniform_loads(const Mesh& mesh) const {
  return ExpectedLoads{pair_loads(*this, mesh, live_bytes(mesh, 1), live_bytes(mesh, 0)), 1};
}

TurnSets Routing::permitted_turns(const Mesh& mesh) const {
  std::vector<TileId> target(mesh.link_slots());
  for (LinkId link = 0; link < mesh.link_slots(); ++link) {
    target[link] = mesh.neighbour(Mesh::link_source(link), Mesh::link_direction(link));
  }
  TurnSets turns(mesh.link_slots(), 0);
  std::vector<Hop> hops(mesh.tile_count());
  for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
    if (!mesh.has_router(destination)) continue;
    for (TileId at = 0; at < mesh.tile_count(); ++at) {
      hops[at] = mesh.has_router(at) ? next(at, destination) : Hop::unreachable;
    }
    for (TileId at = 0; at < mesh.tile_count(); ++at) {
      const std::optional<Direction> in = to_direction(hops[at]);
      if (!in) continue;
      const LinkId link = Mesh::link(at, *in);
      require_invariant(target[link] != kNoTile, "a route leaves the mesh");
      if (const auto out = to_direction(hops[target[link]])) turns[link] |= turn_bit(*out);
    }
  }
  return turns;
}

const std::vector<std::string>& routing_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Policy& policy : kPolicies) list.emplace_back(policy.name);
    return list;
  }();
  return names;
}

std::unique_ptr<Routing> make_routing(const std::string& name, const Mesh& mesh, const Demands& demands) {
  for (const Policy& policy : kPolicies) {
    if (name == policy.name) return policy.make(mesh, demands);
  }
  throw PlanError(fmt::format("unknown routing '{}'; there are {}", name, join(routing_names())));
}

std::vector<LinkId> route(const Routing& routing, const Mesh& mesh, TileId source, TileId destination) {
  require_invariant(source < mesh.tile_count() && destination < mesh.tile_count(),
                    "a route between tiles outside the mesh was asked for");
  require_live_ends(routing, mesh, source, destination);
  std::vector<LinkId> links;
  TileId at = mesh.router(source);
  for (Hop hop = routing.next(at, destination); hop != Hop::local; hop = routing.next(at, destination)) {
    const std::optional<Direction> direction = to_direction(hop);
    if (!direction) throw blocked_way(routing, mesh, source, destination, obstacle(routing, at, destination));
    links.push_back(Mesh::link(at, *direction));
    require_invariant(mesh.link_alive(links.back()), "a route uses a dead link");
    require_invariant(links.size() < mesh.tile_count(), "a route does not end");
    at = mesh.neighbour(at, *direction);
  }
  require_invariant(at == mesh.router(destination), "a route ends at the wrong tile");
  return links;
}

void require_way(const RoutingPolicy& policy, const Mesh& mesh, TileId source, TileId destination) {
  require_live_ends(policy, mesh, source, destination);
  const Routing* const routing = policy.fixed(0);
  if (routing == &policy) route(*routing, mesh, source, destination);
}

}  // namespace wafersim::topology
