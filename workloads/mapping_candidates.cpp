#include "workloads/mapping_candidates.h"

#include <algorithm>
#include <limits>

#include "workloads/mapping.h"

namespace wafersim::workloads {
namespace {

using topology::Shape;

/// Blocks, then snakes, then strided placements, each the most square first.
std::vector<AxisMapping> placements(int degree) {
  std::vector<AxisMapping> all;
  for (const Placement placement : {Placement::block, Placement::snake, Placement::strided}) {
    for (const Shape& shape : factorizations(degree)) {
      const AxisMapping mapping = explicit_mapping(placement, shape);
      if (std::find(all.begin(), all.end(), mapping) == all.end()) all.push_back(mapping);
    }
  }
  return all;
}

/// Every nesting of the axes of degree above 1, the others left where they stand. The plan's own comes first.
std::vector<std::vector<Axis>> nestings(const PlanSpec& plan) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < plan.order.size(); ++i) {
    if (plan.degree(plan.order[i]) > 1) places.push_back(i);
  }
  std::vector<std::vector<Axis>> all;
  std::vector<std::size_t> permuted = places;
  do {
    std::vector<Axis> order = plan.order;
    for (std::size_t i = 0; i < places.size(); ++i) order[places[i]] = plan.order[permuted[i]];
    all.push_back(std::move(order));
  } while (!plan.order_given && std::next_permutation(permuted.begin(), permuted.end()));
  return all;
}

/// The shape that an entry asks for by itself; a single tile where the mesh decides.
Shape asked_shape(const AxisMapping& mapping, int degree) {
  if (mapping.shape) return *mapping.shape;
  if (mapping.placement == Placement::row) return {1, degree};
  if (mapping.placement == Placement::col) return {degree, 1};
  return {1, 1};
}

}  // namespace

MappingCandidates::MappingCandidates(const PlanSpec& plan) : plan_(plan), orders_(nestings(plan)) {
  for (const Axis axis : default_order()) {
    if (plan.axis_mapping(axis).placement != Placement::optimized || plan.degree(axis) == 1) continue;
    axes_.push_back(axis);
    options_.push_back(placements(plan.degree(axis)));
    sizes_.push_back(options_.back().size());
  }
  sizes_.push_back(orders_.size());
}

std::uint64_t MappingCandidates::count() const {
  std::uint64_t product = 1;
  for (const std::size_t size : sizes_) {
    if (product > std::numeric_limits<std::uint64_t>::max() / size)
      return std::numeric_limits<std::uint64_t>::max();
    product *= size;
  }
  return product;
}

PlanSpec MappingCandidates::standard_plan() const {
  PlanSpec plan = plan_;
  std::erase_if(plan.mapping,
                [](const auto& entry) { return entry.second.placement == Placement::optimized; });
  return plan;
}

PlanSpec MappingCandidates::plan(const Choices& choices) const {
  PlanSpec plan = standard_plan();
  for (std::size_t i = 0; i < axes_.size(); ++i) plan.mapping[axes_[i]] = options_[i][choices[i]];
  plan.order = orders_[choices.back()];
  return plan;
}

bool MappingCandidates::is_sensible(const Choices& choices, const Shape& mesh) const {
  // In 64 bits: a rectangle of a few axes can be longer than any mesh.
  std::int64_t rows = 1, cols = 1;
  bool innermost = true;
  for (const Axis axis : orders_[choices.back()]) {
    const int degree = plan_.degree(axis);
    if (degree == 1) continue;
    const auto open = std::find(axes_.begin(), axes_.end(), axis);
    AxisMapping mapping = plan_.axis_mapping(axis);
    if (open != axes_.end()) {
      const auto i = static_cast<std::size_t>(open - axes_.begin());
      mapping = options_[i][choices[i]];
      if (innermost && mapping.placement == Placement::strided) return false;  // a block
    }
    const Shape shape = asked_shape(mapping, degree);
    rows *= shape.rows;
    cols *= shape.cols;
    innermost = false;
  }
  return rows <= mesh.rows && cols <= mesh.cols;
}

}  // namespace wafersim::workloads
