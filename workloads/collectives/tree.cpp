#include <algorithm>

#include "workloads/collectives/algorithms.h"

namespace wafersim::workloads::collectives {
namespace {

/// A subtree by its root and all its members, root included.
struct Subtree {
  int root = 0;
  std::vector<int> members;
};

/// The tree as one member sees it. The middle of an interval of the snake order is the parent of the middles
/// of its halves.
class TreeView {
 public:
  explicit TreeView(const Group& group) {
    const std::vector<int> order = ranks_along(group, topology::snake(group.shape));
    const int place = index_of(order, group.rank);
    int first = 0, end = group.size;
    while (middle(first, end) != place) {
      const int root = middle(first, end);
      parent_ = order[static_cast<std::size_t>(root)];
      (place < root ? end : first) = place < root ? root : root + 1;
    }
    subtree_ = interval(order, first, end);
    if (first < place) children_.push_back(interval(order, first, place));
    if (place + 1 < end) children_.push_back(interval(order, place + 1, end));
  }

  const std::optional<int>& parent() const { return parent_; }
  const std::vector<Subtree>& children() const { return children_; }
  const Subtree& subtree() const { return subtree_; }

 private:
  static int middle(int first, int end) { return first + (end - first) / 2; }
  static Subtree interval(const std::vector<int>& order, int first, int end) {
    return {order[static_cast<std::size_t>(middle(first, end))],
            {order.begin() + first, order.begin() + end}};
  }

  std::optional<int> parent_;
  std::vector<Subtree> children_;
  Subtree subtree_;
};

std::vector<ShardRange> ranges_outside(const Subtree& subtree, int size) {
  std::vector<int> others;
  for (int rank = 0; rank < size; ++rank) {
    const auto& members = subtree.members;
    if (std::find(members.begin(), members.end(), rank) == members.end()) others.push_back(rank);
  }
  return ranges_of(others);
}

std::vector<OpId> receive_all(Piece& piece, int from, const std::vector<ShardRange>& ranges,
                              const std::vector<OpId>& after) {
  std::vector<OpId> received;
  for (const ShardRange& range : ranges) {
    if (const auto op = piece.receive(Phase::gather, from, range, after)) received.push_back(*op);
  }
  return received;
}

void send_all(Piece& piece, int to, const std::vector<ShardRange>& ranges, const std::vector<OpId>& after) {
  SendQueue sends(piece, Phase::gather, to);
  for (const ShardRange& range : ranges) sends.send(range, after);
}

std::vector<OpId> both(std::vector<OpId> first, const std::vector<OpId>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Sums the whole vector of a subtree at this member and hands it to the parent. Returns when the sum is
/// here.
std::vector<OpId> reduce_up(Piece& piece, const TreeView& tree, const std::vector<OpId>& after) {
  std::vector<OpId> sums = after;
  for (const Subtree& child : tree.children()) {
    ReduceQueue queue(piece, child.root, after);
    if (const auto sum = queue.add(piece.whole())) sums.push_back(*sum);
  }
  if (tree.parent()) piece.send(Phase::reduce, *tree.parent(), piece.whole(), sums);
  return sums;
}

class Tree final : public Algorithm {
 public:
  Completion all_gather(Piece& piece, const GatherStart& start) const override {
    const TreeView tree(piece.group());
    const int size = piece.group().size;
    std::vector<OpId> here = start.own;
    for (const Subtree& child : tree.children()) {
      here = both(here, receive_all(piece, child.root, ranges_of(child.members), start.post));
    }
    if (tree.parent()) {
      send_all(piece, *tree.parent(), ranges_of(tree.subtree().members), here);
      here = both(here, receive_all(piece, *tree.parent(), ranges_outside(tree.subtree(), size), start.post));
    }
    for (const Subtree& child : tree.children())
      send_all(piece, child.root, ranges_outside(child, size), here);
    return here;
  }

  Completion reduce_scatter(Piece& piece, const std::vector<OpId>& after) const override {
    const TreeView tree(piece.group());
    std::vector<OpId> here = reduce_up(piece, tree, after);
    if (tree.parent()) {
      here = both(after, receive_all(piece, *tree.parent(), ranges_of(tree.subtree().members), after));
    }
    for (const Subtree& child : tree.children()) send_all(piece, child.root, ranges_of(child.members), here);
    return here;
  }

  Completion all_reduce(Piece& piece, const std::vector<OpId>& after) const override {
    const TreeView tree(piece.group());
    std::vector<OpId> here = reduce_up(piece, tree, after);
    if (tree.parent()) here = both(after, receive_all(piece, *tree.parent(), {piece.whole()}, after));
    for (const Subtree& child : tree.children()) send_all(piece, child.root, {piece.whole()}, here);
    return here;
  }
};

}  // namespace

const Algorithm& tree() {
  static const Tree kTree;
  return kTree;
}

}  // namespace wafersim::workloads::collectives
