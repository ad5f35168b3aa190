#pragma once

#include <functional>

#include "workloads/step_emitter.h"

namespace wafersim::workloads {

/// What a member of a group exchanges with each other one.
struct AllToAll {
  std::function<Views(int member)> sent;
  std::function<Views(int member)> received;
  Bytes cell_bytes = 2;  ///< of one value
};

/// Every member sends every other one a message; under dimension-order routing they cross the group's rows,
/// then its columns. The buffer of what comes is allocated first, that of what goes freed when all is sent.
/// Returns when all is there, `after` in a group of one.
Deps emit_all_to_all(StepEmitter& step, const Group& group, const AllToAll& exchange, const Deps& after);

}  // namespace wafersim::workloads
