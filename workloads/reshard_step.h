#pragma once

#include <string>

#include "workloads/step_emitter.h"

namespace wafersim::workloads {

/// What becomes of the rows in the cut that a tensor comes from.
enum class Source { freed, stays };

/// Brings a tensor of the residual stream's shape, `layer` layers on, from the present cut into another and enters that. The rows
/// that a tile works on there get a buffer of their own (activations): those that it has are in it at once, the others come from
/// tiles of its model group, by an all-gather of the plan's algorithm or one message for each pair of tiles. Nothing happens
/// where the cuts agree, and step.reshard(to) is null. Returns when all rows are there.
Deps emit_reshard(StepEmitter& step, Cut to, const std::string& tensor, int layer, Source source, const Deps& after);

/// The present cut's rows of such a tensor that another cut has not.
Views rows_outside(StepEmitter& step, Cut other, const std::string& tensor, int layer);

}  // namespace wafersim::workloads
