#pragma once

#include <vector>

#include "workloads/trace.h"

namespace wafersim::workloads {

/// A message of a network-only experiment, posted in cycle `start`.
struct Flow {
  TileId source = 0;
  TileId destination = 0;
  Bytes bytes = 0;
  Cycle start = 0;
  Axis axis = Axis::none;
};

/// The trace in which each tile posts all its receives in cycle 0 and its flows at their start cycles, by vector operations of the
/// right length in between (one FLOP a cycle: the hardware's vector rate must be 1 FLOP/cycle for the times to hold).
/// The channel of flow i is i, so the low 24 bits of its message key are its index.
Trace flow_trace(const std::vector<Flow>& flows);

}  // namespace wafersim::workloads
