#include "workloads/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "workloads/collectives/algorithms.h"

namespace wafersim::workloads {
namespace collectives {

Completion Algorithm::all_reduce(Piece& piece, const std::vector<OpId>& after) const {
  const Completion sums = reduce_scatter(piece, after);
  return all_gather(piece, {sums, after});
}

const Algorithm& algorithm(Collective collective) {
  switch (collective) {
    case Collective::ring:
      return ring();
    case Collective::line:
      return line();
    case Collective::rows_cols:
      return rows_cols();
    case Collective::tree:
      return tree();
    case Collective::halving_doubling:
      return halving_doubling();
    case Collective::direct:
      return direct();
    case Collective::multicast:
      return multicast();
    case Collective::router_multicast:
      return router_multicast();
    case Collective::automatic:
      break;
  }
  throw InternalError("a collective is lowered with an algorithm of its own, not with 'auto'");
}

void require_consistent(const Group& group) {
  require_invariant(group.rank >= 0 && group.rank < group.size, "a rank of a group is below its size");
  require_invariant(group.shape.size() == group.size, "the shape of a group has a place for each member");
  require_invariant(group.positions.size() == static_cast<std::size_t>(group.size),
                    "each member of a group has a position");
  ranks_along(group, topology::row_major(group.shape));
}

std::vector<int> ranks_along(const Group& group, const std::vector<topology::Coord>& positions) {
  const auto place = [&](topology::Coord c) {
    return static_cast<std::size_t>(c.y * group.shape.cols + c.x);
  };
  std::vector<int> rank_at(static_cast<std::size_t>(group.size), -1);
  for (int rank = 0; rank < group.size; ++rank) {
    const topology::Coord at = group.positions[static_cast<std::size_t>(rank)];
    const bool inside = at.x >= 0 && at.x < group.shape.cols && at.y >= 0 && at.y < group.shape.rows;
    require_invariant(inside && rank_at[place(at)] < 0, "each place of a group's shape holds one member");
    rank_at[place(at)] = rank;
  }
  std::vector<int> ranks;
  ranks.reserve(positions.size());
  for (const topology::Coord at : positions) ranks.push_back(rank_at[place(at)]);
  return ranks;
}

int index_of(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

namespace {

/// Runs `lower_piece` for each chunk, each after the one before.
template <class LowerPiece>
Completion by_pieces(StepBuilder& builder, const Group& group, const CollectiveVector& vector,
                     const std::vector<OpId>& after, int chunks, const LowerPiece& lower_piece) {
  require_invariant(chunks >= 1, "a collective has at least one chunk");
  if (group.size == 1) return after;
  require_consistent(group);
  constexpr int kMaxParts = std::numeric_limits<std::uint16_t>::max();
  if (chunks > kMaxParts / group.size) {
    throw PlanError(fmt::format(
        "a collective of {} members in {} chunks has more than {} parts; nearest valid: {} chunks",
        group.size, chunks, kMaxParts, kMaxParts / group.size));
  }
  const std::uint32_t first_channel = builder.new_channels(channels_of(group.size, chunks));
  std::vector<OpId> ready = after;
  Completion all;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    Piece piece(builder, group, vector, first_channel, chunk, chunks);
    ready = lower_piece(piece, ready);
    all.insert(all.end(), ready.begin(), ready.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace
}  // namespace collectives

std::uint32_t channels_of(int size, int chunks) { return 2 * static_cast<std::uint32_t>(chunks * size); }

using collectives::by_pieces;
using collectives::Piece;

Completion all_gather(StepBuilder& builder, const Group& group, Collective algorithm,
                      const CollectiveVector& vector, const std::vector<OpId>& after, int chunks) {
  const collectives::Algorithm& chosen = collectives::algorithm(algorithm);
  return by_pieces(builder, group, vector, after, chunks, [&](Piece& piece, const std::vector<OpId>& ready) {
    return chosen.all_gather(piece, {ready, ready});
  });
}

Completion reduce_scatter(StepBuilder& builder, const Group& group, Collective algorithm,
                          const CollectiveVector& vector, const std::vector<OpId>& after, int chunks) {
  const collectives::Algorithm& chosen = collectives::algorithm(algorithm);
  return by_pieces(builder, group, vector, after, chunks, [&](Piece& piece, const std::vector<OpId>& ready) {
    return chosen.reduce_scatter(piece, ready);
  });
}

Completion all_reduce(StepBuilder& builder, const Group& group, Collective algorithm,
                      const CollectiveVector& vector, const std::vector<OpId>& after, int chunks) {
  const collectives::Algorithm& chosen = collectives::algorithm(algorithm);
  return by_pieces(builder, group, vector, after, chunks, [&](Piece& piece, const std::vector<OpId>& ready) {
    return chosen.all_reduce(piece, ready);
  });
}

}  // namespace wafersim::workloads
