#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <utility>

#include "models/cost.h"
#include "workloads/collectives/algorithms.h"

namespace wafersim::workloads {
namespace {

using topology::Coord;
using topology::Shape;

int hops(Coord a, Coord b) { return std::abs(a.x - b.x) + std::abs(a.y - b.y); }

/// Critical path of each algorithm in cycles.
class Estimate {
 public:
  Estimate(const Group& group, Bytes bytes, const models::HardwareModel& hardware)
      : shape_(group.shape), closed_(group.closed), bytes_(bytes), hardware_(hardware) {}

  Cycle of(Collective algorithm, CollectiveKind kind) const {
    if (algorithm == Collective::tree) return tree(kind);
    if (algorithm == Collective::halving_doubling && !std::has_single_bit(static_cast<unsigned>(shape_.size()))) {
      return kNever;
    }
    const Cycle reduce = kind == CollectiveKind::all_gather ? 0 : two_phases(algorithm, true);
    const Cycle gather = kind == CollectiveKind::reduce_scatter ? 0 : two_phases(algorithm, false);
    return reduce + gather;
  }

 private:
  Bytes shard() const { return ceil_div(bytes_, static_cast<Bytes>(shape_.size())); }

  Cycle message(Bytes bytes, int distance, bool reduced) const {
    return models::message_latency(hardware_, bytes, distance) + (reduced ? addition(bytes) : 0);
  }

  Cycle addition(Bytes bytes) const {
    constexpr Bytes kElementBytes = 2;
    return cycles_at_rate(ceil_div(bytes, kElementBytes), hardware_.vector_flops_per_cycle) +
           hardware_.launch_overhead;
  }

  /// One reduce-scatter (`reduced`) or all-gather: the far end of a chain of n members waits for n - 1
  /// messages, each of which takes one step.
  Cycle two_phases(Collective algorithm, bool reduced) const {
    if (algorithm == Collective::halving_doubling) return halving(reduced);
    if (algorithm == Collective::rows_cols) {
      const Bytes row_bytes = shard() * static_cast<Bytes>(shape_.cols);
      return static_cast<Cycle>(shape_.cols - 1) * message(shard(), 1, reduced) +
             static_cast<Cycle>(shape_.rows - 1) * message(row_bytes, 1, reduced);
    }
    const int distance = algorithm == Collective::ring ? topology::hamiltonian_cycle(shape_, closed_).closing_hops : 1;
    return static_cast<Cycle>(shape_.size() - 1) * message(shard(), distance, reduced);
  }

  /// Step by step, members at a distance of 2^i in a row, then in a column: 2^i of their messages share a link.
  Cycle halving(bool reduced) const {
    Cycle total = 0;
    Bytes bytes = shard() * static_cast<Bytes>(shape_.size());
    for (const int extent : {shape_.cols, shape_.rows}) {
      for (int distance = 1; distance < extent; distance *= 2) {
        bytes /= 2;
        total += message(bytes * static_cast<Bytes>(distance), distance, false) + (reduced ? addition(bytes) : 0);
      }
    }
    return total;
  }

  Cycle tree(CollectiveKind kind) const {
    switch (kind) {
      case CollectiveKind::all_reduce:
        return slowest_branch(Carried::sums) + slowest_branch(Carried::everything);
      case CollectiveKind::reduce_scatter:
        return slowest_branch(Carried::sums) + slowest_branch(Carried::inside);
      case CollectiveKind::all_gather:
        return slowest_branch(Carried::inside) + slowest_branch(Carried::outside);
    }
    return kNever;
  }

  /// What an edge of the tree carries: whole vectors that are added or not, or the shards inside or outside
  /// its subtree.
  enum class Carried { sums, everything, inside, outside };

  Bytes edge_bytes(Carried carried, int subtree_size) const {
    const Bytes inside = std::min(bytes_, shard() * static_cast<Bytes>(subtree_size));
    if (carried == Carried::inside) return inside;
    return carried == Carried::outside ? bytes_ - inside : bytes_;
  }

  Cycle slowest_branch(Carried carried) const { return slowest_branch(carried, 0, shape_.size()); }

  /// From the root of the interval [first, end) of the snake order to its slowest leaf.
  Cycle slowest_branch(Carried carried, int first, int end) const {
    const int root = middle(first, end);
    Cycle slowest = 0;
    for (const auto& [child_first, child_end] : {std::pair{first, root}, std::pair{root + 1, end}}) {
      if (child_first >= child_end) continue;
      const int distance = hops(snake_[static_cast<std::size_t>(root)],
                                snake_[static_cast<std::size_t>(middle(child_first, child_end))]);
      const Cycle edge =
          message(edge_bytes(carried, child_end - child_first), distance, carried == Carried::sums);
      slowest = std::max(slowest, edge + slowest_branch(carried, child_first, child_end));
    }
    return slowest;
  }

  static int middle(int first, int end) { return first + (end - first) / 2; }

  Shape shape_;
  bool closed_;
  Bytes bytes_;
  const models::HardwareModel& hardware_;
  std::vector<Coord> snake_ = topology::snake(shape_);
};

}  // namespace

bool merges_multicast(const models::HardwareModel& hardware) { return hardware.routing == "balanced"; }

Collective choose_algorithm(Collective wanted, CollectiveKind kind, const Group& group, Bytes bytes,
                            const models::HardwareModel& hardware) {
  if (wanted == Collective::direct && merges_multicast(hardware)) return Collective::multicast;
  if (wanted != Collective::automatic) return wanted;
  const Estimate estimate(group, bytes, hardware);
  constexpr std::array kAll = {Collective::ring, Collective::line, Collective::rows_cols, Collective::tree,
                               Collective::halving_doubling};
  return *std::min_element(kAll.begin(), kAll.end(), [&](Collective a, Collective b) {
    return estimate.of(a, kind) < estimate.of(b, kind);
  });
}

}  // namespace wafersim::workloads
