#include <numeric>

#include "base/error.h"
#include "workloads/axis_traffic.h"
#include "workloads/collectives/halving.h"
#include "workloads/shard.h"
#include "workloads/stream_schedule.h"

namespace wafersim::workloads {
namespace {

using topology::Coord;
using topology::Shape;

enum class Phase { reduce, gather };

/// The messages of a collective or a stream, between the members of one group.
class GroupFlows {
 public:
  GroupFlows(const AxisTraffic& traffic, const Shape& shape, const std::vector<Coord>& positions, bool closed)
      : bytes_(traffic.bytes()), shape_(shape), positions_(positions), closed_(closed), rank_at_(positions.size()) {
    for (int rank = 0; rank < shape.size(); ++rank) {
      const auto number = static_cast<std::size_t>(rank);
      rank_at_[place(positions[number])] = rank;
      const std::uint64_t rows =
          traffic.parts.empty() ? share(traffic.rows, shape.size(), rank) : traffic.parts[number];
      shards_.push_back(rows * traffic.row_bytes);
    }
  }

  void add(Collective algorithm, Phase phase) {
    switch (algorithm) {
      case Collective::ring:
        return ring(phase);
      case Collective::line:
        return chain(ranks_along(topology::snake(shape_)), shards_of(topology::snake(shape_)), phase);
      case Collective::rows_cols:
        return rows_cols(phase);
      case Collective::direct:
      case Collective::router_multicast:  // who gets what from whom; on the links copies share their way
        return direct(phase);
      case Collective::multicast:  // gathered shards cross the same links as in rows and columns
        return phase == Phase::gather ? rows_cols(phase) : direct(phase);
      default:
        throw InternalError("the flows of a collective were asked for an algorithm without phases");
    }
  }

  /// Parts go outward from their members, or sums of them inward, against the direction of the stream.
  void add_stream(const StreamSpec& stream, Phase phase) {
    const std::vector<int> line = ranks_along(topology::snake(shape_));
    const auto rank_of = [&line](int on_line) { return line[static_cast<std::size_t>(on_line)]; };
    for (const StreamTransfer& transfer : stream_transfers(stream.variant, stream.relay, shape_.size())) {
      const int from = rank_of(transfer.from), to = rank_of(transfer.to);
      const bool outward = phase == Phase::gather;
      send(outward ? from : to, outward ? to : from, shard(rank_of(transfer.owner)));
    }
  }

  /// Each member passes on all shards but one: its own sum, or what the next member had from the start.
  void ring(Phase phase) {
    const std::vector<int> order = ranks_along(topology::hamiltonian_cycle(shape_, closed_).positions);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int next = order[(i + 1) % order.size()];
      send(order[i], next, bytes_ - shard(phase == Phase::reduce ? order[i] : next));
    }
  }

  /// The edges of the binary tree over the snake; `kind` is that of the whole collective.
  void add_tree(TrafficPattern kind) {
    tree_ = ranks_along(topology::snake(shape_));
    branch(kind, 0, shape_.size());
  }

  /// The steps of recursive halving and doubling; `kind` is that of the whole collective.
  void add_halving(TrafficPattern kind) {
    const bool reduces = kind != TrafficPattern::all_gather, gathers = kind != TrafficPattern::reduce_scatter;
    for (int rank = 0; rank < shape_.size(); ++rank) {
      const collectives::HalvingView view({Axis::none, shape_.size(), rank, shape_, positions_});
      if (const auto member = view.stands_aside_for()) {
        send(rank, *member, reduces ? bytes_ : shard(rank));
        send(*member, rank, !gathers ? shard(rank) : reduces ? bytes_ : bytes_ - shard(rank));
        continue;
      }
      for (int step = 0; step < view.steps(); ++step) {
        if (reduces) send(rank, view.partner(step), sum_of(view.partners_shards(step)));
        if (gathers) send(rank, view.partner(step), sum_of(view.shards(step)));
      }
    }
  }

  std::vector<RankFlow> take() { return std::move(flows_); }

 private:
  std::size_t place(Coord c) const { return static_cast<std::size_t>(c.y * shape_.cols + c.x); }
  Bytes sum_of(const collectives::Shards& shards) {
    Bytes sum = 0;
    for (const collectives::ShardRange& range : shards.ranges) {
      for (int rank = range.first; rank < range.first + range.count; ++rank) sum += shard(rank);
    }
    return sum;
  }
  Bytes& shard(int rank) { return shards_[static_cast<std::size_t>(rank)]; }
  int rank(Coord c) const { return rank_at_[place(c)]; }

  std::vector<int> ranks_along(const std::vector<Coord>& places) const {
    std::vector<int> ranks;
    for (const Coord c : places) ranks.push_back(rank(c));
    return ranks;
  }
  std::vector<Bytes> shards_of(const std::vector<Coord>& places) {
    std::vector<Bytes> shards;
    for (const Coord c : places) shards.push_back(shard(rank(c)));
    return shards;
  }

  void send(int from, int to, Bytes bytes) {
    if (bytes > 0) flows_.push_back({from, to, bytes});
  }

  /// Members in a chain that own `owned` bytes each: values flow outward from their owners, sums inward.
  void chain(const std::vector<int>& ranks, const std::vector<Bytes>& owned, Phase phase) {
    const Bytes all = std::accumulate(owned.begin(), owned.end(), Bytes{0});
    Bytes behind = 0;
    for (std::size_t i = 0; i + 1 < ranks.size(); ++i) {
      behind += owned[i];
      send(ranks[i], ranks[i + 1], phase == Phase::gather ? behind : all - behind);
      send(ranks[i + 1], ranks[i], phase == Phase::gather ? all - behind : behind);
    }
  }

  /// A line in each row, and one in each column in which every member owns the shards of its row.
  void rows_cols(Phase phase) {
    std::vector<Bytes> of_row(static_cast<std::size_t>(shape_.rows), 0);
    for (int y = 0; y < shape_.rows; ++y) {
      std::vector<Coord> row;
      for (int x = 0; x < shape_.cols; ++x) row.push_back({x, y});
      const std::vector<Bytes> shards = shards_of(row);
      of_row[static_cast<std::size_t>(y)] = std::accumulate(shards.begin(), shards.end(), Bytes{0});
      chain(ranks_along(row), shards, phase);
    }
    for (int x = 0; x < shape_.cols; ++x) {
      std::vector<Coord> column;
      for (int y = 0; y < shape_.rows; ++y) column.push_back({x, y});
      chain(ranks_along(column), of_row, phase);
    }
  }

  /// To each other member the sender's shard, or the sender's part of the receiver's.
  void direct(Phase phase) {
    for (int from = 0; from < shape_.size(); ++from) {
      for (int to = 0; to < shape_.size(); ++to) {
        if (from != to) send(from, to, shard(phase == Phase::gather ? from : to));
      }
    }
  }

  static int middle(int first, int end) { return first + (end - first) / 2; }

  void branch(TrafficPattern kind, int first, int end) {
    const int root = middle(first, end);
    for (const auto& [child_first, child_end] : {std::pair{first, root}, std::pair{root + 1, end}}) {
      if (child_first >= child_end) continue;
      Bytes inside = 0;
      for (int i = child_first; i < child_end; ++i) inside += shard(tree_[static_cast<std::size_t>(i)]);
      const int parent = tree_[static_cast<std::size_t>(root)];
      const int child = tree_[static_cast<std::size_t>(middle(child_first, child_end))];
      const bool gathers = kind == TrafficPattern::all_gather;
      send(child, parent, gathers ? inside : bytes_);
      const bool whole = kind == TrafficPattern::all_reduce;
      send(parent, child, whole ? bytes_ : gathers ? bytes_ - inside : inside);
      branch(kind, child_first, child_end);
    }
  }

  Bytes bytes_;
  Shape shape_;
  std::vector<Coord> positions_;
  bool closed_;
  std::vector<int> rank_at_;   ///< by place, row-major
  std::vector<Bytes> shards_;  ///< by rank
  std::vector<int> tree_;
  std::vector<RankFlow> flows_;
};

std::vector<RankFlow> transfers(TrafficPattern pattern, Bytes bytes, int size) {
  std::vector<RankFlow> flows;
  if (pattern == TrafficPattern::between_ends) return {{0, size - 1, bytes}, {size - 1, 0, bytes}};
  for (int rank = 0; rank + 1 < size; ++rank) {
    const bool next = pattern == TrafficPattern::to_next;
    flows.push_back({next ? rank : rank + 1, next ? rank + 1 : rank, bytes});
  }
  return flows;
}

std::vector<RankFlow> exchange(const AxisTraffic& traffic, int size) {
  std::vector<RankFlow> flows;
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      const Bytes bytes = traffic.parts[static_cast<std::size_t>(from)] *
                          traffic.factors[static_cast<std::size_t>(to)] * traffic.row_bytes;
      if (from != to && bytes > 0) flows.push_back({from, to, bytes});
    }
  }
  return flows;
}

std::vector<RankFlow> pairs(const AxisTraffic& traffic, int size) {
  std::vector<RankFlow> flows;
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      const std::uint64_t rows = traffic.parts[static_cast<std::size_t>(from * size + to)];
      if (from != to && rows > 0) flows.push_back({from, to, rows * traffic.row_bytes});
    }
  }
  return flows;
}

void add_collective(GroupFlows& flows, TrafficPattern pattern, Collective algorithm) {
  if (algorithm == Collective::tree) return flows.add_tree(pattern);
  if (algorithm == Collective::halving_doubling) return flows.add_halving(pattern);
  if (pattern != TrafficPattern::all_gather) flows.add(algorithm, Phase::reduce);
  if (pattern != TrafficPattern::reduce_scatter) flows.add(algorithm, Phase::gather);
}

}  // namespace

std::vector<RankFlow> group_flows(const AxisTraffic& traffic, const Shape& shape,
                                  const std::vector<Coord>& positions, Collective algorithm,
                                  const StreamSpec& stream, bool closed) {
  require_invariant(static_cast<std::size_t>(shape.size()) == positions.size(),
                    "each member of a group has a position");
  if (shape.size() == 1 || traffic.bytes() == 0) return {};
  GroupFlows flows(traffic, shape, positions, closed);
  switch (traffic.pattern) {
    case TrafficPattern::all_gather:
    case TrafficPattern::reduce_scatter:
    case TrafficPattern::all_reduce:
      add_collective(flows, traffic.pattern, algorithm);
      break;
    case TrafficPattern::stream_outward:
      flows.add_stream(stream, Phase::gather);
      break;
    case TrafficPattern::stream_inward:
      flows.add_stream(stream, Phase::reduce);
      break;
    case TrafficPattern::ring_outward:
      flows.ring(Phase::gather);
      break;
    case TrafficPattern::ring_inward:
      flows.ring(Phase::reduce);
      break;
    case TrafficPattern::exchange:
      return exchange(traffic, shape.size());
    case TrafficPattern::pairs:
      return pairs(traffic, shape.size());
    case TrafficPattern::to_next:
    case TrafficPattern::to_previous:
    case TrafficPattern::between_ends:
      return transfers(traffic.pattern, traffic.bytes(), shape.size());
  }
  return flows.take();
}

}  // namespace wafersim::workloads
