#include <algorithm>
#include <cstdlib>
#include <map>

#include "workloads/collectives/algorithms.h"

namespace wafersim::workloads::collectives {
namespace {

/// All other members, the next rank first.
std::vector<int> others(const Group& group) {
  std::vector<int> ranks;
  for (int step = 1; step < group.size; ++step) ranks.push_back((group.rank + step) % group.size);
  return ranks;
}

/// Every member's own message to every other one, all at once.
class Direct : public Algorithm {
 public:
  Completion all_gather(Piece& piece, const GatherStart& start) const override {
    Completion result = start.own;
    for (const int other : others(piece.group())) piece.send(Phase::gather, other, own(piece), start.own);
    for (const int other : others(piece.group())) {
      if (const auto received = piece.receive(Phase::gather, other, ShardRange{other, 1}, start.post)) result.push_back(*received);
    }
    return result;
  }
  Completion reduce_scatter(Piece& piece, const std::vector<OpId>& after) const override {
    for (const int other : others(piece.group())) piece.send(Phase::reduce, other, ShardRange{other, 1}, after);
    Completion result;
    for (const int other : others(piece.group())) {
      if (const auto sum = ReduceQueue(piece, other, after).add(own(piece))) result.push_back(*sum);
    }
    return result.empty() ? after : result;
  }

 private:
  static ShardRange own(const Piece& piece) { return {piece.group().rank, 1}; }
};

/// The group as a grid of ranks, and the trees along which shards travel in it: along the owner's row first, and from
/// there up and down each column.
class ForwardingTrees {
 public:
  explicit ForwardingTrees(const Group& group)
      : shape_(group.shape),
        positions_(group.positions),
        ranks_(ranks_along(group, topology::row_major(group.shape))),
        here_(at(group.rank)) {}

  /// The shards of all members as they pass here, those with the shorter way first.
  std::vector<int> by_distance() const {
    std::vector<int> owners = ranks_;
    std::sort(owners.begin(), owners.end());
    std::stable_sort(owners.begin(), owners.end(), [&](int a, int b) { return distance(a) < distance(b); });
    return owners;
  }

  /// From whom this member, which is not the owner, has the shard of `owner`.
  int parent(int owner) const {
    const topology::Coord from = at(owner);
    topology::Coord nearer = here_;
    if (from.y != here_.y) {
      nearer.y += from.y < here_.y ? -1 : 1;
    } else {
      nearer.x += from.x < here_.x ? -1 : 1;
    }
    return rank(nearer);
  }

  /// To whom it passes it on.
  std::vector<int> children(int owner) const {
    const topology::Coord from = at(owner);
    std::vector<int> result;
    const auto add = [&](int dx, int dy) {
      const topology::Coord next{here_.x + dx, here_.y + dy};
      const bool inside = next.x >= 0 && next.x < shape_.cols && next.y >= 0 && next.y < shape_.rows;
      if (inside) result.push_back(rank(next));
    };
    if (from.y == here_.y) {
      if (from.x <= here_.x) add(1, 0);
      if (from.x >= here_.x) add(-1, 0);
    }
    if (from.y <= here_.y) add(0, 1);
    if (from.y >= here_.y) add(0, -1);
    return result;
  }

 private:
  topology::Coord at(int rank) const { return positions_[static_cast<std::size_t>(rank)]; }
  int rank(topology::Coord place) const { return ranks_[static_cast<std::size_t>(place.y * shape_.cols + place.x)]; }
  int distance(int owner) const { return std::abs(at(owner).x - here_.x) + std::abs(at(owner).y - here_.y); }

  topology::Shape shape_;
  const std::vector<topology::Coord>& positions_;
  std::vector<int> ranks_;
  topology::Coord here_;
};

/// As Direct, but a shard that goes to many members crosses each link once: members on the way pass it on. Both ends
/// of a link handle the shards in the same order, because all of them come one hop further along it.
class Multicast final : public Direct {
 public:
  Completion all_gather(Piece& piece, const GatherStart& start) const override {
    const ForwardingTrees trees(piece.group());
    std::map<int, SendQueue> sends;
    std::map<int, ReceiveQueue> receives;
    Completion result = start.own;
    for (const int owner : trees.by_distance()) {
      std::vector<OpId> ready = start.own;
      if (owner != piece.group().rank) {
        const int from = trees.parent(owner);
        const auto received = receives.try_emplace(from, piece, Phase::gather, from, start.post)
                                  .first->second.receive(ShardRange{owner, 1});
        if (received) result.push_back(*received);
        ready = either(received, start.own);
      }
      for (const int to : trees.children(owner)) {
        sends.try_emplace(to, piece, Phase::gather, to).first->second.send(ShardRange{owner, 1}, ready);
      }
    }
    return result;
  }
};

/// As Direct, but of a gathered shard its owner injects a single message, which the routers copy.
class RouterMulticast final : public Direct {
 public:
  Completion all_gather(Piece& piece, const GatherStart& start) const override {
    Completion result = start.own;
    piece.multicast(others(piece.group()), ShardRange{piece.group().rank, 1}, start.own);
    for (const int other : others(piece.group())) {
      if (const auto received = piece.receive(Phase::gather, other, ShardRange{other, 1}, start.post)) result.push_back(*received);
    }
    return result;
  }
};

}  // namespace

const Algorithm& direct() {
  static const Direct kDirect;
  return kDirect;
}

const Algorithm& multicast() {
  static const Multicast kMulticast;
  return kMulticast;
}

const Algorithm& router_multicast() {
  static const RouterMulticast kRouterMulticast;
  return kRouterMulticast;
}

}  // namespace wafersim::workloads::collectives
