#include <gtest/gtest.h>

#include <algorithm>

#include "models/collective_cost.h"
#include "models/cost.h"
#include "tests/sim/collective_rig.h"
#include "tests/sim/hand_trace.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"

/// Collectives of n members with equal shards of b = D/n bytes, unlimited SRAM bandwidth, one chunk. T(x, h)
/// is the latency of a message of x bytes over h hops, r the cycles in which one shard is added.
namespace wafersim::test {
namespace {

using workloads::Collective;
using workloads::CollectiveKind;

constexpr CollectiveKind kKinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                     CollectiveKind::all_reduce};
constexpr Collective kAlgorithms[] = {Collective::ring, Collective::line,
                                      Collective::rows_cols, Collective::tree,
                                      Collective::halving_doubling, Collective::direct,
                                      Collective::multicast, Collective::router_multicast};

/// Shards of a few packets and a remainder.
models::HardwareModel machine() { return plain_hardware(256, Rational(16), 2, 3); }
Bytes shard_bytes() { return 5 * 256 + 40; }

/// Twice in an all-reduce, which is a reduce-scatter and an all-gather.
Cycle phases(CollectiveKind kind) { return kind == CollectiveKind::all_reduce ? 2 : 1; }

CollectiveCase even_case(const topology::Shape& mesh, Collective algorithm, CollectiveKind kind) {
  return {.mesh = mesh,
          .algorithm = algorithm,
          .kind = kind,
          .bytes = static_cast<Bytes>(mesh.size()) * shard_bytes()};
}

TEST(Collectives, RingEqualsItsFormula) {
  const models::HardwareModel hardware = machine();
  for (const topology::Shape mesh : {topology::Shape{2, 2}, {2, 4}, {4, 4}}) {
    const int n = mesh.size();
    for (const Cycle reduce : {Cycle{0}, Cycle{7}, Cycle{200}}) {  // 200 is more than a shard's serialization
      CollectiveCase collective = even_case(mesh, Collective::ring, CollectiveKind::all_gather);
      collective.elements = reduce * static_cast<Cycle>(n);
      EXPECT_EQ(collective_cycles(collective, hardware),
                models::ring_all_gather(hardware, n, collective.bytes));
      collective.kind = CollectiveKind::reduce_scatter;
      EXPECT_EQ(collective_cycles(collective, hardware),
                models::ring_reduce_scatter(hardware, n, collective.bytes, reduce));
      collective.kind = CollectiveKind::all_reduce;
      EXPECT_EQ(collective_cycles(collective, hardware),
                models::ring_all_reduce(hardware, n, collective.bytes, reduce));
    }
  }
}

TEST(Collectives, RingInChunksRunsOneChunkAfterTheOther) {
  const models::HardwareModel hardware = machine();
  CollectiveCase collective = even_case({2, 4}, Collective::ring, CollectiveKind::all_reduce);
  collective.bytes *= 4;
  collective.chunks = 4;
  EXPECT_EQ(collective_cycles(collective, hardware),
            4 * models::ring_all_reduce(hardware, 8, collective.bytes / 4, 0));
}

/// A shard goes from tile to tile as a message of its own, and shards of a stream follow each other without
/// meeting: the longest way, n - 1 hops from one end to the other, decides. The end's own shard is the last
/// to be summed, at the end of the reduce-scatter, and has the longest way in the all-gather too.
///   all_gather = reduce_scatter = (n - 1) T(b, 1), all_reduce = 2 (n - 1) T(b, 1)        when adding is free
TEST(Collectives, LineTakesOneMessageTimeForEachMember) {
  const models::HardwareModel hardware = machine();
  const Cycle step = models::message_latency(hardware, shard_bytes(), 1);
  for (const topology::Shape mesh : {topology::Shape{1, 2}, {1, 5}, {1, 8}, {5, 1}, {2, 4}, {3, 3}, {4, 4}}) {
    for (const CollectiveKind kind : kKinds) {
      EXPECT_EQ(collective_cycles(even_case(mesh, Collective::line, kind), hardware),
                phases(kind) * static_cast<Cycle>(mesh.size() - 1) * step)
          << topology::to_string(mesh) << ", kind " << static_cast<int>(kind);
    }
  }
}

/// With additions of r cycles, 2 r <= S(b), every hop of a sum costs T(b, 1) + r; a sum may find the vector
/// engine busy with one of the other direction, r more at most.
TEST(Collectives, LineReducesWithinOneAdditionAHop) {
  const models::HardwareModel hardware = machine();
  const Cycle reduce = 30;
  const Cycle step = models::message_latency(hardware, shard_bytes(), 1);
  for (const topology::Shape mesh : {topology::Shape{1, 2}, {1, 5}, {1, 8}, {2, 4}, {4, 4}}) {
    CollectiveCase collective = even_case(mesh, Collective::line, CollectiveKind::reduce_scatter);
    const auto n = static_cast<Cycle>(mesh.size());
    collective.elements = n * reduce;
    const Cycle cycles = collective_cycles(collective, hardware);
    EXPECT_GE(cycles, (n - 1) * (step + reduce)) << topology::to_string(mesh);
    EXPECT_LE(cycles, (n - 1) * (step + 2 * reduce)) << topology::to_string(mesh);
  }
}

/// Lines of c members with shards of b bytes in the rows, lines of rows members with the c shards of a row in
/// the columns.
///   all_gather = reduce_scatter = (cols - 1) T(b, 1) + (rows - 1) T(cols b, 1), all_reduce twice that
TEST(Collectives, RowsAndColumnsAddUp) {
  const models::HardwareModel hardware = machine();
  for (const topology::Shape mesh : {topology::Shape{2, 2}, {2, 4}, {4, 2}, {3, 5}, {4, 4}}) {
    const Cycle row = static_cast<Cycle>(mesh.cols - 1) * models::message_latency(hardware, shard_bytes(), 1);
    const Bytes row_bytes = static_cast<Bytes>(mesh.cols) * shard_bytes();
    const Cycle column = static_cast<Cycle>(mesh.rows - 1) * models::message_latency(hardware, row_bytes, 1);
    for (const CollectiveKind kind : kKinds) {
      EXPECT_EQ(collective_cycles(even_case(mesh, Collective::rows_cols, kind), hardware),
                phases(kind) * (row + column))
          << topology::to_string(mesh) << ", kind " << static_cast<int>(kind);
    }
  }
}

/// On a line a shard that members pass on takes the way of `line`. On a mesh the two phases of `rows_cols` overlap.
TEST(Collectives, MulticastIsALineInOneRowAndNoSlowerThanRowsAndColumns) {
  const models::HardwareModel hardware = machine();
  const auto gather = [&](const topology::Shape& mesh, Collective algorithm) {
    return collective_cycles(even_case(mesh, algorithm, CollectiveKind::all_gather), hardware);
  };
  for (const topology::Shape mesh : {topology::Shape{1, 2}, {1, 5}, {1, 8}, {5, 1}}) {
    EXPECT_EQ(gather(mesh, Collective::multicast), gather(mesh, Collective::line)) << topology::to_string(mesh);
  }
  for (const topology::Shape mesh : {topology::Shape{2, 2}, {2, 4}, {3, 5}, {4, 4}}) {
    EXPECT_LE(gather(mesh, Collective::multicast), gather(mesh, Collective::rows_cols)) << topology::to_string(mesh);
  }
}

/// A shard that routers copy crosses n - 1 links, those of a tree, and on a line the link to an end as all others do.
TEST(Collectives, RouterMulticastBringsAShardOverEachLinkOnce) {
  const models::HardwareModel hardware = machine();
  for (const topology::Shape shape : {topology::Shape{1, 2}, {1, 8}, {6, 1}, {3, 5}, {4, 4}}) {
    const std::vector<std::uint64_t> loads = isolated_numbers([&] {
      const topology::Mesh mesh({shape, {}, {}});
      const CollectiveCase wanted = even_case(shape, Collective::router_multicast, CollectiveKind::all_gather);
      const sim::Measurements result = run_trace(mesh, hardware, collective_trace(wanted));
      std::uint64_t total = 0, largest = 0;
      for (const sim::LinkMeasurement& link : result.links) {
        total += link.bytes;
        largest = std::max(largest, link.bytes);
      }
      return std::vector<std::uint64_t>{total, largest, result.cycles};
    });
    const auto n = static_cast<Bytes>(shape.size());
    EXPECT_EQ(loads[0], n * (n - 1) * shard_bytes()) << topology::to_string(shape);
    if (shape.rows == 1 || shape.cols == 1) {
      EXPECT_EQ(loads[1], (n - 1) * shard_bytes());
    }
    EXPECT_LE(loads[2], collective_cycles(even_case(shape, Collective::direct, CollectiveKind::all_gather), hardware));
  }
}

/// The tree over the members [first, end) of a line, each subtree rooted at its middle.
class LineTree {
 public:
  LineTree(const models::HardwareModel& hardware, int members, Bytes shard, Cycle reduce)
      : hardware_(hardware), members_(members), shard_(shard), reduce_(reduce) {}

  Cycle all_gather() const { return up(0, members_, Up::shards) + down(0, members_, Down::missing); }
  Cycle reduce_scatter() const { return up(0, members_, Up::sums) + down(0, members_, Down::own); }
  Cycle all_reduce() const { return up(0, members_, Up::sums) + down(0, members_, Down::whole); }

 private:
  enum class Up { shards, sums };
  enum class Down { missing, own, whole };
  static int middle(int first, int end) { return first + (end - first) / 2; }
  Cycle latency(int shards, int hops) const {
    return shards == 0 ? 0 : models::message_latency(hardware_, static_cast<Bytes>(shards) * shard_, hops);
  }

  /// When the root of the subtree has its shards or sums. Both sums may be there at once; then one is added
  /// after the other.
  Cycle up(int first, int end, Up what) const {
    const int root = middle(first, end);
    std::vector<Cycle> arrivals;
    for (const auto& [a, b] : {std::pair{first, root}, std::pair{root + 1, end}}) {
      if (a == b) continue;
      const int shards = what == Up::sums ? members_ : b - a;
      arrivals.push_back(up(a, b, what) + latency(shards, std::abs(middle(a, b) - root)));
    }
    std::sort(arrivals.begin(), arrivals.end());
    Cycle ready = 0;
    for (const Cycle arrival : arrivals) {
      ready = std::max(ready, arrival) + (what == Up::sums ? static_cast<Cycle>(members_) * reduce_ : 0);
    }
    return ready;
  }

  /// How long after the root the last member has its result. What a child lacks lies on both sides of its own
  /// shards: two messages, the second sent when the first has left.
  Cycle down(int first, int end, Down what) const {
    const int root = middle(first, end);
    Cycle last = 0;
    for (const auto& [a, b] : {std::pair{first, root}, std::pair{root + 1, end}}) {
      if (a == b) continue;
      const int hops = std::abs(middle(a, b) - root);
      Cycle message = 0;
      if (what == Down::own) message = latency(b - a, hops);
      if (what == Down::whole) message = latency(members_, hops);
      if (what == Down::missing) {
        const int before = a, behind = members_ - b;
        const Cycle first_leaves =
            before == 0 || behind == 0
                ? 0
                : models::serialization(static_cast<Bytes>(before) * shard_, hardware_.link_bytes_per_cycle);
        message = first_leaves + latency(behind == 0 ? before : behind, hops);
      }
      last = std::max(last, message + down(a, b, what));
    }
    return last;
  }

  const models::HardwareModel& hardware_;
  int members_;
  Bytes shard_;
  Cycle reduce_;
};

/// On a line the two subtrees of a member lie on its two sides and share no link: levels add up. For n = 2^k
/// that is, up to the root and down again,
///   all_reduce = 2 (T(D, n/4) + T(D, n/8) + ... + T(D, 1) + T(D, 1)) + k R       R = n r, cycles in which a
///   vector is added
TEST(Collectives, TreeOnALineAddsUpItsLevels) {
  models::HardwareModel hardware = machine();
  // The default buffer keeps a link busy with full packets; a short last packet of one message between full
  // ones of two messages would make credits late.
  hardware.vc_buffer_bytes = 4 * hardware.packet_bytes;
  for (const int n : {2, 3, 4, 7, 8, 13, 16}) {
    for (const Cycle reduce : {Cycle{0}, Cycle{11}}) {
      const LineTree expected(hardware, n, shard_bytes(), reduce);
      CollectiveCase collective = even_case({1, n}, Collective::tree, CollectiveKind::all_reduce);
      collective.elements = static_cast<Cycle>(n) * reduce;
      EXPECT_EQ(collective_cycles(collective, hardware), expected.all_reduce()) << n;
      collective.kind = CollectiveKind::reduce_scatter;
      EXPECT_EQ(collective_cycles(collective, hardware), expected.reduce_scatter()) << n;
      collective.kind = CollectiveKind::all_gather;
      EXPECT_EQ(collective_cycles(collective, hardware), expected.all_gather()) << n;
    }
  }
  const Bytes vector = 8 * shard_bytes();
  EXPECT_EQ(
      LineTree(hardware, 8, shard_bytes(), 11).all_reduce(),
      2 * (models::message_latency(hardware, vector, 2) + 2 * models::message_latency(hardware, vector, 1)) +
          3 * 88);
}

/// In a row of c = 2^a columns, then in a column of 2^b rows, members at a distance of 2^i exchange half of what the step
/// before did: x bytes, of which 2^i messages share a link. Where none do, with r cycles to add the smallest part,
///   all_gather = sum of T(x, 1), reduce_scatter that and 2^(a+b) - 1 times r
TEST(Collectives, HalvingAndDoublingAddUpTheirSteps) {
  const models::HardwareModel hardware = machine();
  for (const topology::Shape mesh : {topology::Shape{1, 2}, {2, 1}, {2, 2}}) {
    for (const Cycle reduce : {Cycle{0}, Cycle{7}, Cycle{200}}) {
      CollectiveCase collective = even_case(mesh, Collective::halving_doubling, CollectiveKind::all_gather);
      const auto n = static_cast<Cycle>(mesh.size());
      collective.elements = reduce * n;
      Cycle steps = 0;
      for (Cycle part = 1; part < n; part *= 2) steps += models::message_latency(hardware, part * shard_bytes(), 1);
      EXPECT_EQ(collective_cycles(collective, hardware), steps) << topology::to_string(mesh);
      collective.kind = CollectiveKind::reduce_scatter;
      EXPECT_EQ(collective_cycles(collective, hardware), steps + (n - 1) * reduce) << topology::to_string(mesh);
      collective.kind = CollectiveKind::all_reduce;
      EXPECT_EQ(collective_cycles(collective, hardware), 2 * steps + (n - 1) * reduce) << topology::to_string(mesh);
    }
  }
}

/// Elsewhere d = 2^i messages share a link. A step takes at least as long as its message alone, T(x, d), and no longer than
/// if all of them were one message over its whole way, T(d x, d), and a packet for each of them.
TEST(Collectives, HalvingAndDoublingShareLinksBeyondNeighbours) {
  const models::HardwareModel hardware = machine();
  for (const topology::Shape mesh : {topology::Shape{1, 8}, {1, 16}, {2, 4}, {4, 4}, {8, 4}}) {
    Bytes part = static_cast<Bytes>(mesh.size()) * shard_bytes();
    Cycle least = 0, most = 0;
    for (const int extent : {mesh.cols, mesh.rows}) {
      for (int distance = 1; distance < extent; distance *= 2) {
        part /= 2;
        const auto messages = static_cast<Cycle>(distance);
        least += models::message_latency(hardware, part, distance);
        most += models::message_latency(hardware, messages * part, distance) +
                messages * models::serialization(hardware.packet_bytes, hardware.link_bytes_per_cycle);
      }
    }
    for (const CollectiveKind kind : kKinds) {
      const Cycle cycles = collective_cycles(even_case(mesh, Collective::halving_doubling, kind), hardware);
      EXPECT_GE(cycles, phases(kind) * least) << topology::to_string(mesh);
      EXPECT_LE(cycles, phases(kind) * most) << topology::to_string(mesh);
    }
  }
}

TEST(Collectives, NoAllReduceBeatsTheBoundOfItsMesh) {
  const models::HardwareModel hardware = machine();
  for (const topology::Shape mesh : {topology::Shape{2, 2}, {2, 3}, {3, 3}, {4, 5}, {4, 8}}) {
    for (const Collective algorithm : kAlgorithms) {
      for (const int chunks : {1, 3}) {
        CollectiveCase collective = even_case(mesh, algorithm, CollectiveKind::all_reduce);
        collective.chunks = chunks;
        const Cycle cycles = collective_cycles(collective, hardware);
        EXPECT_GE(cycles, models::any_all_reduce_bound(hardware, mesh, collective.bytes))
            << topology::to_string(mesh);
        if (algorithm == Collective::tree) continue;
        EXPECT_GE(cycles, models::all_reduce_bound(hardware, mesh.size(), collective.bytes, false))
            << topology::to_string(mesh) << ", " << to_string(algorithm);
      }
    }
  }
}

/// FRED (arXiv 2406.19580): on a 5x4 mesh with 750 GB/s a link the corners, which have two links, bind: 1.9 D
/// over 1.5 TB/s.
TEST(Collectives, CornerTilesBindTheFredMesh) {
  const models::HardwareModel hardware = plain_hardware(Bytes{64} << 10, Rational(750), 1, 20);
  const topology::Shape mesh{5, 4};
  const Bytes bytes = 20 * (Bytes{1} << 20);
  const Cycle bound = models::two_phase_all_reduce_bound(hardware, 20, bytes, 2);
  EXPECT_EQ(bound, bytes * 19 / (20 * 750));
  for (const Collective algorithm : {Collective::ring, Collective::line, Collective::rows_cols}) {
    const Cycle cycles = collective_cycles({.mesh = mesh, .algorithm = algorithm, .bytes = bytes}, hardware);
    EXPECT_GE(cycles, bound) << to_string(algorithm);
  }
  // A ring uses one link of each corner at a time: twice the bound, and latency that large shards hide.
  const Cycle ring =
      collective_cycles({.mesh = mesh, .algorithm = Collective::ring, .bytes = bytes}, hardware);
  EXPECT_LT(ring, 2 * bound + bound / 25);
}

/// Whole-vector exchanges with the member at distance 1, 2, 4, ...; each starts when the one before is
/// complete.
workloads::Trace recursive_doubling(TileId members, Bytes bytes) {
  HandTrace trace(members);
  for (TileId rank = 0; rank < members; ++rank) {
    trace.step(rank, [&](workloads::StepBuilder& builder) {
      std::vector<workloads::OpId> ready;
      for (TileId distance = 1; distance < members; distance *= 2) {
        const TileId peer = rank ^ distance;
        const auto sent = builder.send(workloads::Axis::dp, peer, distance, bytes, ready);
        const auto received = builder.receive(workloads::Axis::dp, peer, distance, bytes, ready);
        ready = {sent, received};
      }
    });
  }
  return trace.take();
}

TEST(Collectives, RecursiveDoublingOnALinePaysForItsSharedLinks) {
  const models::HardwareModel hardware = machine();
  const Bytes bytes = 400 * hardware.packet_bytes;
  const topology::Mesh mesh({{1, 8}, {}, {}});
  const Cycle cycles = run_trace(mesh, hardware, recursive_doubling(8, bytes)).cycles;
  const Cycle vector = models::serialization(bytes, hardware.link_bytes_per_cycle);
  const Cycle bound = models::recursive_doubling_on_line(hardware, 8, bytes);
  EXPECT_EQ(bound, 7 * vector);
  EXPECT_GE(cycles, bound);
  EXPECT_LT(cycles, bound + bound / 20);  // three vectors, log2(n) D/B, would be less than half
}

}  // namespace
}  // namespace wafersim::test
