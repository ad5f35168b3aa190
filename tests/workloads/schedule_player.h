#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "workloads/schedule.h"

namespace wafersim::workloads {

/// Cycles of the passes of one microbatch through all layers of a stage. Without a weight pass of its own a backward
/// pass takes both.
struct PassCycles {
  Cycle forward = 1;
  Cycle backward = 1;
  Cycle weight = 1;
};

/// How a pipeline of equal stages goes whose messages cost nothing. Chunks are equal parts of a stage: durations
/// have to be multiples of their number.
struct Played {
  std::size_t passes = 0;  ///< that came to their turn; all of them, unless stages wait for each other
  Cycle makespan = 0;
  std::vector<Cycle> idle;  ///< of each stage between its own first start and last end
};
Played play(const PipelineShape& shape, const PassCycles& cycles);

/// Every schedule with up to so many stages, microbatches and chunks.
std::vector<PipelineShape> small_shapes(int stages, std::int32_t microbatches, int chunks);
std::string describe(const PipelineShape& shape);

}  // namespace wafersim::workloads
