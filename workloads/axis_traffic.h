#pragma once

#include <array>
#include <vector>

#include "models/transformer.h"
#include "topology/shapes.h"
#include "workloads/plan.h"
#include "workloads/plan_cuts.h"

namespace wafersim::workloads {

/// Who sends what to whom within one group of an axis.
enum class TrafficPattern : std::uint8_t {
  all_gather,      ///< collectives over the group, by the plan's algorithm
  reduce_scatter,  ///< "
  all_reduce,      ///< "
  stream_outward,  ///< each member's part visits all others along a tensor stream of the plan's variant
  stream_inward,   ///< sums of each member's part flow back to it along the same stream
  ring_outward,    ///< each member's part visits all others, one way round the cycle of the group's shape
  ring_inward,     ///< sums of each member's part come home round the same cycle
  exchange,        ///< member i sends member j parts[i] * factors[j] * row_bytes
  to_next,         ///< each member but the last sends all rows to the next
  to_previous,     ///< each member but the first sends all rows to the one before
  between_ends,    ///< the first and the last member send each other all rows
  pairs            ///< member i sends member j parts[i * members + j] rows
};

/// Ranks first .. first + count - 1 of an axis.
struct RankSpan {
  int first = 0;
  int count = 1;
  auto operator<=>(const RankSpan&) const = default;
};
/// By axis.
using RankSpans = std::array<RankSpan, kAxes>;

/// Traffic that groups of one axis have `times` times in an iteration: those groups whose ranks along the
/// other axes lie in the spans. The span of the axis itself are the members: all ranks, or some that then
/// make a chain in order of rank.
struct AxisTraffic {
  Axis axis = Axis::none;
  TrafficPattern pattern = TrafficPattern::all_reduce;
  std::uint64_t rows = 0;              ///< of a vector, or of all members' parts
  Bytes row_bytes = 1;                 ///< of one row
  std::vector<std::uint64_t> parts{};  ///< rows of each member; none: dealt evenly
  std::vector<std::uint64_t> factors{};
  std::uint64_t times = 1;
  RankSpans spans{};
  bool replicas = false;  ///< of dp: the members are all replicas, over ep and dp
  Cut cut = Cut::plan;    ///< whose ranks the spans are
  bool block = false;     ///< of tatp: the members are all tiles of a model group, over tp and tatp (PlanCuts::member)
  /// Ranks of a group.
  int members() const {
    return span(axis).count * (replicas ? span(Axis::ep).count : 1) * (block ? span(Axis::tp).count : 1);
  }
  RankSpan span(Axis of) const { return spans[static_cast<std::size_t>(of)]; }
  Bytes bytes() const { return rows * row_bytes; }
  auto operator<=>(const AxisTraffic&) const = default;
};

/// All traffic of one iteration of a plan, without lowering it: volumes by axis, independent of the mapping.
/// Exact: laid on a mapping (MappingLoads) it gives the bytes of the trace, pair of tiles by pair of tiles.
/// Axes of degree 1 have none. The formulas are those of docs/model-costs.md, "Traffic of an iteration".
/// A plan whose operators have degrees of their own has no volumes without a mapping, which says what its tiles are to each
/// operator: InternalError without `cuts`, those of the plan on the mapping that the traffic is then laid on.
std::vector<AxisTraffic> plan_traffic(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                                      const PlanCuts* cuts = nullptr);

/// What one member of a group sends another.
struct RankFlow {
  int from = 0;
  int to = 0;
  Bytes bytes = 0;
};

/// One occurrence of a traffic within a group that lies in `shape` with its ranks at `positions`. `algorithm`
/// is that of a collective (docs/model.md, "Collectives"), `stream` that of a tensor stream; other patterns
/// ignore them; `closed` as in Group. Into how many chunks a vector is cut makes no difference. Throws InternalError for a
/// collective with `automatic`.
std::vector<RankFlow> group_flows(const AxisTraffic& traffic, const topology::Shape& shape,
                                  const std::vector<topology::Coord>& positions, Collective algorithm,
                                  const StreamSpec& stream, bool closed = false);

}  // namespace wafersim::workloads
