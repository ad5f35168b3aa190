#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/lowering.h"

namespace wafersim::workloads {

/// Bounds what the tiles of a trace may hold at the end of a cycle, from its templates and programs:
///  * statics;
///  * the steps of a program one after the other, each with the largest sum of allocations that its
///    dependencies allow to be live at once; background steps on top, as if all of an iteration were open;
///  * buffers of detached sends that have not left: at most one for each pass in flight at the sender (forward)
///    or at the receiver (backward);
///  * messages that are early. A collective ends nowhere before everyone takes part, so the peers of a
///    foreground step can be ahead by one collective on the way to its result and one beside it (inputs
///    gathered again for weight gradients): twice the largest. Background steps open independently: all of
///    them. Pipeline transfers: one for each pass in flight at the sender's end. Of a collective that
///    sums, only partial sums can be early.
/// `in_flight` has the largest number of passes in flight for each pipeline stage, see passes_in_flight(). Placement is read
/// from trace.in_dram.
MemoryBound bound_memory(const Trace& trace, const std::vector<std::int32_t>& in_flight,
                         const models::HardwareModel& hardware);

/// Decides which classes live in DRAM. Classes that are placed by name come first; `automatic` ones fill what
/// is left of the SRAM in the order communication buffers, stream buffers, parameters, gradients, activations,
/// optimizer, a class that does not fit goes to DRAM. Without DRAM everything is in SRAM.
/// Throws PlanError when a class is placed in a DRAM that the hardware does not have.
std::array<bool, kMemoryClasses> resolve_placement(const PlacementSpec& placement, const MemoryBound& bound,
                                                   const models::HardwareModel& hardware);

}  // namespace wafersim::workloads
