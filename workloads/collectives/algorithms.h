#pragma once

#include "workloads/collectives/piece.h"

namespace wafersim::workloads::collectives {

/// When a member's part of a gather may start: its own shards are there after `own`, receives are posted
/// after `post`.
struct GatherStart {
  std::vector<OpId> own;
  std::vector<OpId> post;
};

/// One algorithm for one piece of a vector; the group has at least two members. Stateless.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual Completion all_gather(Piece& piece, const GatherStart& start) const = 0;
  virtual Completion reduce_scatter(Piece& piece, const std::vector<OpId>& after) const = 0;
  /// Reduce-scatter, then all-gather.
  virtual Completion all_reduce(Piece& piece, const std::vector<OpId>& after) const;
};

/// Throws InternalError for `automatic`.
const Algorithm& algorithm(Collective collective);
const Algorithm& ring();
const Algorithm& line();
const Algorithm& rows_cols();
const Algorithm& tree();
const Algorithm& halving_doubling();
const Algorithm& direct();
const Algorithm& multicast();
const Algorithm& router_multicast();

/// Throws InternalError when the positions are not a permutation of the places of the shape, or the rank is
/// not in the group.
void require_consistent(const Group& group);

/// The ranks in the order in which `positions` of the shape are visited.
std::vector<int> ranks_along(const Group& group, const std::vector<topology::Coord>& positions);

/// The member itself within an order of ranks.
int index_of(const std::vector<int>& ranks, int rank);

/// A shard range and where in a chain its owner sits.
struct OwnedRange {
  int owner = 0;
  ShardRange range;
};

/// Members in a chain, and what each of them owns, ascending by owner.
struct Chain {
  std::vector<int> ranks;
  int index = 0;  ///< of this member
  std::vector<OwnedRange> ranges;
};

/// The bidirectional line on any chain: complete ranges flow outward from their owners ...
Completion chain_gather(Piece& piece, const Chain& chain, const GatherStart& start);
/// ... and partial sums inward to them. A chain of one returns `after`.
Completion chain_reduce(Piece& piece, const Chain& chain, const std::vector<OpId>& after);

}  // namespace wafersim::workloads::collectives
