#pragma once

#include <array>
#include <optional>
#include <vector>

#include "topology/mesh.h"
#include "workloads/mapping.h"
#include "workloads/plan.h"

namespace wafersim::workloads {

/// How the operators of a layer divide the tiles of each model group (those that share tp and tatp), where they have degrees of
/// their own. An operator lies in the same rectangle of tiles as the plan's tp and tatp: its tp in the most square shape that
/// divides the rectangle, its tatp in copies of it, nested and placed (as blocks or snakes) as those of the plan.
class PlanCuts {
 public:
  /// Of a valid plan. All must outlive the object.
  PlanCuts(const PlanSpec& plan, const Mapping& mapping, const topology::Mesh& mesh);

  /// Whether operators have degrees of their own. Otherwise all cuts are that of the plan.
  bool split() const { return split_; }
  /// The plan with the degrees of a cut, laid out in full.
  const PlanSpec& plan(Cut cut) const { return own(cut) ? own(cut)->plan : plan_; }
  const Mapping& mapping(Cut cut) const { return own(cut) ? own(cut)->mapping : mapping_; }
  /// What the tile with these ranks of the plan is in a cut.
  Ranks ranks(Cut cut, Ranks of_plan) const;

  /// Tiles of a model group, and the number among them of a tile with such ranks of the plan.
  int block() const { return plan_.tp * plan_.tatp; }
  int member(const Ranks& of_plan) const { return of_plan.tatp * plan_.tp + of_plan.tp; }
  Ranks member_ranks(int member) const;

 private:
  struct Own {
    Own(PlanSpec the_plan, const topology::Mesh& mesh) : plan(std::move(the_plan)), mapping(plan, mesh) {}
    PlanSpec plan;
    Mapping mapping;
    std::vector<Ranks> ranks;  ///< by member, tp and tatp alone
  };
  const std::optional<Own>& own(Cut cut) const { return own_[static_cast<std::size_t>(cut)]; }
  PlanSpec laid_out(Cut cut) const;
  void number(Own& own) const;

  const PlanSpec& plan_;
  const Mapping& mapping_;
  bool split_;
  std::array<std::optional<Own>, kCuts> own_;
};

}  // namespace wafersim::workloads
