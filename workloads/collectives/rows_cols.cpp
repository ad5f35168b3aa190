#include <algorithm>

#include "workloads/collectives/algorithms.h"

namespace wafersim::workloads::collectives {
namespace {

/// The group as a grid of ranks, with this member's row and column.
class Grid {
 public:
  explicit Grid(const Group& group)
      : shape_(group.shape),
        ranks_(ranks_along(group, topology::row_major(group.shape))),
        here_(group.positions[static_cast<std::size_t>(group.rank)]) {}

  /// This member's row; each member owns its shard.
  Chain row() const {
    Chain chain{row_ranks(here_.y), here_.x, {}};
    for (int x = 0; x < shape_.cols; ++x) chain.ranges.push_back({x, {rank({x, here_.y}), 1}});
    return chain;
  }

  /// This member's column; each member owns the shards of its whole row.
  Chain column() const {
    Chain chain{{}, here_.y, {}};
    for (int y = 0; y < shape_.rows; ++y) {
      chain.ranks.push_back(rank({here_.x, y}));
      for (const ShardRange& range : ranges_of(row_ranks(y))) chain.ranges.push_back({y, range});
    }
    return chain;
  }

 private:
  int rank(topology::Coord place) const {
    return ranks_[static_cast<std::size_t>(place.y * shape_.cols + place.x)];
  }
  std::vector<int> row_ranks(int y) const {
    std::vector<int> ranks;
    for (int x = 0; x < shape_.cols; ++x) ranks.push_back(rank({x, y}));
    return ranks;
  }

  topology::Shape shape_;
  std::vector<int> ranks_;
  topology::Coord here_;
};

class RowsCols final : public Algorithm {
 public:
  Completion all_gather(Piece& piece, const GatherStart& start) const override {
    const Grid grid(piece.group());
    const Completion row = chain_gather(piece, grid.row(), start);
    return chain_gather(piece, grid.column(), {row, start.post});
  }
  Completion reduce_scatter(Piece& piece, const std::vector<OpId>& after) const override {
    const Grid grid(piece.group());
    return chain_reduce(piece, grid.row(), chain_reduce(piece, grid.column(), after));
  }
};

}  // namespace

const Algorithm& rows_cols() {
  static const RowsCols kRowsCols;
  return kRowsCols;
}

}  // namespace wafersim::workloads::collectives
