#pragma once

#include <map>
#include <optional>
#include <tuple>

#include "models/hardware.h"
#include "topology/link_loads.h"
#include "workloads/axis_traffic.h"
#include "workloads/mapping.h"

namespace wafersim::workloads {

/// Lays the traffic of a plan on mappings and measures what the links then carry. Built once, asked for many
/// mappings of the same plan.
class MappingLoads {
 public:
  /// `plan` gives degrees, collectives and chunks. All must outlive the object.
  MappingLoads(const std::vector<AxisTraffic>& traffic, const PlanSpec& plan,
               const models::HardwareModel& hardware, const topology::Routing& routing,
               const topology::Mesh& mesh);

  /// Nothing when a message has no live route. Time: the hops of all messages, each pair of tiles once for
  /// each traffic between groups with the same spans.
  std::optional<topology::LoadSummary> measure(const Mapping& mapping);

  /// Bytes of an iteration by pair of tiles, as topology::merged().
  topology::Demands demands(const Mapping& mapping);

 private:
  /// All traffic of one axis between the same groups.
  struct GroupSet {
    Axis axis;
    RankSpan tp, pp, dp;
    std::vector<AxisTraffic> traffic;
  };

  template <class Visit>
  bool for_each_demand(const Mapping& mapping, const Visit& visit);
  std::vector<RankFlow> flows(const GroupSet& set, const Mapping& mapping);
  Collective algorithm(const AxisTraffic& traffic, const topology::Shape& shape);

  const PlanSpec& plan_;
  const models::HardwareModel& hardware_;
  std::vector<GroupSet> sets_;
  topology::LoadMeter meter_;
  std::map<std::tuple<TrafficPattern, int, int, Bytes>, Collective> algorithms_;  ///< that `auto` stands for
};

}  // namespace wafersim::workloads
