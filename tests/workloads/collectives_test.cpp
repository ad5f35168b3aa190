#include "workloads/collectives.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "tests/workloads/collective_executor.h"
#include "topology/link_loads.h"
#include "workloads/trace_demands.h"

namespace wafersim::workloads {
namespace {

using topology::Shape;
using Numbers = std::vector<std::uint64_t>;

constexpr std::array kAlgorithms = {Collective::ring, Collective::line,   Collective::rows_cols,
                                    Collective::tree, Collective::halving_doubling, Collective::direct, Collective::multicast,
                                    Collective::router_multicast};
constexpr std::array kKinds = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                               CollectiveKind::all_reduce};

std::vector<topology::Coord> shuffled(std::vector<topology::Coord> positions) {
  RandomStream random(7, "positions");
  for (std::size_t i = positions.size(); i > 1; --i) std::swap(positions[i - 1], positions[random.below(i)]);
  return positions;
}

std::string describe(const CollectiveCase& wanted) {
  return fmt::format("{} kind {} shape {} bytes {} chunks {}", to_string(wanted.algorithm),
                     static_cast<int>(wanted.kind), topology::to_string(wanted.shape), wanted.bytes,
                     wanted.chunks);
}

std::vector<Numbers> random_vectors(const CollectiveCase& wanted) {
  RandomStream random(11, describe(wanted));
  std::vector<Numbers> vectors(static_cast<std::size_t>(wanted.shape.size()), Numbers(wanted.bytes));
  for (Numbers& vector : vectors) {
    for (std::uint64_t& number : vector) number = random.next();
  }
  return vectors;
}

/// What a gather must leave everywhere (each shard as its owner has it), or a reduction (sums modulo 2^64,
/// which a contributor that is missing or added twice changes).
Numbers expected_vector(const CollectiveCase& wanted, const std::vector<Numbers>& inputs) {
  Numbers expected(wanted.bytes, 0);
  if (wanted.kind != CollectiveKind::all_gather) {
    for (const Numbers& input : inputs) {
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += input[i];
    }
    return expected;
  }
  for (int chunk = 0; chunk < wanted.chunks; ++chunk) {
    for (int rank = 0; rank < wanted.shape.size(); ++rank) {
      const auto [first, last] = shard_bytes(wanted, chunk, rank);
      for (std::size_t i = first; i < last; ++i) expected[i] = inputs[static_cast<std::size_t>(rank)][i];
    }
  }
  return expected;
}

void expect_right_result(const CollectiveCase& wanted) {
  const Trace trace = lower_case(wanted);
  const std::vector<Numbers> inputs = random_vectors(wanted);
  const Numbers expected = expected_vector(wanted, inputs);
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    std::vector<Numbers> vectors = inputs;
    execute(trace, vectors, seed);
    for (int rank = 0; rank < wanted.shape.size(); ++rank) {
      const Numbers& got = vectors[static_cast<std::size_t>(rank)];
      if (wanted.kind != CollectiveKind::reduce_scatter) {
        ASSERT_EQ(got, expected) << describe(wanted) << " rank " << rank;
        continue;
      }
      for (int chunk = 0; chunk < wanted.chunks; ++chunk) {
        const auto [first, last] = shard_bytes(wanted, chunk, rank);
        for (std::size_t i = first; i < last; ++i)
          ASSERT_EQ(got[i], expected[i]) << describe(wanted) << " rank " << rank;
      }
    }
  }
}

std::vector<Shape> shapes_under_test() {
  std::vector<Shape> shapes;
  for (int size = 1; size <= 16; ++size) shapes.push_back({1, size});
  for (int size = 2; size <= 16; ++size) shapes.push_back({size, 1});
  for (int cols = 2; cols <= 8; ++cols) shapes.push_back({2, cols});
  for (const Shape shape : {Shape{3, 2}, {3, 3}, {3, 4}, {3, 5}, {4, 4}, {5, 4}, {5, 3}})
    shapes.push_back(shape);
  return shapes;
}

class EveryCollective : public testing::TestWithParam<Collective> {};

TEST_P(EveryCollective, GivesEachMemberItsResultOnEveryShape) {
  for (const Shape& shape : shapes_under_test()) {
    const auto size = static_cast<Bytes>(shape.size());
    for (const CollectiveKind kind : kKinds) {
      for (const auto& positions :
           {topology::row_major(shape), topology::snake(shape), shuffled(topology::row_major(shape))}) {
        for (int chunks = 1; chunks <= 3; ++chunks) {
          for (const Bytes bytes : {size * 6, size * 4 + 5, size + 1, Bytes{2}, Bytes{0}}) {
            ASSERT_NO_FATAL_FAILURE(expect_right_result({GetParam(), kind, shape, positions, bytes, chunks}));
          }
        }
      }
    }
  }
}

/// Sums over all operations of a trace.
struct Totals {
  Bytes sent = 0;
  Bytes received = 0;
  std::uint64_t reduced_elements = 0;
  Bytes reduced_sram = 0;
};

Totals totals(const Trace& trace) {
  Totals sum;
  for (const Program& program : trace.programs) {
    for (const Op& op : trace.templates[program.steps.at(0).step_template].ops) {
      if (op.kind == OpKind::send) sum.sent += op.bytes;
      if (op.kind == OpKind::multicast) sum.sent += op.peer_count * op.bytes;
      if (op.kind == OpKind::receive) sum.received += op.bytes;
      if (op.kind != OpKind::reduce) continue;
      sum.reduced_elements += trace.works[op.work].vector_flops;
      sum.reduced_sram += trace.works[op.work].sram_bytes;
    }
  }
  return sum;
}

/// Every member lacks all shards but its own, and every other member's contribution to it: (n - 1) D in total
/// each way.
TEST_P(EveryCollective, MovesAndAddsTheBytesOfItsClosedForm) {
  for (const Shape& shape : shapes_under_test()) {
    const Bytes bytes = 7 * static_cast<Bytes>(shape.size()) + 3;
    const Bytes exchange = static_cast<Bytes>(shape.size() - 1) * bytes;
    const auto of = [&](CollectiveKind kind) {
      return totals(lower_case({GetParam(), kind, shape, topology::row_major(shape), bytes, 2}));
    };
    const Totals gather = of(CollectiveKind::all_gather);
    EXPECT_EQ(gather.sent, exchange);
    EXPECT_EQ(gather.reduced_elements, 0U);
    const Totals reduce = of(CollectiveKind::all_reduce);
    EXPECT_EQ(reduce.sent, 2 * exchange);
    EXPECT_EQ(reduce.received, 2 * exchange);
    EXPECT_EQ(reduce.reduced_elements, exchange);
    EXPECT_EQ(reduce.reduced_sram, 3 * exchange);
    const Totals scatter = of(CollectiveKind::reduce_scatter);
    EXPECT_EQ(scatter.reduced_elements, exchange);
    // A tree sums at its root, members that stand aside get their shard from another.
    const bool direct = GetParam() != Collective::halving_doubling || std::has_single_bit(static_cast<unsigned>(shape.size()));
    if (GetParam() != Collective::tree && direct) {
      EXPECT_EQ(scatter.sent, exchange);
    }
  }
}

TEST_P(EveryCollective, HoldsAtMostTwoLandingBuffersForEachNeighbour) {
  const bool direct = GetParam() == Collective::direct || GetParam() == Collective::multicast ||
                      GetParam() == Collective::router_multicast;
  for (const Shape& shape : {Shape{1, 16}, {4, 4}, {3, 5}}) {
    const auto size = static_cast<Bytes>(shape.size());
    const CollectiveCase wanted{
        GetParam(), CollectiveKind::all_reduce, shape, topology::snake(shape), size * 8, 1};
    // Of members that stand aside the whole vector lands.
    const Bytes largest = GetParam() == Collective::halving_doubling ? wanted.bytes / (shape.rows == 3 ? 1 : 2)
                          : GetParam() == Collective::tree        ? wanted.bytes / 2
                          : GetParam() == Collective::rows_cols ? 8 * static_cast<Bytes>(shape.cols)
                                                                : 8;
    const Bytes neighbours = GetParam() == Collective::ring ? 1 : 2;
    // Without neighbours, every other member's sum has a buffer of its own.
    const Bytes buffers = direct ? size - 1 : 2 * neighbours;
    std::vector<Numbers> vectors = random_vectors(wanted);
    EXPECT_LE(execute(lower_case(wanted), vectors, 3), buffers * largest) << describe(wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryCollective, testing::ValuesIn(kAlgorithms),
                         [](const auto& algorithm) { return std::string(to_string(algorithm.param)); });

/// Bytes that rank `from` sends to rank `to`.
Bytes sent_between(const Trace& trace, TileId from, TileId to) {
  Bytes sum = 0;
  const TileBinding& binding = trace.tiles[from];
  for (const Op& op : trace.templates[trace.programs[binding.program].steps.at(0).step_template].ops) {
    if (op.kind == OpKind::send && trace.peer(binding, op.peer) == to) sum += op.bytes;
  }
  return sum;
}

/// What an all-gather of 8-byte shards loads the links of its mesh with, on straight routes.
topology::LoadSummary gather_loads(Collective algorithm, const Shape& shape) {
  const auto size = static_cast<Bytes>(shape.size());
  const Trace trace =
      lower_case({algorithm, CollectiveKind::all_gather, shape, topology::row_major(shape), 8 * size, 1});
  const topology::Mesh mesh({shape, {}, {}});
  return topology::summarize(topology::link_loads(*topology::make_routing("xy", mesh), mesh, demands_of(trace)), mesh);
}

/// Nothing reaches n - 1 members over fewer than n - 1 links; that many a shard are those of a tree.
TEST(MulticastCollective, AShardCrossesEachLinkOnce) {
  for (const Shape& shape : {Shape{1, 2}, {1, 9}, {2, 4}, {3, 5}, {6, 6}}) {
    const auto n = static_cast<Bytes>(shape.size());
    EXPECT_EQ(gather_loads(Collective::multicast, shape).byte_hops, 8 * n * (n - 1)) << topology::to_string(shape);
  }
}

/// On a line of n the link behind member i carries i + 1 shards, and without merging each of them for all n - 1 - i
/// members beyond.
TEST(DirectCollective, SendsEachShardOverALinkForEveryMemberBeyond) {
  EXPECT_EQ(gather_loads(Collective::direct, {1, 8}).largest, 8U * 4 * 4);
  EXPECT_EQ(gather_loads(Collective::direct, {1, 8}).byte_hops, 8U * 168);  // n (n^2 - 1) / 3 shard-hops
  EXPECT_EQ(gather_loads(Collective::multicast, {1, 8}).largest, 8U * 7);
}

TEST(RingCollective, EachMemberSendsAllShardsButOneToItsSuccessorOnly) {
  const Shape shape{2, 3};
  const auto cycle = topology::hamiltonian_cycle(shape).positions;
  const Trace trace = lower_case({Collective::ring, CollectiveKind::all_gather, shape, cycle, 600, 1});
  for (TileId rank = 0; rank < 6; ++rank) {
    for (TileId other = 0; other < 6; ++other) {
      EXPECT_EQ(sent_between(trace, rank, other), other == (rank + 1) % 6 ? 500U : 0U);
    }
  }
}

TEST(LineCollective, LinksCarryTheShardsOfEverybodyUpstream) {
  constexpr TileId kSize = 7;
  const Shape shape{1, kSize};
  const Trace gather = lower_case(
      {Collective::line, CollectiveKind::all_gather, shape, topology::snake(shape), kSize * 10, 1});
  const Trace reduce = lower_case(
      {Collective::line, CollectiveKind::reduce_scatter, shape, topology::snake(shape), kSize * 10, 1});
  for (TileId rank = 0; rank + 1 < kSize; ++rank) {
    EXPECT_EQ(sent_between(gather, rank, rank + 1), 10 * (rank + 1));
    EXPECT_EQ(sent_between(gather, rank + 1, rank), 10 * (kSize - 1 - rank));
    EXPECT_EQ(sent_between(reduce, rank, rank + 1), 10 * (kSize - 1 - rank));
    EXPECT_EQ(sent_between(reduce, rank + 1, rank), 10 * (rank + 1));
  }
}

TEST(RowsColsCollective, TalksToNeighboursInRowAndColumnOnly) {
  const Shape shape{3, 5};
  const auto positions = topology::snake(shape);
  const Trace trace =
      lower_case({Collective::rows_cols, CollectiveKind::all_reduce, shape, positions, 150, 1});
  for (TileId from = 0; from < 15; ++from) {
    for (TileId to = 0; to < 15; ++to) {
      const int distance =
          std::abs(positions[from].x - positions[to].x) + std::abs(positions[from].y - positions[to].y);
      EXPECT_EQ(sent_between(trace, from, to) > 0, distance == 1) << from << " to " << to;
    }
  }
}

TEST(TreeCollective, SumsWholeVectorsAlongABinaryTree) {
  const Shape shape{1, 7};
  const Trace trace =
      lower_case({Collective::tree, CollectiveKind::all_reduce, shape, topology::snake(shape), 70, 1});
  const std::vector<std::pair<TileId, TileId>> edges = {{0, 1}, {2, 1}, {1, 3}, {4, 5}, {6, 5}, {5, 3}};
  for (const auto& [child, parent] : edges) {
    EXPECT_EQ(sent_between(trace, child, parent), 70U);
    EXPECT_EQ(sent_between(trace, parent, child), 70U);
  }
  EXPECT_EQ(totals(trace).sent, 2 * 70 * edges.size());
}

TEST(Collectives, GroupOfOneCostsNothing) {
  Trace trace;
  StepBuilder builder(trace, "alone");
  const OpId start = builder.vector(Work{}, {});
  const Group group{Axis::dp, 1, 0, {1, 1}, {{0, 0}}, 0};
  EXPECT_EQ(all_reduce(builder, group, Collective::ring, {100, 50, 0}, {start}), Completion{start});
  EXPECT_EQ(builder.size(), 1U);
}

TEST(Collectives, RefuseWhatCannotBeLowered) {
  Trace trace;
  StepBuilder builder(trace, "wrong");
  const Group pair{Axis::dp, 2, 0, {1, 2}, {{0, 0}, {1, 0}}, 0};
  EXPECT_THROW(all_reduce(builder, pair, Collective::automatic, {100, 50, 0}, {}), InternalError);
  EXPECT_THROW(all_reduce(builder, pair, Collective::ring, {100, 50, 0}, {}, 40000), PlanError);
  Group doubled = pair;
  doubled.positions = {{0, 0}, {0, 0}};
  EXPECT_THROW(all_gather(builder, doubled, Collective::ring, {100, 50, 0}, {}), InternalError);
  Group outside = pair;
  outside.positions = {{0, 0}, {2, 0}};
  EXPECT_THROW(all_gather(builder, outside, Collective::line, {100, 50, 0}, {}), InternalError);
}

models::HardwareModel hardware(Cycle message_overhead) {
  models::HardwareModel model;
  model.link_bytes_per_cycle = Rational(256);
  model.injection_bytes_per_cycle = Rational(256);
  model.ejection_bytes_per_cycle = Rational(256);
  model.vector_flops_per_cycle = Rational(1024);
  model.router_cycles = 2;
  model.link_cycles = 3;
  model.message_overhead = message_overhead;
  return model;
}

Collective chosen(CollectiveKind kind, const Shape& shape, Bytes bytes, Cycle message_overhead = 0) {
  const Group group{Axis::tp, shape.size(), 0, shape, topology::row_major(shape), 0};
  return choose_algorithm(Collective::automatic, kind, group, bytes, hardware(message_overhead));
}

/// Bytes of the messages between two members, in order.
std::vector<Bytes> messages_between(const Trace& trace, TileId from, TileId to) {
  std::vector<Bytes> result;
  const TileBinding& binding = trace.tiles[from];
  for (const Op& op : trace.templates[trace.programs[binding.program].steps.at(0).step_template].ops) {
    if (op.kind == OpKind::send && trace.peer(binding, op.peer) == to) result.push_back(op.bytes);
  }
  return result;
}

/// On 2x4 a member meets its neighbour in the row with half of the vector, the member two places on with a quarter, and
/// the one in the other row with an eighth; back in the opposite order.
TEST(HalvingDoubling, TheNearestExchangeTheMost) {
  const Shape shape{2, 4};
  const Trace trace =
      lower_case({Collective::halving_doubling, CollectiveKind::all_reduce, shape, topology::row_major(shape), 800, 1});
  for (TileId rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(messages_between(trace, rank, rank ^ 1U), (std::vector<Bytes>{400, 400}));
    EXPECT_EQ(messages_between(trace, rank, rank ^ 2U), (std::vector<Bytes>{200, 200}));
    EXPECT_EQ(messages_between(trace, rank, rank ^ 4U), (std::vector<Bytes>{100, 100}));
    for (const TileId distance : {3U, 5U, 6U, 7U}) EXPECT_EQ(sent_between(trace, rank, rank ^ distance), 0U);
  }
}

/// Of five members one stands aside: its neighbour gets its vector and hands it the sum.
TEST(HalvingDoubling, MembersBeyondAPowerOfTwoStandAside) {
  const Trace trace = lower_case(
      {Collective::halving_doubling, CollectiveKind::all_reduce, {1, 5}, topology::row_major({1, 5}), 500, 1});
  EXPECT_EQ(messages_between(trace, 0, 1), (std::vector<Bytes>{500}));
  EXPECT_EQ(messages_between(trace, 1, 0), (std::vector<Bytes>{500}));
  for (TileId other = 2; other < 5; ++other) EXPECT_EQ(sent_between(trace, 0, other), 0U);
  EXPECT_EQ(messages_between(trace, 1, 2), (std::vector<Bytes>{200, 300}));  // shards of 2, 4; of 0, 1, 3
}

TEST(ChooseAlgorithm, TakesTheCheapestForTheShape) {
  // A row has no cycle of neighbours: the ring pays two hops a step, the line one.
  EXPECT_EQ(chosen(CollectiveKind::all_gather, {1, 8}, 1 << 20), Collective::line);
  // In a block the ring needs 15 messages one after the other, rows and columns 3 + 3 for the same bytes.
  EXPECT_EQ(chosen(CollectiveKind::all_reduce, {4, 4}, 1 << 20), Collective::rows_cols);
  EXPECT_EQ(chosen(CollectiveKind::reduce_scatter, {4, 4}, 1 << 20), Collective::rows_cols);
  // Where messages cost much and bytes little, the fewest one after the other win: halving, the tree for other numbers.
  EXPECT_EQ(chosen(CollectiveKind::all_reduce, {8, 8}, 64, 1000), Collective::halving_doubling);
  EXPECT_EQ(chosen(CollectiveKind::all_reduce, {7, 9}, 64, 1000), Collective::tree);
  // Two members: everything is one message; the first of the list.
  EXPECT_EQ(chosen(CollectiveKind::all_gather, {1, 2}, 1 << 20), Collective::ring);
}

TEST(ChooseAlgorithm, BalancedRoutesMergeDirectMessages) {
  const Group group{Axis::tp, 8, 0, {1, 8}, topology::row_major({1, 8}), 0};
  models::HardwareModel balanced = hardware(0);
  balanced.routing = "balanced";
  EXPECT_EQ(choose_algorithm(Collective::direct, CollectiveKind::all_gather, group, 1 << 20, balanced),
            Collective::multicast);
  EXPECT_EQ(choose_algorithm(Collective::ring, CollectiveKind::all_gather, group, 1 << 20, balanced), Collective::ring);
}

TEST(ChooseAlgorithm, KeepsWhatIsGiven) {
  const Group group{Axis::tp, 8, 0, {1, 8}, topology::row_major({1, 8}), 0};
  for (const Collective wanted : kAlgorithms) {
    EXPECT_EQ(choose_algorithm(wanted, CollectiveKind::all_reduce, group, 1 << 20, hardware(0)), wanted);
  }
}

}  // namespace
}  // namespace wafersim::workloads
