#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plan.h"

namespace wafersim::workloads {

/// A choice for each dimension of a search: one for each axis that is left open, in the order of
/// default_order(), and the nesting.
using Choices = std::vector<std::size_t>;

/// The mappings among which choose_mapping() chooses.
class MappingCandidates {
 public:
  /// `plan` must outlive the object.
  explicit MappingCandidates(const PlanSpec& plan);

  const std::vector<Axis>& axes() const { return axes_; }
  /// Number of choices in each dimension; the last is the nesting.
  const std::vector<std::size_t>& sizes() const { return sizes_; }
  /// Product of the sizes; the largest 64-bit number when it is more.
  std::uint64_t count() const;

  /// The plan with these choices; its rectangle may not fit the mesh.
  PlanSpec plan(const Choices& choices) const;
  /// The plan with every open axis as without an entry, in the nesting of the plan.
  PlanSpec standard_plan() const;
  /// Its rectangle fits, no dead tile considered, and it is no other candidate under another name.
  bool is_sensible(const Choices& choices, const topology::Shape& mesh) const;

 private:
  const PlanSpec& plan_;
  std::vector<Axis> axes_;
  std::vector<std::vector<AxisMapping>> options_;  ///< by open axis
  std::vector<std::vector<Axis>> orders_;
  std::vector<std::size_t> sizes_;
};

}  // namespace wafersim::workloads
