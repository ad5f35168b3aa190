#include "topology/routing.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/text.h"
#include "topology/balanced_routing.h"
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

/// Why the route stops at `at`, for the message of a blocked route.
std::string obstacle(const Routing& routing, const Mesh& mesh, TileId at, TileId destination) {
  const std::optional<Direction> output = routing.blocked_output(at, destination);
  if (!output) return "dead tiles or links cut every live path between them";
  const TileId ahead = mesh.neighbour(at, *output);
  const std::string dead = ahead != kNoTile && !mesh.alive(ahead)
                               ? mesh.name(ahead)
                               : "link " + mesh.link_name(Mesh::link(at, *output));
  return fmt::format("{} on its way is dead; 'routing: table' would avoid it", dead);
}

}  // namespace

std::optional<Direction> Routing::blocked_output(TileId, TileId) const { return std::nullopt; }

TurnSets Routing::permitted_turns(const Mesh& mesh) const {
  std::vector<TileId> target(mesh.link_slots());
  for (LinkId link = 0; link < mesh.link_slots(); ++link) {
    target[link] = mesh.neighbour(Mesh::link_source(link), Mesh::link_direction(link));
  }
  TurnSets turns(mesh.link_slots(), 0);
  std::vector<Hop> hops(mesh.tile_count());
  for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
    if (!mesh.alive(destination)) continue;
    for (TileId at = 0; at < mesh.tile_count(); ++at) {
      hops[at] = mesh.alive(at) ? next(at, destination) : Hop::unreachable;
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
  const auto blocked = [&](const std::string& why) {
    return PlanError(fmt::format("no '{}' route from {} to {}: {}", routing.name(), mesh.name(source),
                                 mesh.name(destination), why));
  };
  for (const TileId end : {source, destination}) {
    if (!mesh.alive(end)) throw blocked(mesh.name(end) + " is dead");
  }
  std::vector<LinkId> links;
  TileId at = source;
  for (Hop hop = routing.next(at, destination); hop != Hop::local; hop = routing.next(at, destination)) {
    const std::optional<Direction> direction = to_direction(hop);
    if (!direction) throw blocked(obstacle(routing, mesh, at, destination));
    links.push_back(Mesh::link(at, *direction));
    require_invariant(mesh.link_alive(links.back()), "a route uses a dead link");
    require_invariant(links.size() < mesh.tile_count(), "a route does not end");
    at = mesh.neighbour(at, *direction);
  }
  require_invariant(at == destination, "a route ends at the wrong tile");
  return links;
}

}  // namespace wafersim::topology
