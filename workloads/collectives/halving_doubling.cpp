#include "workloads/collectives/algorithms.h"
#include "workloads/collectives/halving.h"

namespace wafersim::workloads::collectives {
namespace {

/// Recursive halving of the vector while the distance doubles, and the way back (Rabenseifner 2004, "Optimization of
/// collective reduction operations"): the largest messages go to the nearest members. A step starts when the one before
/// is complete.
class HalvingDoubling final : public Algorithm {
 public:
  Completion all_gather(Piece& piece, const GatherStart& start) const override {
    const HalvingView view(piece.group());
    if (const auto partner = view.stands_aside_for()) {
      piece.send(Phase::gather, *partner, own(piece), start.own);
      return both(start.own, piece.receive(Phase::gather, *partner, view.all_but(piece.group().rank), start.post));
    }
    std::vector<OpId> here = start.own;
    if (const auto aside = view.answers_for()) here = both(here, piece.receive(Phase::gather, *aside, ShardRange{*aside}, start.post));
    here = both(here, gather(piece, view, here, start.post));
    if (const auto aside = view.answers_for()) piece.send(Phase::gather, *aside, view.all_but(*aside), here);
    return here;
  }

  Completion reduce_scatter(Piece& piece, const std::vector<OpId>& after) const override {
    const HalvingView view(piece.group());
    if (const auto partner = view.stands_aside_for()) {
      piece.send(Phase::reduce, *partner, piece.whole(), after);
      return both(after, piece.receive(Phase::gather, *partner, own(piece), after));
    }
    const std::vector<OpId> sums = reduce(piece, view, after);
    if (const auto aside = view.answers_for()) piece.send(Phase::gather, *aside, ShardRange{*aside}, sums);
    return sums;
  }

  Completion all_reduce(Piece& piece, const std::vector<OpId>& after) const override {
    const HalvingView view(piece.group());
    if (const auto partner = view.stands_aside_for()) {
      piece.send(Phase::reduce, *partner, piece.whole(), after);
      return both(after, piece.receive(Phase::gather, *partner, piece.whole(), after));
    }
    const std::vector<OpId> sums = reduce(piece, view, after);
    const std::vector<OpId> here = both(sums, gather(piece, view, sums, after));
    if (const auto aside = view.answers_for()) piece.send(Phase::gather, *aside, piece.whole(), here);
    return here;
  }

 private:
  static std::vector<OpId> both(std::vector<OpId> first, const std::optional<OpId>& second) {
    if (second) first.push_back(*second);
    return first;
  }
  static std::vector<OpId> both(std::vector<OpId> first, const std::vector<OpId>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }
  static ShardRange own(const Piece& piece) { return {piece.group().rank, 1}; }

  /// What the members stand aside for comes first; then each step leaves half of the shards.
  static std::vector<OpId> reduce(Piece& piece, const HalvingView& view, const std::vector<OpId>& after) {
    std::vector<OpId> ready = after;
    if (const auto aside = view.answers_for()) ready = both(ready, ReduceQueue(piece, *aside, after).add(piece.whole()));
    for (int step = 0; step < view.steps(); ++step) {
      piece.send(Phase::reduce, view.partner(step), view.partners_shards(step), ready);
      ready = both(ready, ReduceQueue(piece, view.partner(step), ready).add(view.shards(step)));
    }
    return ready;
  }

  /// The steps backwards: each doubles the shards.
  static std::vector<OpId> gather(Piece& piece, const HalvingView& view, std::vector<OpId> here,
                                  const std::vector<OpId>& post) {
    for (int step = view.steps() - 1; step >= 0; --step) {
      piece.send(Phase::gather, view.partner(step), view.shards(step), here);
      here = both(here, piece.receive(Phase::gather, view.partner(step), view.partners_shards(step), post));
    }
    return here;
  }
};

}  // namespace

HalvingView::HalvingView(const Group& group)
    : size_(group.size), core_(std::bit_floor(static_cast<unsigned>(group.size))) {
  const std::vector<int> order = ranks_along(group, topology::row_major(group.shape));
  const int pairs = size_ - static_cast<int>(core_);
  for (int i = 0; i < pairs; ++i) {
    const int aside = order[static_cast<std::size_t>(2 * i)], member = order[static_cast<std::size_t>(2 * i + 1)];
    if (aside == group.rank) stands_aside_for_ = member;
    if (member == group.rank) answers_for_ = aside;
    owned_.push_back({member, aside});
  }
  for (auto rank = order.begin() + 2 * pairs; rank != order.end(); ++rank) owned_.push_back({*rank});
  for (unsigned i = 0; i < core_; ++i) {
    if (owned_[i].front() == group.rank) index_ = i;
  }
}

Shards HalvingView::owned_by_those_like(unsigned member, int bits) const {
  const unsigned mask = (1U << bits) - 1;
  std::vector<int> result;
  for (unsigned other = 0; other < core_; ++other) {
    if ((other & mask) != (member & mask)) continue;
    result.insert(result.end(), owned_[other].begin(), owned_[other].end());
  }
  return Shards(result);
}

Shards HalvingView::all_but(int rank) const {
  std::vector<int> result;
  for (int each = 0; each < size_; ++each) {
    if (each != rank) result.push_back(each);
  }
  return Shards(result);
}

const Algorithm& halving_doubling() {
  static const HalvingDoubling kHalvingDoubling;
  return kHalvingDoubling;
}

}  // namespace wafersim::workloads::collectives
