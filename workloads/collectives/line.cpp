#include <algorithm>

#include "workloads/collectives/algorithms.h"

namespace wafersim::workloads::collectives {
namespace {

/// A chain as the traffic in one direction sees it: members are numbered along it.
class Stream {
 public:
  Stream(const Chain& chain, bool ascending) : chain_(chain), ascending_(ascending), ranges_(chain.ranges) {
    if (ascending_) return;
    for (OwnedRange& owned : ranges_) owned.owner = mirrored(owned.owner);
    std::reverse(ranges_.begin(), ranges_.end());
  }

  int size() const { return static_cast<int>(chain_.ranks.size()); }
  int index() const { return ascending_ ? chain_.index : mirrored(chain_.index); }
  bool has_upstream() const { return index() > 0; }
  bool has_downstream() const { return index() + 1 < size(); }
  int upstream() const { return rank(index() - 1); }
  int downstream() const { return rank(index() + 1); }
  /// Ascending by owner along the stream.
  const std::vector<OwnedRange>& ranges() const { return ranges_; }

 private:
  int mirrored(int place) const { return size() - 1 - place; }
  int rank(int place) const {
    return chain_.ranks[static_cast<std::size_t>(ascending_ ? place : mirrored(place))];
  }

  const Chain& chain_;
  bool ascending_;
  std::vector<OwnedRange> ranges_;
};

/// The ranges of the members from here upstream, nearest first, each passed on as it arrives.
void gather_stream(Piece& piece, const Stream& stream, const GatherStart& start, Completion& result) {
  std::optional<SendQueue> sends;
  std::optional<ReceiveQueue> receives;
  if (stream.has_downstream()) sends.emplace(piece, Phase::gather, stream.downstream());
  if (stream.has_upstream()) receives.emplace(piece, Phase::gather, stream.upstream(), start.post);
  for (auto owned = stream.ranges().rbegin(); owned != stream.ranges().rend(); ++owned) {
    if (owned->owner > stream.index()) continue;
    std::vector<OpId> ready = start.own;
    if (owned->owner < stream.index()) {
      const auto received = receives->receive(owned->range);
      if (received) result.push_back(*received);
      ready = either(received, start.own);
    }
    if (sends) sends->send(owned->range, ready);
  }
}

/// Sums for the members from here downstream, farthest first, and at last those that end here.
void reduce_stream(Piece& piece, const Stream& stream, const std::vector<OpId>& after, Completion& result) {
  std::optional<SendQueue> sends;
  std::optional<ReduceQueue> sums;
  if (stream.has_downstream()) sends.emplace(piece, Phase::reduce, stream.downstream());
  if (stream.has_upstream()) sums.emplace(piece, stream.upstream(), after);
  for (auto owned = stream.ranges().rbegin(); owned != stream.ranges().rend(); ++owned) {
    if (owned->owner < stream.index()) break;
    const std::optional<OpId> sum = sums ? sums->add(owned->range) : std::nullopt;
    if (owned->owner > stream.index()) {
      sends->send(owned->range, either(sum, after));
    } else if (sum) {
      result.push_back(*sum);
    }
  }
}

Chain snake_chain(const Group& group) {
  Chain chain{ranks_along(group, topology::snake(group.shape)), 0, {}};
  chain.index = index_of(chain.ranks, group.rank);
  for (int place = 0; place < group.size; ++place) {
    chain.ranges.push_back({place, {chain.ranks[static_cast<std::size_t>(place)], 1}});
  }
  return chain;
}

class Line final : public Algorithm {
 public:
  Completion all_gather(Piece& piece, const GatherStart& start) const override {
    return chain_gather(piece, snake_chain(piece.group()), start);
  }
  Completion reduce_scatter(Piece& piece, const std::vector<OpId>& after) const override {
    return chain_reduce(piece, snake_chain(piece.group()), after);
  }
};

}  // namespace

Completion chain_gather(Piece& piece, const Chain& chain, const GatherStart& start) {
  Completion result = start.own;
  for (const bool ascending : {true, false}) gather_stream(piece, Stream(chain, ascending), start, result);
  return result;
}

Completion chain_reduce(Piece& piece, const Chain& chain, const std::vector<OpId>& after) {
  Completion result;
  for (const bool ascending : {true, false}) reduce_stream(piece, Stream(chain, ascending), after, result);
  return result.empty() ? after : result;
}

const Algorithm& line() {
  static const Line kLine;
  return kLine;
}

}  // namespace wafersim::workloads::collectives
