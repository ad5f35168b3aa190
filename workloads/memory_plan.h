#pragma once

#include <vector>

#include "workloads/lowering.h"
#include "workloads/memory_bound.h"

namespace wafersim::workloads {

/// Where the classes of a tile live that may hold as much as `bound`. Those placed by name come first. The others fill
/// what is left of the SRAM in the order stream buffers, communication buffers, parameters, gradients, activations,
/// optimizer: the one that does not fit any more gets the rest of it, those after it nothing; communication
/// buffers that do not fit lie in DRAM as a whole. Without DRAM everything is in
/// SRAM. Throws PlanError when a class is placed in a DRAM that the hardware does not have.
MemoryLayout choose_layout(const PlacementSpec& placement, const TileBound& bound, const models::HardwareModel& hardware);

/// Gives each tile of the trace its layout. `bounds` are those of its tiles.
void place_memory(Trace& trace, const std::vector<TileBound>& bounds, const PlacementSpec& placement,
                  const models::HardwareModel& hardware);

/// What the tiles of a trace may hold, all of them together, under the layouts that the trace has.
MemoryBound memory_bound(const Trace& trace, const std::vector<TileBound>& bounds, const models::HardwareModel& hardware);

}  // namespace wafersim::workloads
