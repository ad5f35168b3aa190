#pragma once

#include <array>
#include <cstdint>

#include "workloads/trace.h"

namespace wafersim::workloads {

/// 128 bits (XXH3) of what a trace asks the tiles to do: templates, programs, works, bindings, peers and resident memory.
/// Traces that differ in these have different fingerprints, but for collisions.
std::array<std::uint64_t, 2> fingerprint(const Trace& trace);

}  // namespace wafersim::workloads
