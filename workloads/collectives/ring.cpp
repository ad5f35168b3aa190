#include "workloads/collectives/algorithms.h"

namespace wafersim::workloads::collectives {
namespace {

/// The ring as one member sees it.
class RingView {
 public:
  explicit RingView(const Group& group)
      : ranks_(ranks_along(group, topology::hamiltonian_cycle(group.shape, group.closed).positions)),
        index_(index_of(ranks_, group.rank)) {}

  int next() const { return ranks_[ahead(1)]; }
  int previous() const { return ranks_[ahead(-1)]; }
  /// The shard of the member `steps` behind this one.
  ShardRange shard_behind(int steps) const { return {ranks_[ahead(-steps)], 1}; }

 private:
  std::size_t ahead(int steps) const {
    const int size = static_cast<int>(ranks_.size());
    return static_cast<std::size_t>(((index_ + steps) % size + size) % size);
  }

  std::vector<int> ranks_;
  int index_;
};

/// n - 1 steps; what arrives in one is passed on in the next. Chan et al. 2007, "Collective communication:
/// theory, practice, and experience", section 6 (bucket algorithms).
class Ring final : public Algorithm {
 public:
  Completion all_gather(Piece& piece, const GatherStart& start) const override {
    const RingView ring(piece.group());
    SendQueue sends(piece, Phase::gather, ring.next());
    ReceiveQueue receives(piece, Phase::gather, ring.previous(), start.post);
    Completion result = start.own;
    std::vector<OpId> ready = start.own;
    for (int step = 0; step + 1 < piece.group().size; ++step) {
      sends.send(ring.shard_behind(step), ready);
      const auto received = receives.receive(ring.shard_behind(step + 1));
      ready = either(received, start.own);
      if (received) result.push_back(*received);
    }
    return result;
  }

  Completion reduce_scatter(Piece& piece, const std::vector<OpId>& after) const override {
    const RingView ring(piece.group());
    SendQueue sends(piece, Phase::reduce, ring.next());
    ReduceQueue sums(piece, ring.previous(), after);
    std::vector<OpId> ready = after;
    for (int step = 1; step < piece.group().size; ++step) {
      sends.send(ring.shard_behind(step), ready);
      ready = either(sums.add(ring.shard_behind(step + 1)), after);
    }
    return ready;
  }
};

}  // namespace

const Algorithm& ring() {
  static const Ring kRing;
  return kRing;
}

}  // namespace wafersim::workloads::collectives
