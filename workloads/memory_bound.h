#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/step_memory.h"
#include "workloads/trace.h"

namespace wafersim::workloads {

/// What a tile may hold at the end of a cycle at most.
struct TileBound {
  std::array<Bytes, kMemoryClasses> by_class{};  ///< class by class, at whatever time
  Bytes total = 0;                               ///< of all classes at one time; not above their sum
  std::int32_t step = -1;                        ///< in which step of its program that may be; -1 without steps
};

/// Bounds what the tiles of a trace may hold, in their order, from its templates and programs:
///  * statics;
///  * the steps of a program one after the other, each with the largest sum of allocations that its
///    dependencies allow to be live at once; background steps on top, as if all of an iteration were open;
///    Those of one microbatch (zero 2 and 3) count until the step that waits for them;
///  * buffers of detached sends that have not left: at most one for each pass in flight at the sender (forward)
///    or at the receiver (backward);
///  * messages that are early. A collective ends nowhere before everyone takes part, so the peers of a
///    foreground step can be ahead by one collective on the way to its result and one beside it (inputs
///    gathered again for weight gradients): twice the largest. Background steps open independently: all of
///    them. Pipeline transfers: one for each pass in flight at the sender's end. Of a collective that
///    sums, only partial sums can be early.
/// `in_flight` has the largest number of passes in flight for each pipeline stage, see passes_in_flight().
std::vector<TileBound> bound_tiles(const Trace& trace, const std::vector<std::int32_t>& in_flight);
/// The same, what the steps hold being known: `steps` by template, whose operations are not looked at.
std::vector<TileBound> bound_tiles(const Trace& trace, const std::vector<std::int32_t>& in_flight,
                                   const std::vector<StepMemory>& steps);

}  // namespace wafersim::workloads
