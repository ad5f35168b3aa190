#pragma once

#include <vector>

#include "models/transformer.h"
#include "topology/shapes.h"
#include "workloads/plan.h"

namespace wafersim::workloads {

/// Who sends what to whom within one group of an axis.
enum class TrafficPattern : std::uint8_t {
  all_gather,      ///< collectives over the group, of a vector of `bytes`, by the plan's algorithm
  reduce_scatter,  ///< "
  all_reduce,      ///< "
  to_next,         ///< each member but the last sends `bytes` to the next
  to_previous,     ///< each member but the first sends `bytes` to the one before
  between_ends     ///< the first and the last member send each other `bytes`
};

/// Ranks first .. first + count - 1 of an axis.
struct RankSpan {
  int first = 0;
  int count = 1;
  auto operator<=>(const RankSpan&) const = default;
};

/// Traffic that groups of one axis have `times` times in an iteration: those groups whose ranks along the
/// other axes lie in the spans (the span of the axis itself says nothing).
struct AxisTraffic {
  Axis axis = Axis::none;
  TrafficPattern pattern = TrafficPattern::all_reduce;
  Bytes bytes = 0;
  std::uint64_t times = 1;
  RankSpan tp;
  RankSpan pp;
  RankSpan dp;
  auto operator<=>(const AxisTraffic&) const = default;
};

/// All traffic of one iteration of a plan, without lowering it: volumes by axis in closed form, independent
/// of the mapping. Exact: laid on a mapping (MappingLoads) it gives the bytes of the trace, pair of tiles by
/// pair of tiles. Axes of degree 1 have none. The formulas are those of docs/model-costs.md, "Traffic of an
/// iteration".
std::vector<AxisTraffic> plan_traffic(const models::TransformerSpec& model, const TrainingSpec& training,
                                      const PlanSpec& plan);

/// What one member of a group sends another.
struct RankFlow {
  int from = 0;
  int to = 0;
  Bytes bytes = 0;
};

/// One occurrence of a traffic within a group that lies in `shape` with its ranks at `positions`. `algorithm`
/// and `chunks` are those of the collective (docs/model.md, "Collectives"); other patterns ignore them.
/// Throws InternalError for a collective with `automatic`.
std::vector<RankFlow> group_flows(TrafficPattern pattern, Bytes bytes, const topology::Shape& shape,
                                  const std::vector<topology::Coord>& positions, Collective algorithm,
                                  int chunks);

}  // namespace wafersim::workloads
