#pragma once

#include <cstdint>
#include <vector>

#include "workloads/step_emitter.h"

/// Parts of a layer's steps alone: for what they cost, not for what a tile holds.
namespace wafersim::workloads {

/// Attention's or the MLP's part of a forward step, as its own cut has it: from the residual stream to its sum with its own
/// output. What it is made from stands ready, its result is dropped.
void emit_operator_forward(StepEmitter& step, Cut which);
/// The same of a backward step, weight gradients and what `selective` makes again included.
void emit_operator_backward(StepEmitter& step, Cut which, models::Recompute recompute);

/// A part of a layer.
struct OperatorStep {
  enum class What : std::uint8_t { forward, backward, reshard };
  What what = What::forward;
  Cut of = Cut::attention;  ///< which operator, or the cut that rows come from
  Cut to = Cut::plan;       ///< the cut that they go to
};

/// A trace of the tiles of the plan's first stage in its first replica, each of which has these steps as its program. Where the
/// machine has DRAM, what lies there is what does in the first tile of the whole plan.
Trace lower_operator_steps(const LoweringInput& input, const Mapping& mapping, const std::vector<OperatorStep>& steps);

}  // namespace wafersim::workloads
