#include "topology/routing_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "topology/routing.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

/// Those that are no routing functions; the others are registered in routing.cpp.
struct Policy {
  const char* name;
  std::unique_ptr<RoutingPolicy> (*make)(const Mesh& mesh);
};
constexpr std::array kPolicies = {Policy{"o1turn", make_o1turn_routing},
                                  Policy{"valiant", make_valiant_routing},
                                  Policy{"west_first", make_west_first_routing},
                                  Policy{"north_last", make_north_last_routing},
                                  Policy{"negative_first", make_negative_first_routing},
                                  Policy{"odd_even", make_odd_even_routing}};

/// Those that can route on a mesh.
std::vector<std::string> names_for(const Mesh& mesh) {
  if (mesh.express()) return {"xy", "yx", "table", "o1turn", "valiant"};
  std::vector<std::string> names = mesh.wraps() ? routing_names() : routing_policy_names();
  if (mesh.concentrated()) std::erase(names, "balanced");
  return names;
}

}  // namespace

Travel RoutingPolicy::depart(TileId, TileId destination, std::uint64_t) const { return {destination, 0}; }

Travel RoutingPolicy::leave(const Travel& travel, TileId, Hop) const { return travel; }

TurnSets RoutingPolicy::handover_turns(const Mesh& mesh, unsigned, unsigned) const {
  return TurnSets(mesh.link_slots(), 0);
}

std::uint64_t packet_draw(std::uint64_t seed, TileId source, TileId destination, std::uint64_t number) {
  const std::uint64_t pair = std::uint64_t{source} << 32 | destination;
  return mix_bits(mix_bits(mix_bits(seed + 1) ^ pair) + 0x9e3779b97f4a7c15ULL * (number + 1));
}

VcRange vcs_of_class(unsigned vc_class, unsigned vc_classes, unsigned virtual_channels) {
  require_invariant(vc_class < vc_classes && virtual_channels >= 1, "a VC class that is not there");
  const unsigned first = vc_class * virtual_channels / vc_classes;
  return {first, std::max(1U, (vc_class + 1) * virtual_channels / vc_classes - first)};
}

const std::vector<std::string>& routing_policy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = routing_names();
    for (const Policy& policy : kPolicies) list.emplace_back(policy.name);
    return list;
  }();
  return names;
}

std::unique_ptr<RoutingPolicy> make_routing_policy(const std::string& name, const Mesh& mesh,
                                                   const Demands& demands) {
  const auto has = [&name](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!has(routing_policy_names())) {
    throw PlanError(fmt::format("unknown routing '{}'; there are {}", name, join(routing_policy_names())));
  }
  const std::vector<std::string> able = names_for(mesh);
  if (!has(able)) {
    throw PlanError(
        fmt::format("router.routing: '{}' cannot route on a {}; there are {}", name, mesh.topology_name(), join(able)));
  }
  for (const Policy& policy : kPolicies) {
    if (name == policy.name) return policy.make(mesh);
  }
  return make_routing(name, mesh, demands);
}

}  // namespace wafersim::topology
