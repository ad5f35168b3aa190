#include "workloads/mapping_loads.h"

#include <utility>

#include "workloads/collectives.h"

namespace wafersim::workloads {
namespace {

std::optional<CollectiveKind> kind_of(TrafficPattern pattern) {
  switch (pattern) {
    case TrafficPattern::all_gather:
      return CollectiveKind::all_gather;
    case TrafficPattern::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    case TrafficPattern::all_reduce:
      return CollectiveKind::all_reduce;
    default:
      return std::nullopt;
  }
}

}  // namespace

MappingLoads::MappingLoads(const std::vector<AxisTraffic>& traffic, const PlanSpec& plan,
                           const models::HardwareModel& hardware, const topology::Routing& routing,
                           const topology::Mesh& mesh)
    : plan_(plan), hardware_(hardware), meter_(routing, mesh) {
  std::map<std::tuple<Axis, RankSpan, RankSpan, RankSpan>, std::size_t> known;
  for (const AxisTraffic& part : traffic) {
    const auto [found, fresh] = known.emplace(std::tuple(part.axis, part.tp, part.pp, part.dp), sets_.size());
    if (fresh) sets_.push_back({part.axis, part.tp, part.pp, part.dp, {}});
    sets_[found->second].traffic.push_back(part);
  }
}

Collective MappingLoads::algorithm(const AxisTraffic& traffic, const topology::Shape& shape) {
  const std::optional<CollectiveKind> kind = kind_of(traffic.pattern);
  if (!kind || plan_.collectives != Collective::automatic) return plan_.collectives;
  const auto key = std::tuple(traffic.pattern, shape.rows, shape.cols, traffic.bytes);
  const auto known = algorithms_.find(key);
  if (known != algorithms_.end()) return known->second;
  Group group;
  group.size = shape.size();
  group.shape = shape;
  const Collective chosen = choose_algorithm(plan_.collectives, *kind, group, traffic.bytes, hardware_);
  algorithms_.emplace(key, chosen);
  return chosen;
}

/// What the members of each group of a set send each other in an iteration, added up by pair of ranks.
std::vector<RankFlow> MappingLoads::flows(const GroupSet& set, const Mapping& mapping) {
  const topology::Shape shape = mapping.axis_shape(set.axis);
  std::map<std::pair<int, int>, Bytes> sums;
  for (const AxisTraffic& traffic : set.traffic) {
    for (const RankFlow& flow :
         group_flows(traffic.pattern, traffic.bytes, shape, mapping.axis_positions(set.axis),
                     algorithm(traffic, shape), plan_.collective_chunks)) {
      sums[{flow.from, flow.to}] += flow.bytes * traffic.times;
    }
  }
  std::vector<RankFlow> all;
  for (const auto& [ranks, bytes] : sums) all.push_back({ranks.first, ranks.second, bytes});
  return all;
}

/// Calls `visit` for each demand until it returns false.
template <class Visit>
bool MappingLoads::for_each_demand(const Mapping& mapping, const Visit& visit) {
  for (const GroupSet& set : sets_) {
    const std::vector<RankFlow> between = flows(set, mapping);
    const auto span = [&](Axis axis, const RankSpan& of) { return axis == set.axis ? RankSpan{0, 1} : of; };
    const RankSpan tps = span(Axis::tp, set.tp), pps = span(Axis::pp, set.pp), dps = span(Axis::dp, set.dp);
    for (int dp = dps.first; dp < dps.first + dps.count; ++dp) {
      for (int pp = pps.first; pp < pps.first + pps.count; ++pp) {
        for (int tp = tps.first; tp < tps.first + tps.count; ++tp) {
          const auto member = [&](int rank) {
            Ranks ranks{.tp = tp, .dp = dp, .pp = pp};
            ranks.at(set.axis) = rank;
            return mapping.tile(ranks);
          };
          for (const RankFlow& flow : between) {
            if (!visit(topology::Demand{member(flow.from), member(flow.to), flow.bytes})) return false;
          }
        }
      }
    }
  }
  return true;
}

std::optional<topology::LoadSummary> MappingLoads::measure(const Mapping& mapping) {
  meter_.clear();
  const bool delivered =
      for_each_demand(mapping, [this](const topology::Demand& demand) { return meter_.add(demand); });
  if (!delivered) return std::nullopt;
  return topology::summarize(meter_.loads());
}

topology::Demands MappingLoads::demands(const Mapping& mapping) {
  topology::Demands all;
  for_each_demand(mapping, [&all](const topology::Demand& demand) {
    all.push_back(demand);
    return true;
  });
  return topology::merged(std::move(all));
}

}  // namespace wafersim::workloads
