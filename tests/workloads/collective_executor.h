#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "workloads/collectives.h"

namespace wafersim::workloads {

/// One collective to be lowered by every member of a group.
struct CollectiveCase {
  Collective algorithm = Collective::ring;
  CollectiveKind kind = CollectiveKind::all_reduce;
  topology::Shape shape;
  std::vector<topology::Coord> positions;  ///< by rank
  Bytes bytes = 0;
  int chunks = 1;
};

/// A trace in which tile r of a 1 x n mesh runs rank r's part of the collective as its only step.
Trace lower_case(const CollectiveCase& wanted);

/// Runs such a trace without time on integers, one number for each byte of the vector. `vectors[r]` is what
/// rank r holds. In each turn a pseudo-random operation acts whose dependencies are complete: what the
/// dependencies do not order happens in any order. Throws InternalError when the run stalls, a message
/// differs at its ends or memory is freed twice. Returns the largest number of bytes that a member held in
/// landing buffers.
Bytes execute(const Trace& trace, std::vector<std::vector<std::uint64_t>>& vectors, std::uint64_t seed);

/// First and one past the last byte of piece `chunk` of rank `rank`'s shard.
std::pair<std::size_t, std::size_t> shard_bytes(const CollectiveCase& wanted, int chunk, int rank);

}  // namespace wafersim::workloads
