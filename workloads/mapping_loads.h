#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "models/hardware.h"
#include "topology/link_loads.h"
#include "workloads/axis_traffic.h"
#include "workloads/mapping.h"

namespace wafersim::workloads {

/// Lays the traffic of a plan on mappings and measures what the links then carry. Built once, asked for many
/// mappings of the same plan.
class MappingLoads {
 public:
  /// `plan` gives degrees, collectives and the kind of stream. All must outlive the object. The traffic of a plan whose operators
  /// have degrees of their own is that of one mapping (plan_traffic).
  MappingLoads(const std::vector<AxisTraffic>& traffic, const PlanSpec& plan,
               const models::HardwareModel& hardware, const topology::Routing& routing,
               const topology::Mesh& mesh);

  /// Nothing when a message has no live route. Time: the hops of all messages, each pair of tiles once for
  /// each traffic between groups with the same spans.
  std::optional<topology::LoadSummary> measure(const Mapping& mapping);

  /// Bytes of an iteration by pair of tiles, as topology::merged().
  topology::Demands demands(const Mapping& mapping);

 private:
  /// How the members of a group lie, and what they then send each other in an iteration.
  struct Arrangement {
    topology::Shape shape;
    std::vector<topology::Coord> positions;
    bool closed;
    std::vector<RankFlow> flows;
  };
  /// All traffic of one axis between the same groups.
  struct GroupSet {
    Axis axis;
    bool replicas;  ///< groups are over dp and ep
    Cut cut;        ///< whose ranks the spans are
    bool block;     ///< groups are over tatp and tp
    RankSpans spans;
    std::vector<AxisTraffic> traffic;
    std::vector<Arrangement> arrangements{};  ///< met so far
  };

  template <class Visit>
  bool for_each_demand(const Mapping& mapping_of_plan, const Visit& visit);
  /// `mapping` and `plan`: of the set's cut.
  const std::vector<RankFlow>& flows(GroupSet& set, const Mapping& mapping, const PlanSpec& plan);
  Collective algorithm(const AxisTraffic& traffic, const topology::Shape& shape, bool closed);

  const PlanSpec& plan_;
  const models::HardwareModel& hardware_;
  const topology::Mesh& mesh_;
  std::vector<GroupSet> sets_;
  topology::LoadMeter meter_;
  std::map<std::tuple<TrafficPattern, int, int, bool, Bytes>, Collective> algorithms_;  ///< that `auto` stands for
};

}  // namespace wafersim::workloads
