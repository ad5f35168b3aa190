#include "workloads/plan_cuts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace wafersim::workloads {

namespace {

using topology::Shape;

bool divides(const Shape& part, const Shape& whole) { return whole.rows % part.rows == 0 && whole.cols % part.cols == 0; }

/// Rows, columns and the standard are a block for tp and a snake for tatp, in any shape.
Placement placement_of(const PlanSpec& plan, Axis axis) {
  const Placement wanted = plan.axis_mapping(axis).placement;
  if (wanted == Placement::block || wanted == Placement::snake) return wanted;
  return axis == Axis::tatp ? Placement::snake : Placement::block;
}

/// tp and tatp side by side, the one inside that the plan has inside.
std::vector<Axis> cut_order(const std::vector<Axis>& order) {
  const auto is_inner = [](Axis axis) { return axis == Axis::tp || axis == Axis::tatp; };
  const auto first = std::find_if(order.begin(), order.end(), is_inner);
  const bool tatp_inside = first != order.end() && *first == Axis::tatp && std::find(first, order.end(), Axis::tp) != order.end();
  std::vector<Axis> result(order.begin(), first);
  result.push_back(tatp_inside ? Axis::tatp : Axis::tp);
  result.push_back(tatp_inside ? Axis::tp : Axis::tatp);
  std::copy_if(first, order.end(), std::back_inserter(result), [&](Axis axis) { return !is_inner(axis); });
  return result;
}

}  // namespace

PlanCuts::PlanCuts(const PlanSpec& plan, const Mapping& mapping, const topology::Mesh& mesh)
    : plan_(plan), mapping_(mapping), split_(plan.splits_operators()) {
  for (const Cut cut : {Cut::attention, Cut::mlp}) {
    if (plan.degrees(cut) == plan.degrees(Cut::plan)) continue;
    std::optional<Own>& own = own_[static_cast<std::size_t>(cut)];
    own.emplace(laid_out(cut), mesh);
    number(*own);
  }
}

PlanSpec PlanCuts::laid_out(Cut cut) const {
  PlanSpec result = cut_plan(plan_, cut);
  const Shape tp = mapping_.axis_shape(Axis::tp), tatp = mapping_.axis_shape(Axis::tatp);
  const Shape whole{tp.rows * tatp.rows, tp.cols * tatp.cols};
  const std::vector<Shape> shapes = factorizations(result.tp);
  const auto own = std::find_if(shapes.begin(), shapes.end(), [&](const Shape& shape) { return divides(shape, whole); });
  require_invariant(own != shapes.end(), "degrees that divide the tiles of a rectangle divide its sides");
  result.mapping.clear();
  result.order = cut_order(plan_.order);
  for (const Axis axis : result.order) {
    if (axis != Axis::tp && axis != Axis::tatp) result.mapping[axis] = mapping_.laid_out(axis);
  }
  result.mapping[Axis::tp] = explicit_mapping(placement_of(plan_, Axis::tp), *own);
  result.mapping[Axis::tatp] =
      explicit_mapping(placement_of(plan_, Axis::tatp), {whole.rows / own->rows, whole.cols / own->cols});
  return result;
}

/// All model groups lie alike.
void PlanCuts::number(Own& own) const {
  std::map<TileId, Ranks> by_tile;
  Ranks inner;
  for (inner.tatp = 0; inner.tatp < own.plan.tatp; ++inner.tatp) {
    for (inner.tp = 0; inner.tp < own.plan.tp; ++inner.tp) by_tile[own.mapping.tile(inner)] = inner;
  }
  for (int member = 0; member < block(); ++member) {
    const auto found = by_tile.find(mapping_.tile(member_ranks(member)));
    require_invariant(found != by_tile.end(), "operators divide the tiles of a model group");
    own.ranks.push_back(found->second);
  }
}

Ranks PlanCuts::member_ranks(int member) const {
  Ranks ranks;
  ranks.tp = member % plan_.tp;
  ranks.tatp = member / plan_.tp;
  return ranks;
}

Ranks PlanCuts::ranks(Cut cut, Ranks of_plan) const {
  if (!own(cut)) return of_plan;
  const Ranks& inner = own(cut)->ranks[static_cast<std::size_t>(member(of_plan))];
  of_plan.tp = inner.tp;
  of_plan.tatp = inner.tatp;
  return of_plan;
}

}  // namespace wafersim::workloads
