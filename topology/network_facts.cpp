#include "topology/network_facts.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace wafersim::topology {
namespace {

Rational rational(Bytes numerator, Bytes denominator = 1) {
  const Bytes common = std::gcd(numerator, denominator);
  require_invariant(numerator / common <= std::uint64_t{std::numeric_limits<std::int64_t>::max()},
                    "a load does not fit 63 bits");
  return {static_cast<std::int64_t>(numerator / common), static_cast<std::int64_t>(denominator / common)};
}

/// Dead ones too.
std::uint64_t all_links(const Mesh& mesh) {
  std::uint64_t count = 0;
  for (LinkId link = 0; link < mesh.link_slots(); ++link) {
    count += mesh.neighbour(Mesh::link_source(link), Mesh::link_direction(link)) != kNoTile ? 1 : 0;
  }
  return count;
}

std::uint64_t live_links(const Mesh& mesh) {
  std::uint64_t count = 0;
  for (LinkId link = 0; link < mesh.link_slots(); ++link) count += mesh.link_alive(link) ? 1 : 0;
  return count;
}

/// In plain bytes (Mesh::plain_bytes()), but exact.
Rational plain_load(const ExpectedLoads& loads, LinkId link, const Mesh& mesh) {
  return rational(loads.parts[link], loads.parts_per_byte) / mesh.link_classes()[mesh.link_class(link)].rate;
}

Rational largest_load(const ExpectedLoads& loads, const Mesh& mesh) {
  if (mesh.uniform()) return rational(summarize(loads.parts, mesh).largest, loads.parts_per_byte);
  Rational largest(0);
  for (LinkId link = 0; link < loads.parts.size(); ++link) {
    if (loads.parts[link] > 0) largest = std::max(largest, plain_load(loads, link, mesh));
  }
  return largest;
}

std::vector<LinkLoad> hottest_links(const ExpectedLoads& loads, const Mesh& mesh, std::size_t count) {
  std::vector<LinkId> order;
  for (LinkId link = 0; link < loads.parts.size(); ++link) {
    if (loads.parts[link] > 0) order.push_back(link);
  }
  count = std::min(count, order.size());
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(order.begin(), middle, order.end(), [&](LinkId a, LinkId b) {
    const Bytes of_a = mesh.plain_bytes(a, loads.parts[a]), of_b = mesh.plain_bytes(b, loads.parts[b]);
    return of_a != of_b ? of_a > of_b : a < b;
  });
  order.resize(count);
  std::vector<LinkLoad> links;
  for (const LinkId link : order) links.push_back({link, rational(loads.parts[link], loads.parts_per_byte)});
  return links;
}

/// Of n tiles, each of which sends n bytes (n - 1 to others) while the most loaded link carries `largest`.
UniformSaturation saturation(std::uint64_t tiles, const Rational& largest, bool bound) {
  return {bound, rational(tiles) / largest, rational(tiles - 1) / largest};
}

}  // namespace

const char* to_string(LoadKind kind) {
  switch (kind) {
    case LoadKind::exact:
      return "exact";
    case LoadKind::expected:
      return "expected";
    case LoadKind::even_split:
      return "even_split";
  }
  return "";
}

LoadKind load_kind(const RoutingPolicy& policy) {
  if (policy.fixed(0) == nullptr) return LoadKind::even_split;
  return policy.draws() ? LoadKind::expected : LoadKind::exact;
}

TrafficFacts traffic_facts(const RoutingPolicy& policy, const Mesh& mesh, const Demands& demands_in,
                           std::size_t hottest) {
  const Demands demands = merged(demands_in);
  const ExpectedLoads loads = policy.expected_loads(mesh, demands);
  const LoadSummary summary = summarize(loads.parts, mesh);
  TrafficFacts facts;
  facts.pairs = demands.size();
  for (const Demand& demand : demands) facts.bytes += demand.bytes;
  facts.byte_hops = rational(summary.byte_hops, loads.parts_per_byte);
  facts.largest = largest_load(loads, mesh);
  const std::uint64_t links = live_links(mesh);
  if (links > 0) facts.mean = facts.byte_hops / rational(links);
  facts.bound = cut_bound(mesh, demands);
  facts.hottest = hottest_links(loads, mesh, hottest);
  return facts;
}

std::optional<UniformSaturation> uniform_saturation(const RoutingPolicy& policy, const Mesh& mesh,
                                                    std::string& why_not) {
  const std::uint64_t tiles = live_tiles(mesh);
  if (tiles < 2) {
    why_not = "there are no two live tiles";
    return std::nullopt;
  }
  try {
    if (const auto loads = policy.uniform_loads(mesh)) {
      return saturation(tiles, largest_load(*loads, mesh), false);
    }
  } catch (const PlanError& error) {
    why_not = error.what();
    return std::nullopt;
  }
  // Adaptive policies have a way for every pair, so there is a link in every cut.
  return saturation(tiles, rational(tiles) / *uniform_cut_bound(mesh), true);
}

NetworkFacts network_facts(const RoutingPolicy& policy, const Mesh& mesh, unsigned virtual_channels,
                           const Demands& demands) {
  NetworkFacts facts;
  facts.routing = policy.name();
  facts.loads = load_kind(policy);
  facts.vc_classes = policy.vc_classes();
  facts.virtual_channels = virtual_channels;
  facts.tiles = mesh.tile_count();
  facts.live_tiles = live_tiles(mesh);
  facts.links = all_links(mesh);
  facts.live_links = live_links(mesh);
  facts.distances = measure_distances(mesh);
  facts.bisection = bisection(mesh);
  facts.dependencies = check_dependencies(policy, mesh, virtual_channels);
  facts.uniform = uniform_saturation(policy, mesh, facts.no_uniform);
  if (merged(demands).empty()) return facts;
  try {
    facts.traffic = traffic_facts(policy, mesh, demands);
  } catch (const PlanError& error) {
    facts.blocked = error.what();
  }
  return facts;
}

}  // namespace wafersim::topology
