#include "workloads/mapping_loads.h"

#include <utility>

#include "topology/shapes.h"
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

/// Turns `ranks` to the next group within the spans; false behind the last.
bool next_group(Axis of, bool replicas, bool block, const RankSpans& spans, Ranks& ranks) {
  for (int i = 0; i < kAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (axis == of || (replicas && axis == Axis::ep) || (block && axis == Axis::tp)) continue;
    const RankSpan& span = spans[static_cast<std::size_t>(i)];
    if (++ranks.at(axis) < span.first + span.count) return true;
    ranks.at(axis) = span.first;
  }
  return false;
}

}  // namespace

MappingLoads::MappingLoads(const std::vector<AxisTraffic>& traffic, const PlanSpec& plan,
                           const models::HardwareModel& hardware, const topology::Routing& routing,
                           const topology::Mesh& mesh)
    : plan_(plan), hardware_(hardware), mesh_(mesh), meter_(routing, mesh) {
  std::map<std::tuple<Axis, bool, Cut, bool, RankSpans>, std::size_t> known;
  for (const AxisTraffic& part : traffic) {
    const auto [found, fresh] =
        known.emplace(std::tuple(part.axis, part.replicas, part.cut, part.block, part.spans), sets_.size());
    if (fresh) sets_.push_back({part.axis, part.replicas, part.cut, part.block, part.spans, {}});
    sets_[found->second].traffic.push_back(part);
  }
}

Collective MappingLoads::algorithm(const AxisTraffic& traffic, const topology::Shape& shape, bool closed) {
  const std::optional<CollectiveKind> kind = kind_of(traffic.pattern);
  if (!kind) return plan_.collectives;
  const auto key = std::tuple(traffic.pattern, shape.rows, shape.cols, closed, traffic.bytes());
  const auto known = algorithms_.find(key);
  if (known != algorithms_.end()) return known->second;
  Group group;
  group.size = shape.size();
  group.shape = shape;
  group.closed = closed;
  const Collective chosen = choose_algorithm(plan_.collectives, *kind, group, traffic.bytes(), hardware_);
  algorithms_.emplace(key, chosen);
  return chosen;
}

/// What the members of each group of a set send each other in an iteration, added up by pair of ranks. Some
/// of the ranks of an axis make a chain, whatever the shape of them all.
const std::vector<RankFlow>& MappingLoads::flows(GroupSet& set, const Mapping& mapping, const PlanSpec& plan) {
  const int on_axis = set.spans[static_cast<std::size_t>(set.axis)].count;
  const int members = set.block ? plan.tp * plan.tatp : on_axis;
  const bool whole = !set.block && on_axis == plan.degree(set.axis);
  const topology::Shape shape = set.replicas ? mapping.replica_shape()
                                : whole      ? mapping.axis_shape(set.axis)
                                             : topology::Shape{1, members};
  const std::vector<topology::Coord> positions = set.replicas ? mapping.replica_positions()
                                                 : whole      ? mapping.axis_positions(set.axis)
                                                              : topology::row_major(shape);
  const bool closed = set.replicas ? mapping.replicas_closed() : whole && mapping.axis_closed(set.axis);
  for (const Arrangement& known : set.arrangements) {
    if (known.shape == shape && known.positions == positions && known.closed == closed) return known.flows;
  }
  std::map<std::pair<int, int>, Bytes> sums;
  for (const AxisTraffic& traffic : set.traffic) {
    for (const RankFlow& flow :
         group_flows(traffic, shape, positions, algorithm(traffic, shape, closed), plan_.stream, closed)) {
      sums[{flow.from, flow.to}] += flow.bytes * traffic.times;
    }
  }
  Arrangement& made = set.arrangements.emplace_back(Arrangement{shape, positions, closed, {}});
  for (const auto& [ranks, bytes] : sums) made.flows.push_back({ranks.first, ranks.second, bytes});
  return made.flows;
}

/// Calls `visit` for each demand until it returns false.
template <class Visit>
bool MappingLoads::for_each_demand(const Mapping& mapping_of_plan, const Visit& visit) {
  std::vector<TileId> members;
  const PlanCuts cuts(plan_, mapping_of_plan, mesh_);
  for (GroupSet& set : sets_) {
    const Mapping& mapping = cuts.mapping(set.cut);
    const std::vector<RankFlow>& between = flows(set, mapping, cuts.plan(set.cut));
    const auto axis = static_cast<std::size_t>(set.axis);
    Ranks ranks;
    for (int i = 0; i < kAxes; ++i)
      ranks.at(static_cast<Axis>(i)) = set.spans[static_cast<std::size_t>(i)].first;
    int& own = ranks.at(set.axis);
    bool more = true;
    while (more) {
      members.clear();
      if (set.replicas) members = mapping.replicas(ranks);
      for (int member = 0; set.block && member < cuts.block(); ++member) {
        Ranks inside = ranks;
        inside.tp = cuts.member_ranks(member).tp;
        inside.tatp = cuts.member_ranks(member).tatp;
        members.push_back(mapping.tile(inside));
      }
      for (int rank = 0; !set.replicas && !set.block && rank < set.spans[axis].count; ++rank) {
        own = set.spans[axis].first + rank;
        members.push_back(mapping.tile(ranks));
      }
      for (const RankFlow& flow : between) {
        const topology::Demand demand{members[static_cast<std::size_t>(flow.from)],
                                      members[static_cast<std::size_t>(flow.to)], flow.bytes};
        if (!visit(demand)) return false;
      }
      more = next_group(set.axis, set.replicas, set.block, set.spans, ranks);
    }
  }
  return true;
}

std::optional<topology::LoadSummary> MappingLoads::measure(const Mapping& mapping) {
  meter_.clear();
  const bool delivered =
      for_each_demand(mapping, [this](const topology::Demand& demand) { return meter_.add(demand); });
  if (!delivered) return std::nullopt;
  return topology::summarize(meter_.loads(), mesh_);
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
