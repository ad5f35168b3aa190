#pragma once

#include "models/cost.h"

namespace wafersim::models {

/// Closed forms of collectives on an otherwise idle mesh; derivations and conditions: docs/model-costs.md, "Collectives".
/// n members, `bytes` the size of the whole vector D, `reduce` cycles to add one shard. Throw InternalError for n < 1.

/// Rings of n members. A step is the latency of one shard of ceil(D / n) bytes over `longest_hops` links. Exact to the
/// cycle when n divides D, all neighbours on the ring are one hop apart and SRAM bandwidth is unlimited; an upper bound
/// when some neighbours are `longest_hops` = 2 apart. A ring of one member costs nothing.
Cycle ring_all_gather(const HardwareModel& hardware, int members, Bytes bytes, int longest_hops = 1);
Cycle ring_reduce_scatter(const HardwareModel& hardware, int members, Bytes bytes, Cycle reduce, int longest_hops = 1);
Cycle ring_all_reduce(const HardwareModel& hardware, int members, Bytes bytes, Cycle reduce, int longest_hops = 1);

/// Lower bound of an all-reduce made of a reduce-scatter into n equal shards and an all-gather after it, without reduction
/// in the network, when the member with the fewest links has `smallest_degree` of them: that member sends
/// (1 - 1/n) D in the first phase and receives as much in the second, 2 (1 - 1/n) D / (degree B) with B the rate of one
/// link and direction. Cycles, rounded down.
Cycle two_phase_all_reduce_bound(const HardwareModel& hardware, int members, Bytes bytes, int smallest_degree);

/// The same for a mesh of at least 2x2, whose corners have two links, (1 - 1/n) D / B; or for a line,
/// 2 (1 - 1/n) D / B.
Cycle all_reduce_bound(const HardwareModel& hardware, int members, Bytes bytes, bool line);

/// Lower bound of every all-reduce over all tiles of a mesh without reduction in the network, overlapped trees included:
/// the larger of D / (degree of a corner * B) and 2 (n - 1) D / (directed links * B). Cycles, rounded down.
Cycle any_all_reduce_bound(const HardwareModel& hardware, const topology::Shape& mesh, Bytes bytes);

/// Recursive doubling of whole vectors laid on a line of n = 2^k members costs at least (n - 1) D / B, because the
/// exchanges of distance 2^i share links: sum over i of 2^i D / B. Cycles, rounded down. Throws PlanError when n is not a
/// power of two.
Cycle recursive_doubling_on_line(const HardwareModel& hardware, int members, Bytes bytes);

}  // namespace wafersim::models
